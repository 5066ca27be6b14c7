"""Audit of a series: rules on weights that tell checkpoints which are not what they are called.

Published series hold wrong weights: the last ones under many early names, equal ones under several
steps. Rules compare ratios of distances only, so that they hold for any rate and schedule.

Checkpoints are compared by marks: of each tensor its sha256, and 4,096 numbers, the same random
projection for all checkpoints, whose distances are the tensors' within a few percent.
"""

import hashlib
import math
import re
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from manybody.io.atomic import to_json
from manybody.io.checkpoints import read_tensors, write_tensors
from manybody.io.seeds import stream_key
from manybody.models.pretrained.layout import TABLES, Layout

NEAR = 2  # checkpoints on either side of a pair that it is compared with
TOLERANCE = 0.06  # of the logarithm of a ratio of distances
JUMP, ERRORS = 0.25, 5  # of a loss: share of the span of all losses, and standard errors
SIZE = 4096
CHUNK = 2**22  # numbers of a tensor that are projected at once
# Names of heads, which some versions of a program write although they are the embedding.
HEAD = re.compile(r"(?!.*\.\d+\.)(.*\.)?(lm_head|embed_out|decoder|output)\.weight$")
KEPT = ("tensors", "digests", "config")


class Marks(NamedTuple):
    """By tensor: its type, shape and file, its sha256, and its projection where it has fractional
    numbers; and what the checkpoint's config says."""

    tensors: dict[str, tuple[str, list[int], str]]
    digests: dict[str, str]
    config: dict
    projections: dict[str, np.ndarray]


def take(folder: Path, layout: Layout, config: dict, checkpoint: dict, kept: Path) -> Marks:
    """The marks of the checkpoint in a folder, which the series records as `checkpoint`, from the
    folder `kept` where they are there. Tables that are computed anew have none, nor has a head that
    is the embedding."""
    asked = {**checkpoint, "size": SIZE, "kept": KEPT, "without": [TABLES, HEAD.pattern]}
    name = hashlib.sha256(to_json({**asked, "config": config}).encode()).hexdigest()[:32]
    path = kept / f"{name}.safetensors"
    if path.is_file():
        found, about = read_tensors(path)
        return Marks(*(about[key] for key in KEPT), {key: found[key].numpy() for key in found})
    digests, projections = {}, {}
    for shard in sorted({part[2] for part in layout.tensors.values()}):
        with safe_open(folder / shard, framework="pt") as opened:
            for tensor in opened.keys():  # noqa: SIM118
                if re.search(TABLES, tensor):
                    continue
                value = opened.get_tensor(tensor)
                data = value.contiguous().flatten().view(torch.uint8).numpy()
                digests[tensor] = hashlib.sha256(data).hexdigest()
                if value.is_floating_point():
                    projections[tensor] = projection(value, tensor)
    counts = Counter(digests.values())
    digests = {
        name: one for name, one in digests.items() if not HEAD.match(name) or counts[one] < 2
    }
    projections = {name: part for name, part in projections.items() if name in digests}
    tensors = {name: part for name, part in layout.tensors.items() if name in digests}
    marks = Marks(tensors, digests, config, projections)
    arrays = {tensor: torch.from_numpy(part) for tensor, part in projections.items()}
    write_tensors(path, arrays, dict(zip(KEPT, marks, strict=False)))
    return marks


def projection(value: Tensor, name: str) -> np.ndarray:
    """`SIZE` numbers, single precision, or those of a smaller tensor: a sum of the tensor's, `SIZE`
    at a time, each with a random sign and each row turned by a random angle, which depend on its
    name and shape alone. Inner products are those of the tensors on average."""
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


def suspects(
    marks: dict[int, Marks], losses: dict[int, tuple[float, float]]
) -> dict[int, list[str]]:
    """The steps that cannot hold what their names say, with reasons.

    marks: by step, ascending. losses: mean and standard error in nats, of the same tokens each.
    """
    found = defaultdict(list)
    for step, reason in _unlike(marks):
        found[step].append(reason)
    similar = {step: mark for step, mark in marks.items() if step not in found}
    misplaced = {[*similar][row] for row in out_of_order(distances([*similar.values()]))}
    for step in sorted(misplaced):
        found[step].append("its weights lie elsewhere on the way from the first to the last")
    for step, reason in [*_equal(similar, misplaced), *_jumps(losses)]:
        found[step].append(reason)
    return dict(sorted(found.items()))


def _jumps(losses: dict[int, tuple[float, float]]):
    """Losses that are not finite, or above or below those of both neighbours by a large part of
    what the whole series lowers them by."""
    steps = [step for step, (loss, _) in losses.items() if np.isfinite(loss)]
    for step in losses.keys() - set(steps):
        yield step, "its loss is not finite"
    values = [losses[step][0] for step in steps]
    span = max(values, default=0.0) - min(values, default=0.0)
    for step, before, loss, after in zip(steps[1:], values, values[1:], values[2:], strict=False):
        apart = loss - before, loss - after
        jump = min(map(abs, apart))
        if math.prod(apart) > 0 and jump > JUMP * span + ERRORS * losses[step][1]:
            yield (
                step,
                f"its loss, {loss:.3f} nats, jumps from {before:.3f} and back to {after:.3f}",
            )


