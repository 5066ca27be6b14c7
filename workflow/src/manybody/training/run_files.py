"""What every training writes and says alike: its history, the data it saw, why it stopped."""

import hashlib
import math
from pathlib import Path

import numpy as np

from manybody.files.atomic import atomic

HISTORY = {
    "step": "int64",
    "epoch": "float64",
    "learning_rate": "float64",
    "split": "string",
    "loss": "float64",
    "loss_se": "float64",
    "accuracy": "float64",
    "tokens": "int64",
}


class NonFiniteLoss(RuntimeError):
    """The loss became infinite or not a number at step `step`."""

    step: int | None = None


def fingerprint(tokens, description: dict) -> str:
    """sha256 of tokens (sequences, L), read once; `ValueError` if the model does not fit them."""
    if tokens.shape[1] != description["length"]:
        raise ValueError(
            f"the sequences have length {tokens.shape[1]}, the model {description['length']}; "
            "train it on the source it was made for"
        )
    digest = hashlib.sha256(f"{tokens.dtype} {tokens.shape}".encode())
    for start in range(0, len(tokens), 2**16):
        part = np.ascontiguousarray(tokens[start : start + 2**16])
        if part.max() >= description["vocabulary"]:
            raise ValueError(
                f"the sequences hold the token {part.max()}, the model's vocabulary ends before "
                f"{description['vocabulary']}; train it on the source it was made for"
            )
        digest.update(part)
    return digest.hexdigest()


def write_history(path: Path, rows: list[dict]) -> None:
    """Writes history.parquet; the columns are those of `checkpoints.history`."""
    import pyarrow as pa
    from pyarrow import parquet

    # From buffers: made of lists or arrays, columns would cost the import of pandas.
    columns = []
    for name, kind in HISTORY.items():
        values = [row[name] for row in rows]
        if kind == "string":
            text = [value.encode() for value in values]
            starts = np.cumsum([0, *map(len, text)], dtype="int32")
            buffers = [pa.py_buffer(starts), pa.py_buffer(b"".join(text))]
        else:
            values = [math.nan if value is None else value for value in values]
            buffers = [pa.py_buffer(np.array(values, kind))]
        kind = getattr(pa, kind)()
        columns.append(pa.Array.from_buffers(kind, len(rows), [None, *buffers], null_count=0))
    table = pa.Table.from_arrays(columns, list(HISTORY))
    with atomic(path) as temporary:
        parquet.write_table(table, temporary, write_page_checksum=True)
