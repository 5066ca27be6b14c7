"""Is a time set by the order of interaction of a clone's generator, or by the generator's quality?

Over clones c of one kind of chains (controls.md, section 5)

    y_c = a + b log2(order_c) + c loss_c + rest

with y the log of a saturation time, or a late change of the loss. R^2 of the order alone, of the
loss alone and of both say what each can account for; what is unique to one is R^2 of both less that
of the other alone. Two more numbers need no straight line: the mean difference of y over pairs of
clones whose generators are of equal loss and of different order, and over pairs of one order whose
losses are far apart.

Two kinds of chance enter: students, and generators. Early stops of one training are not
independent, so that whole trainings are drawn again, with students, in a bootstrap. Its standard
error is a quarter of the range that holds 95 % of the draws, as few draws with nearly equal
generators are far off. The half width of the 95 % interval is that error times Student's t with one
degree less than there are trainings; the range itself would cover too seldom.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from manybody.papers.claims import margin

EQUAL = 0.05  # nats per token: generators whose test losses differ by less are equally good
APART = 0.3  # nats per token: generators of one order that differ by more are not
BOOTSTRAPS = 1000
SEED = 0
# Quantiles of the draws, four standard errors of a normal distribution apart.
TAILS = tuple(0.5 * (1 + math.erf(place / math.sqrt(2))) for place in (-2.0, 2.0))
FEWEST = 4  # clones that a regression takes: three coefficients and one to spare


class Design(NamedTuple):
    """Properties of the generators of C clones, each an array (C,).

    order: of interaction, L where only L bounds it. loss: on test text, nats per token.
    training: a whole number, the same for early stops of one training.
    """

    order: np.ndarray
    loss: np.ndarray
    training: np.ndarray


class Estimate(NamedTuple):
    """A number, its standard error and the half width of its 95 % interval; NaN if not defined."""

    value: float
    error: float
    half: float

    @property
    def low(self) -> float:
        return self.value - self.half

    @property
    def high(self) -> float:
        return self.value + self.half

    def __str__(self) -> str:
        if not math.isfinite(self.half):
            return f"{self.value:.2f}, no interval"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def regression(design: Design, y: np.ndarray, weights: np.ndarray | None = None) -> dict:
    """Shares of the variance of y (C,) and coefficients; `weights` (C,) count each clone.

    Returns `order`, `loss`, `both` (R^2), `unique to order`, `unique to loss`, `order less loss`
    (R^2 of the one alone less that of the other), `doubling` (b: of y for twice the order at equal
    loss), `doubling alone` (b without the loss) and `nat` (c). NaN where the clones do not tell
    coefficients apart.
    """
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, float)
    order, loss = np.log2(design.order), np.asarray(design.loss, float)
    alone, slope = _fit(y, weights, order)
    quality, _ = _fit(y, weights, loss)
    both, slopes = _fit(y, weights, order, loss)
    return {
        "order": alone,
        "loss": quality,
        "both": both,
        "unique to order": both - quality,
        "unique to loss": both - alone,
        "order less loss": alone - quality,
        "doubling": slopes[0],
        "doubling alone": slope[0],
        "nat": slopes[1],
    }


def _fit(y, weights, *columns) -> tuple[float, np.ndarray]:
    """R^2 and the slopes of a weighted least-squares fit with a constant."""
    nothing = math.nan, np.full(len(columns), math.nan)
    if np.count_nonzero(weights) < FEWEST:
        return nothing
    roots = np.sqrt(weights)
    matrix = np.column_stack([np.ones(len(y)), *columns]) * roots[:, None]
    found, _, rank, _ = np.linalg.lstsq(matrix, y * roots, rcond=None)
    mean = np.average(y, weights=weights)
    total = (weights * (y - mean) ** 2).sum()
    if rank <= len(columns) or total == 0:
        return nothing
    rest = y * roots - matrix @ found
    return float(1 - rest @ rest / total), found[1:]


def matched(design: Design) -> dict[str, np.ndarray]:
    """Pairs of clones (P, 2), the one first that y is taken of, the other subtracted.

    `order at equal loss`: of different order (the higher first), losses less than `EQUAL` apart.
    `quality at equal order`: of one order, the better first by `APART` or more.
    """
    order, loss = np.asarray(design.order, float), np.asarray(design.loss, float)
    one, two = np.meshgrid(range(len(loss)), range(len(loss)), indexing="ij")
    apart = loss[two] - loss[one]
    chosen = {
        "order at equal loss": (order[one] > order[two]) & (abs(apart) < EQUAL),
        "quality at equal order": (order[one] == order[two]) & (apart >= APART),
    }
    return {name: np.argwhere(where) for name, where in chosen.items()}


def differences(design: Design, y: np.ndarray, weights: np.ndarray | None = None) -> dict:
    """The mean difference of y (C,) over each kind of `matched` pairs; NaN where there are none."""
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, float)
    found = {}
    for name, pairs in matched(design).items():
        each = weights[pairs].prod(axis=1)
        apart = y[pairs[:, 0]] - y[pairs[:, 1]]
        found[name] = float((each * apart).sum() / each.sum()) if each.sum() else math.nan
    return found


def statistics(design: Design, y: np.ndarray, weights: np.ndarray | None = None) -> dict:
    """`regression` and `differences`."""
    return regression(design, y, weights) | differences(design, y, weights)


def estimates(
    design: Design,
    y: np.ndarray,
    of: Callable[..., dict] = statistics,
    bootstraps: int = BOOTSTRAPS,
) -> dict[str, Estimate]:
    """Numbers `of` y (students, C), averaged over students, each with its interval.

    One training has no interval. Draws in which a number is not defined are left out; if these are
    more than half of all, it has no interval either.
    """
    students = len(y)
    _, place = np.unique(design.training, return_inverse=True)
    trainings = place.max() + 1
    generator = np.random.default_rng(SEED)
    draws = []
    for _ in range(bootstraps if trainings > 1 else 0):
        counts = np.bincount(generator.integers(0, trainings, trainings), minlength=trainings)
        chosen = generator.integers(0, students, students)
        draws.append(of(design, y[chosen].mean(axis=0), counts[place]))
    found = {}
    for name, value in of(design, y.mean(axis=0)).items():
        known = np.array([draw[name] for draw in draws], float)
        known = known[np.isfinite(known)]
        enough = len(known) > len(draws) / 2 and math.isfinite(value)
        error = float(np.diff(np.quantile(known, TAILS))[0]) / 4 if enough else math.nan
        involved = _involved(design, name, trainings)
        found[name] = Estimate(float(value), error, margin(error, involved))
    return found


def _involved(design: Design, name: str, trainings: int) -> int:
    """The number of trainings that a number is taken from."""
    pairs = matched(design).get(name)
    if pairs is None:
        return trainings
    return len(np.unique(np.asarray(design.training)[pairs]))


def consistent(answers: Sequence[str]) -> str:
    """The answer on which all definitions agree, else undecided."""
    return answers[0] if len(set(answers)) == 1 else "undecided"
