"""Safetensors files with one JSON document, read as numpy arrays."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as of_arrays

from manybody.io.atomic import ArtifactError, atomic

KEY = "manybody"  # several metadata keys would be written in a random order


def write_document(
    path: str | Path, named: dict, about: dict, as_bytes: Callable = of_arrays
) -> None:
    """Writes contiguous tensors and the JSON document `about`, atomically; equal input, equal
    bytes. as_bytes: safetensors' function for tensors of another kind than numpy's."""
    document = json.dumps(about, sort_keys=True, ensure_ascii=False, allow_nan=False)
    with atomic(path) as temporary:
        # `save_file` makes a temporary file of its own, which stays when the writer is killed.
        temporary.write_bytes(as_bytes(named, {KEY: document}))


@contextmanager
def opened(path: str | Path, framework: str = "numpy") -> Iterator:
    """A safetensors file; `ArtifactError` if it is not one, or lacks a document that is read."""
    try:
        with safe_open(Path(path).expanduser(), framework=framework) as file:
            yield file
    except KeyError as error:
        raise ArtifactError(f"{path} has no metadata under {error}: not written here") from None
    except (OSError, ValueError, TypeError, RecursionError, SafetensorError) as error:
        raise ArtifactError(f"{path} is not a readable safetensors file: {error}") from error


def document_of(file) -> dict:
    """The JSON document of an `opened` file."""
    return json.loads((file.metadata() or {})[KEY])


def read_about(path: str | Path) -> dict:
    """The JSON document that was saved with the tensors of a file."""
    with opened(path) as file:
        return document_of(file)


def read_tensor(path: str | Path, name: str) -> np.ndarray:
    """The tensor `name` of a safetensors file; `ArtifactError` if it cannot be had."""
    with opened(path) as file:
        names = sorted(file.keys())
        if name in names:
            return file.get_tensor(name)
    raise ArtifactError(
        f"{path} holds no tensor {name!r}; it holds {', '.join(names[:5])}"
        + f" and {len(names) - 5} others" * (len(names) > 5)
        + " (manybody spectrum and jacobian measure language models)" * (name == "fields")
    )
