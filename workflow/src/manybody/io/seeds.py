"""Random numbers that belong to a seed, a stream and a purpose.

A stream is a name. Two entries of the config with one seed have unrelated random numbers unless
they name the same stream, which pairs them.
"""

import hashlib
import struct
import zlib

import numpy as np


def spawn(seed: int, purpose: str, index: int = 0, stream: str = "") -> np.random.SeedSequence:
    """The seed sequence that `seed` spawns in `stream` for the `index`-th use of one purpose."""
    key = (zlib.crc32(purpose.encode()), index)
    return np.random.SeedSequence(seed, spawn_key=(*stream_key(stream), *key))


def streams_of(seed: int, names: tuple[str, ...]) -> dict[str, np.random.SeedSequence]:
    """Independent random numbers for each name."""
    return dict(zip(names, np.random.SeedSequence(seed).spawn(len(names)), strict=True))


def torch_seed(seed: int, purpose: str, index: int = 0, stream: str = "") -> int:
    """The same as a 64-bit seed of a torch generator."""
    return int(spawn(seed, purpose, index, stream).generate_state(1, np.uint64)[0])


def stream_key(stream: str) -> tuple[int, ...]:
    """Four 32-bit numbers of a stream, the same in every process; none for the empty name."""
    if not stream:
        return ()
    return struct.unpack("<4I", hashlib.sha256(stream.encode()).digest()[:16])


def run_settings(
    about: dict, description: dict, recipe: dict, seed: int, init_seed: int | str, stream: str
) -> dict:
    """The settings that identify a run and that its manifest records.

    A number as `init_seed` draws the initial weights alone, so that runs share them. "each" draws
    them from the run's own seed, in the run's own stream.
    """
    each = init_seed == "each"
    return {
        **about,
        "description": description,
        "recipe": recipe,
        "seed": seed,
        "stream": stream,
        "init_seed": seed if each else init_seed,
        "init_stream": stream if each else "",
    }


def initial_seed(settings: dict, restart: int = 0) -> int:
    """The torch seed of a run's initial weights, or of the `restart`-th of its several restarts."""
    return torch_seed(settings["init_seed"], "weights", restart, settings["init_stream"])
