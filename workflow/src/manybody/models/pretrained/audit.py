"""Whether the checkpoints of a series can be what their names say: rules on their weights.

Published series hold wrong weights: the last ones under many early names, equal ones under several
steps. Rules compare ratios of distances only, so that they hold for any rate and schedule.
"""

from collections import Counter, defaultdict

import numpy as np

from manybody.files.atomic import to_json
from manybody.models.pretrained.marks import Marks

NEAR = 2  # checkpoints on either side of a pair that it is compared with
TOLERANCE = 0.06  # of the logarithm of a ratio of distances
SHARE = 0.75  # of the largest evidence against a checkpoint that makes another as bad


def suspects(
    marks: dict[int, Marks], losses: dict[int, tuple[float, float]]
) -> dict[int, list[str]]:
    """The steps that cannot hold what their names say, with reasons.

    marks: by step, ascending. losses: mean and standard error in nats, of the same tokens each.
    """
    found: dict[int, list[str]] = defaultdict(list)
    for rule in (_unlike, _equal):
        for step, reason in rule(marks):
            found[step].append(reason)
    return dict(found)


def table(marks: dict[int, Marks]) -> list[dict]:
    """For each step the distance to the first, the last and the one before."""
    return []


def _unlike(marks: dict[int, Marks]):
    """Checkpoints whose tensors or config are not those of most."""
    for what, of in (
        ("tensors", lambda mark: mark.shapes),
        ("config.json", lambda mark: mark.config),
    ):
        said = {step: to_json(of(mark)) for step, mark in marks.items()}
        usual, count = Counter(said.values()).most_common(1)[0] if said else ("", 0)
        for step, text in said.items():
            if text != usual:
                one = next(other for other in marks if said[other] == usual)
                mine, theirs = of(marks[step]), of(marks[one])
                keys = sorted(
                    key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key)
                )
                yield step, f"its {what} differ from those of {count} others ({keys[0]})"


def _equal(marks: dict[int, Marks]):
    """Files of weights that two steps share, but for tensors that never change."""
    seen = defaultdict(set)
    for mark in marks.values():
        for tensor, digest in mark.digests.items():
            seen[tensor].add(digest)
    moving = {tensor for tensor, digests in seen.items() if len(digests) > 1}
    holders = defaultdict(list)
    for step, mark in marks.items():
        for shard in sorted(set(mark.shards.values())):
            held = {
                tensor: digest
                for tensor, digest in mark.digests.items()
                if mark.shards[tensor] == shard and (tensor in moving or not moving)
            }
            if held:
                holders[shard, to_json(held)].append(step)
    for (shard, _), steps in holders.items():
        for step in steps if len(steps) > 1 else ():
            others = ", ".join(str(other) for other in steps if other != step)
            yield step, f"its weights ({shard}) are those of step {others}, to the last bit"


def distances(marks: list[Marks]) -> np.ndarray:
    """Distances (n, n) between checkpoints. Each tensor is measured in units of its own mean square
    distance, and weighs as many as the numbers of its projection."""
    count = len(marks)
    total, weights = np.zeros((count, count)), 0
    common = set.intersection(*(set(mark.projections) for mark in marks))
    for tensor in sorted(common):
        parts = [mark.projections[tensor] for mark in marks]
        if len({part.size for part in parts}) > 1:
            continue
        rows = np.stack(parts).reshape(count, -1).astype(np.float64)
        rows -= rows[-1]
        norms = (rows**2).sum(1)
        squares = np.maximum(norms[:, None] + norms - 2 * rows @ rows.T, 0)
        mean = squares.mean()
        if np.isfinite(mean) and mean > 0:
            total += rows.shape[1] * squares / mean
            weights += rows.shape[1]
    return np.sqrt(total / max(weights, 1))


def out_of_order(distance: np.ndarray) -> dict[int, int]:
    """The rows of `distance` (n, n) that are not where their order says, each with a row that it
    should change sides with.

    Of two checkpoints x before y, y should be farther from those before both, and x from those
    after both. The evidence is the sum of the logarithms of the two ratios, each a mean over the
    nearest `NEAR`. Those with the most pairs out of order are taken out, until none is left.
    """
    kept, found = list(range(len(distance))), {}
    while True:
        pairs = _conflicts(distance, kept)
        if not pairs:
            return found
        sums: dict[int, float] = defaultdict(float)
        others = defaultdict(list)
        for (x, y), weight in pairs.items():
            for one, other in ((x, y), (y, x)):
                sums[one] += weight
                others[one].append((weight, other))
        most = max(len(part) for part in others.values())
        worst = [row for row, part in others.items() if len(part) == most]
        if most > 1:  # two that changed places have as many; what lies between them has fewer
            least = SHARE * max(sums[row] for row in worst)
            worst = [row for row in worst if sums[row] >= least]
        for row in worst:
            found[row] = max(others[row])[1]
            kept.remove(row)


def _conflicts(distance: np.ndarray, kept: list[int]) -> dict[tuple[int, int], float]:
    """The pairs of `kept` that are out of order, with the evidence."""
    logs = np.log(np.maximum(distance[np.ix_(kept, kept)], np.finfo(float).tiny))
    count, pairs = len(kept), {}
    for i in range(count):
        before = logs[max(0, i - NEAR) : i]
        for j in range(i + 1, count):
            after = logs[j + 1 : j + 1 + NEAR]
            evidence = 0.0
            if len(before):
                evidence += (before[:, j] - before[:, i]).mean()
            if len(after):
                evidence += (after[:, i] - after[:, j]).mean()
            if evidence < -TOLERANCE:
                pairs[kept[i], kept[j]] = -evidence
    return pairs
