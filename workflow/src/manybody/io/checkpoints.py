"""A model's weights as safetensors, and the checkpoints of a finished run."""

from pathlib import Path

import torch
from safetensors.torch import save as as_bytes

from manybody.io.atomic import ArtifactError
from manybody.io.manifest import Manifest
from manybody.io.tensor_files import document_of, opened, write_document

Run = str | Path | Manifest  # a run's manifest, or where it is


def tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, detached; a tensor that modules share is listed once."""
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        found.setdefault(id(tensor), (name, tensor.detach()))
    return dict(found.values())


def save(path: str | Path, model: torch.nn.Module, about: dict) -> None:
    """Writes the weights of `model` and the JSON document `about`; equal input, equal bytes."""
    write_tensors(path, tensors(model), about)


def write_tensors(path: str | Path, named: dict[str, torch.Tensor], about: dict) -> None:
    """Writes tensors and one JSON document to a safetensors file, atomically."""
    write_document(
        path, {name: tensor.cpu().contiguous() for name, tensor in named.items()}, about, as_bytes
    )


def read_tensors(path: str | Path) -> tuple[dict[str, torch.Tensor], dict]:
    """Tensors and JSON document of a file that `write_tensors` wrote, else `ArtifactError`."""
    with opened(path, "pt") as file:
        # The file's own tensors may start anywhere; copies are aligned like any other tensor, so
        # that vectorised arithmetic rounds the same way.
        named = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        return named, document_of(file)


def heads(path: str | Path) -> dict[str, tuple[str, list[int]]]:
    """Type and shape of each tensor in a safetensors file, from its header alone; `ArtifactError`
    for a file that is missing, cut short or of another format."""
    with opened(path) as file:
        parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        return {name: (part.get_dtype(), part.get_shape()) for name, part in parts.items()}


def load_into(path: str | Path, model: torch.nn.Module) -> dict:
    """Copies the weights in `path` into `model` (`copy_into`), and returns their document."""
    named, about = read_tensors(path)
    copy_into(model, named, path)
    return about


def copy_into(model: torch.nn.Module, named: dict[str, torch.Tensor], origin: str | Path) -> None:
    """Copies `named` into the parameters and buffers of `model`. `ArtifactError` names the first
    tensor that is missing, superfluous or of another shape or type."""
    own = tensors(model)
    for name in sorted(own.keys() ^ named.keys()):
        side = "lacks" if name in own else "holds, but the model lacks,"
        raise ArtifactError(f"{origin} {side} the tensor {name!r}; it belongs to another model")
    for name, tensor in own.items():
        if (tensor.shape, tensor.dtype) != (named[name].shape, named[name].dtype):
            raise ArtifactError(
                f"{origin}: {name} is {named[name].dtype} {tuple(named[name].shape)}, the model's "
                f"is {tensor.dtype} {tuple(tensor.shape)}; it belongs to another model"
            )
        tensor.copy_(named[name])


def checkpoint_steps(manifest: Run) -> list[int]:
    """Steps whose weights a finished run kept, ascending."""
    return list(as_manifest(manifest).about["steps"])


def history(manifest: Run):
    """The run's history as a table of pandas, a row a checkpoint and split.

    Columns: step, epoch, learning_rate (of the step to come), split (train: mean over the batches
    since the last checkpoint; validation), loss (nats per predicted token), loss_se (over
    sequences; NaN for train), accuracy, tokens (predicted: so far; in the validation set).
    """
    from pyarrow import parquet

    path = as_manifest(manifest).file("history.parquet")
    return parquet.read_table(path, page_checksum_verification=True).to_pandas()


def checkpoint_at_loss(manifest: Run, target: float) -> int:
    """The kept step whose validation loss (nats) is nearest to `target`; the earlier of equals.

    With it a strong generator is stopped at the loss of a weak one, so that the two differ in their
    order of interaction and not in quality.
    """
    table = history(manifest)
    table = table[table["split"] == "validation"].sort_values("step", kind="stable")
    return int(table["step"].iloc[int((table["loss"] - target).abs().argmin())])


def chosen_step(manifest: Run, step: int | str | dict, reference: str | Path | None = None) -> int:
    """The kept step that a config's `step` means: "last", a number, or {"loss_of": ...}, the step
    nearest to the final validation loss of the run whose manifest is `reference`."""
    if isinstance(step, dict):
        return checkpoint_at_loss(
            manifest, Manifest.read(reference, "model").about["final"]["validation_loss"]
        )
    return checkpoint_steps(manifest)[-1] if step == "last" else step


def as_manifest(manifest: Run) -> Manifest:
    return manifest if isinstance(manifest, Manifest) else Manifest.read(manifest, "model")