def _unlike(marks: dict[int, Marks]):
    """Checkpoints whose tensors, by name and shape, or config are not those of most, or that hold
    no numbers."""
    for step, mark in marks.items():
        wrong = (name for name, part in mark.projections.items() if not np.isfinite(part).all())
        if tensor := next(wrong, None):
            yield step, f"its tensor {tensor} holds numbers that are not finite"
    configs, shapes = {step: mark.config for step, mark in marks.items()}, {}
    for step, mark in marks.items():
        shapes[step] = {name: shape for name, (_, shape, _) in mark.tensors.items()}
    for what, parts in {"tensors": shapes, "config.json": configs}.items():
        said = {step: to_json(part) for step, part in parts.items()}
        usual, count = Counter(said.values()).most_common(1)[0] if said else ("", 0)
        for step, mine in parts.items():
            if said[step] != usual:
                theirs = next(part for other, part in parts.items() if said[other] == usual)
                keys = mine.keys() | theirs.keys()
                key = min(key for key in keys if mine.get(key) != theirs.get(key))
                yield step, f"its {what} differ from those of {count} others ({key})"


def _equal(marks: dict[int, Marks], misplaced: set[int]):
    """Files of weights that two steps share, but for tensors that never change. Where all of the
    steps but one are out of order, that one is believed."""
    seen = defaultdict(set)
    for mark in marks.values():
        for tensor, digest in mark.digests.items():
            seen[tensor].add(digest)
    moving = {tensor for tensor, digests in seen.items() if len(digests) > 1}
    holders = defaultdict(list)
    for step, mark in marks.items():
        held = defaultdict(dict)
        for tensor in moving or mark.digests:
            held[mark.tensors[tensor][2]][tensor] = mark.digests[tensor]
        for shard in sorted(held):
            holders[shard, to_json(held[shard])].append(step)
    for (shard, _), steps in holders.items():
        doubted = misplaced if len(set(steps) - misplaced) == 1 else steps
        for step in steps:
            others = ", ".join(str(other) for other in steps if other != step)
            if others and step in doubted:
                yield step, f"its weights ({shard}) are those of step {others}, to the last bit"


def distances(marks: list[Marks]) -> np.ndarray:
    """Distances (n, n) between checkpoints whose tensors have the same shapes, each in units of its
    own mean square distance and weighed by the numbers of its projection."""
    count = len(marks)
    total, weights = np.zeros((count, count)), 0
    for tensor in sorted(marks[0].projections) if marks else ():
        parts = [mark.projections[tensor] for mark in marks]
        rows = np.stack(parts).reshape(count, -1).astype(np.float64)
        rows -= rows[-1]
        norms = (rows**2).sum(1)
        squares = np.maximum(norms[:, None] + norms - 2 * rows @ rows.T, 0)
        mean = squares.mean()
        if mean > 0:
            total += rows.shape[1] * squares / mean
            weights += rows.shape[1]
    return np.sqrt(total / max(weights, 1))


def out_of_order(distance: np.ndarray) -> set[int]:
    """The rows of `distance` (n, n) that are not where their order says.

    Of two checkpoints x before y, y should be farther from those before both, and x from those
    after both. The evidence is the sum of the logarithms of these two ratios, each a mean over the
    nearest `NEAR`. The fewest are taken out that leave no pair out of order: one, or two that
    changed places, and so on; where any of several would do, all.
    """
    positive = distance[distance > 0]
    if not positive.size:
        return set()
    logs = np.log(np.maximum(distance, positive.min() / 2))
    kept, found = list(range(len(distance))), set()
    while (evidence := _against(logs, kept)).any():
        groups = [(row,) for row in kept]
        left = _left(logs, kept, groups)
        if min(left):
            pairs = list(combinations(kept, 2))
            without = _left(logs, kept, pairs)
            # A pair has to do more than one of it and the best other.
            if min(without) == 0 or min(without) < min(left) / 2:
                groups, left = pairs, without
        best = [group for group, count in zip(groups, left, strict=True) if count == min(left)]
        if len(best[0]) == 2:  # of two that changed places the evidence against both is largest
            best = [max(best, key=lambda pair: evidence[tuple(map(kept.index, pair))])]
        gone = {row for group in best for row in group}
        found |= gone
        kept = [row for row in kept if row not in gone]
    return found | _exchanged(logs, kept, found)


def _exchanged(logs: np.ndarray, kept: list[int], found: set[int]) -> set[int]:
    """The rows of `kept` that have changed places with one that was taken out: with the two
    exchanged no pair is out of order."""
    partners = set()
    for row in found:
        for other in kept:
            swapped = {row: other, other: row}
            tried = [swapped.get(one, one) for one in sorted([*kept, row])]
            if not _against(logs, tried).any():
                partners.add(other)
    return partners


def _left(logs: np.ndarray, kept: list[int], groups: list[tuple[int, ...]]) -> list[int]:
    """Number of pairs that are out of order without each of the groups."""
    return [
        np.count_nonzero(_against(logs, [row for row in kept if row not in group]))
        for group in groups
    ]


def _against(logs: np.ndarray, kept: list[int]) -> np.ndarray:
    """Evidence (n, n) against the order of each pair of `kept`, 0 where below `TOLERANCE`."""
    logs = logs[np.ix_(kept, kept)]
    count, total = len(kept), np.zeros_like(logs)
    for k in range(count):
        if k > 0:
            near = logs[max(0, k - NEAR) : k].mean(0)
            total[k, k + 1 :] += near[k] - near[k + 1 :]
        if k < count - 1:
            near = logs[k + 1 : k + 1 + NEAR].mean(0)
            total[:k, k] += near[k] - near[:k]
    return np.where(total > TOLERANCE, total, 0.0)
