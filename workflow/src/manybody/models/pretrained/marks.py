"""Marks of the weights of a checkpoint, by which it is compared with others.

Of each tensor its sha256, and 4,096 numbers: a random projection that is the same for all
checkpoints, in which distances are those of the tensors within a few percent. A smaller tensor is
kept as it is.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from manybody.io.atomic import to_json
from manybody.io.checkpoints import read_tensors, write_tensors
from manybody.io.seeds import stream_key
from manybody.models.pretrained.layout import Layout

SIZE = 4096
CHUNK = 2**22  # numbers of a tensor that are projected at once
KEPT = ("digests", "shapes", "shards", "config")


class Marks(NamedTuple):
    """By tensor: its sha256, its type and shape, its file, and its projection where it has
    fractional numbers; and what the checkpoint's config says."""

    digests: dict[str, str]
    shapes: dict[str, list]
    shards: dict[str, str]
    config: dict
    projections: dict[str, np.ndarray]


def take(folder: Path, layout: Layout, config: dict, checkpoint: dict, kept: Path) -> Marks:
    """The marks of the checkpoint in a folder, from the folder `kept` where they are there.

    `checkpoint` is what the record of the series says of it, with the digests of its files.
    """
    name = hashlib.sha256(to_json({**checkpoint, "size": SIZE}).encode()).hexdigest()[:32]
    path = kept / f"{name}.safetensors"
    if path.is_file():
        found, about = read_tensors(path)
        return Marks(*(about[key] for key in KEPT), {key: found[key].numpy() for key in found})
    digests: dict[str, str] = {}
    projections: dict[str, np.ndarray] = {}
    for shard in sorted({part[2] for part in layout.tensors.values()}):
        with safe_open(folder / shard, framework="pt") as opened:
            for tensor in opened.keys():  # noqa: SIM118
                value = opened.get_tensor(tensor)
                data = value.contiguous().flatten().view(torch.uint8).numpy()
                digests[tensor] = hashlib.sha256(data).hexdigest()
                if value.is_floating_point():
                    projections[tensor] = projection(value, tensor)
    shapes = {tensor: [part[0], part[1]] for tensor, part in layout.tensors.items()}
    shards = {tensor: part[2] for tensor, part in layout.tensors.items()}
    marks = Marks(digests, shapes, shards, config, projections)
    saved = {tensor: torch.from_numpy(part) for tensor, part in projections.items()}
    write_tensors(path, saved, dict(zip(KEPT, marks, strict=False)))
    return marks


def projection(value: Tensor, name: str) -> np.ndarray:
    """`SIZE` numbers, single precision: a sum of the tensor's numbers, `SIZE` at a time, each with
    a random sign and each row turned by a random angle. Inner products are those of the tensors on
    average.

    Signs and angles depend on the tensor's name and shape alone.
    """
    flat = value.contiguous().flatten()
    if flat.numel() <= SIZE:
        return flat.float().numpy().copy()
    entropy = np.random.SeedSequence(0, spawn_key=stream_key(name))
    generator = np.random.Generator(np.random.PCG64(entropy))
    turned = np.zeros(2 * SIZE)
    for part in flat.split(CHUNK):
        rows = -(-part.numel() // SIZE)
        numbers = np.zeros(rows * SIZE, np.float32)
        numbers[: part.numel()] = part.float().numpy()
        signs = np.frombuffer(generator.bytes(rows * SIZE // 8), np.uint8)
        numbers.view(np.uint32)[:] ^= np.unpackbits(signs).astype(np.uint32) << 31
        angles = generator.integers(0, SIZE, rows)
        for angle, row in zip(angles, numbers.reshape(rows, SIZE), strict=True):
            turned[angle : angle + SIZE] += row
    return (turned[:SIZE] + turned[SIZE:]).astype(np.float32)
