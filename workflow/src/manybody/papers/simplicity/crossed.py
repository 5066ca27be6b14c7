"""The crossed design: is a time set by the order of interaction of a clone's generator, or by its
quality?

Over clones c that are drawn in one way (controls.md, section 5)

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
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from manybody import models
from manybody.models import labels
from manybody.papers.claims import margin
from manybody.papers.saturation import BOOTSTRAPS, SATURATION, SEED, read_kinds
from manybody.papers.simplicity import comparison, learning, spectra
from manybody.papers.simplicity.students import Evaluated, mean_loss

LATE = "late change"
MEASURES = (*SATURATION, LATE)
APART = 0.3  # nats per token: generators of one order that differ by more are not equally good
# Quantiles of the draws, four standard errors of a normal distribution apart.
TAILS = tuple(0.5 * (1 + math.erf(place / math.sqrt(2))) for place in (-2.0, 2.0))
FEWEST = 4  # clones that a regression takes: three coefficients and one to spare


class Design(NamedTuple):
    """Properties of the generators of C clones, each an array (C,).

    order: of interaction, L where only L bounds it. loss: on test text, nats per token.
    training: a number or a name, the same for early stops of one training.
    """

    order: np.ndarray
    loss: np.ndarray
    training: np.ndarray


def statistics(design: Design, y: np.ndarray, weights: np.ndarray | None = None) -> dict:
    """Shares of the variance of y (C,), coefficients, and mean differences of y over pairs of each
    kind that `matched` has; `weights` (C,) count each clone.

    Returns `order`, `loss`, `both` (R^2), `unique to order`, `unique to loss`, `order less loss`
    (R^2 of the one alone less that of the other), `doubling` (b: of y for twice the order at equal
    loss), `doubling alone` (b without the loss), and the differences. NaN where the clones do not
    tell coefficients apart, or there are no pairs.
    """
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, float)
    columns = np.log2(design.order), design.loss
    alone, slope = _fit(y, weights, columns[0])
    quality, _ = _fit(y, weights, columns[1])
    both, partial = _fit(y, weights, *columns)
    found = {
        "order": alone,
        "loss": quality,
        "both": both,
        "unique to order": both - quality,
        "unique to loss": both - alone,
        "order less loss": alone - quality,
        "doubling": partial,
        "doubling alone": slope,
    }
    for name, pairs in matched(design).items():
        each = weights[pairs].prod(axis=1)
        apart = y[pairs[:, 0]] - y[pairs[:, 1]]
        found[name] = float((each * apart).sum() / each.sum()) if each.sum() else math.nan
    return found


def _fit(y, weights, *columns) -> tuple[float, float]:
    """R^2 of a weighted least-squares fit with a constant, and the slope of the first column."""
    nothing = math.nan, math.nan
    if np.count_nonzero(weights) < FEWEST:
        return nothing
    roots = np.sqrt(weights)
    matrix = np.column_stack([np.ones(len(y)), *columns]) * roots[:, None]
    found, _, rank, _ = np.linalg.lstsq(matrix, y * roots, rcond=None)
    total = (weights * (y - np.average(y, weights=weights)) ** 2).sum()
    if rank <= len(columns) or total == 0:
        return nothing
    rest = y * roots - matrix @ found
    return float(1 - rest @ rest / total), found[1]


def matched(design: Design) -> dict[str, np.ndarray]:
    """Pairs of clones (P, 2), the one first that y is taken of, the other subtracted.

    `order at equal loss`: of different order (the higher first), losses less than `EQUAL` apart.
    `quality at equal order`: of one order, the better first by `APART` or more.
    """
    higher = np.subtract.outer(design.order, design.order)
    better = -np.subtract.outer(design.loss, design.loss)
    return {
        "order at equal loss": np.argwhere((higher > 0) & (abs(better) < comparison.EQUAL)),
        "quality at equal order": np.argwhere((higher == 0) & (better >= APART)),
    }


def estimates(
    design: Design, y: np.ndarray, bootstraps: int = BOOTSTRAPS
) -> dict[str, comparison.Interval]:
    """`statistics` of y (students, C), averaged over students, each with its interval.

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
        draws.append(statistics(design, y[chosen].mean(axis=0), counts[place]))
    pairs, found = matched(design), {}
    for name, value in statistics(design, y.mean(axis=0)).items():
        known = np.array([draw[name] for draw in draws], float)
        known = known[np.isfinite(known)]
        enough = len(known) > len(draws) / 2 and math.isfinite(value)
        error = float(np.diff(np.quantile(known, TAILS))[0]) / 4 if enough else math.nan
        involved = len(np.unique(place[pairs[name]])) if name in pairs else trainings
        found[name] = comparison.Interval(float(value), error, margin(error, involved))
    return found


class Drawn(NamedTuple):
    """Clones that are drawn in one way: their generators, and what students show on them.

    label, names: of the series, and of each clone as tables have it, as in `design`. measured: by
    definition of saturation log t, and the late change of the loss (nats per token), each
    (students, clones). found: estimates of each of them, by name.
    """

    label: str
    names: list[str]
    design: Design
    measured: dict[float | str, np.ndarray]
    found: dict[float | str, dict[str, comparison.Interval]]

    def interval(self, name: str) -> bool:
        """True where an estimate has an interval: n-grams are of one training and have none."""
        return all(math.isfinite(self.found[share][name].half) for share in SATURATION)


class Crossed(NamedTuple):
    """Measurements, by the block of the figure (`controls.Block`).

    twins, noise: of paired chains and of text with noise, by their words, log ratios of times by
    definition of saturation. changes: late changes of the loss on text, and on text with noise.
    """

    student: Evaluated
    block: Any
    series: list[Drawn]
    twins: dict[str, dict[float, comparison.Interval]]
    noise: dict[str, dict[float, comparison.Interval]]
    changes: dict[str, np.ndarray]
    spectrum: spectra.Spectra


def crossed(
    student: Evaluated,
    generators: Sequence[Evaluated],
    drawn: Mapping[str, dict],
    spectrum: spectra.Spectra,
    block: Any,
    bootstraps: int = BOOTSTRAPS,
) -> Crossed:
    """Measures all clones. drawn: by name, the documents of n-grams and of text with noise."""
    targets = student.targets

    def kinds(names, share, draws=1):
        return read_kinds(student.losses, targets, [[name] for name in names], share, draws)

    def interval(late, early):
        return {
            share: comparison.interval(*kinds([late, early], share, bootstraps), (math.nan, 0))
            for share in SATURATION
        }

    label = {name: _label(document, drawn) for name, document in targets.items()}
    series = []
    length = student.about["description"]["length"]
    for part in block.series:
        names = list(part.targets)
        made = [_generator(targets[name], generators, drawn, block.test, length) for name in names]
        orders, losses, trainings = zip(*made, strict=True)
        design = Design(np.array(orders, float), np.array(losses, float), np.array(trainings))
        measured: dict[float | str, np.ndarray] = {
            share: np.hstack([kind.times for kind in kinds(names, share)]) for share in SATURATION
        }
        measured[LATE] = np.stack(
            [learning.late_change(student, name, block.late) for name in names], axis=1
        )
        found = {measure: estimates(design, y, bootstraps) for measure, y in measured.items()}
        shown = [f"{part.label}: {label[name]} ({name})" for name in names]
        series.append(Drawn(part.label, shown, design, measured, found))
    of_clone = {
        targets[name].get("clone"): part.label
        for part in reversed(block.series)  # the first series that has a clone
        for name in part.targets
    }
    twins = {
        f"{of_clone[targets[text]['clone']]}: {label[text]}": interval(noise, text)
        for text, noise in block.twins
    }
    noise = {label[name]: interval(block.control, name) for name in block.noise}
    changes = {
        label[name]: learning.late_change(student, name, block.late)
        for name in [block.control, *block.noise]
    }
    return Crossed(student, block, series, twins, noise, changes, spectrum)


def _generator(document, generators, drawn, test, length) -> tuple[float, float, str]:
    """Order, loss on text, and training of what a target is drawn from."""
    if "generator" not in document:
        about = drawn[document["source"]]
        loss = about["card"]["loss"]["masked"]
        return about["order"], loss[0] if loss else math.nan, document["source"]
    made = document["generator"]
    tested = comparison.tested(generators, made, test)
    if tested is None:
        raise ValueError(f"{document['clone']}: its generator was not tested at its step")
    about = models.about(made["description"])
    order = about.order if about.bounded else length
    return order, mean_loss(tested)[0], f"{made['model']}, run {made['seed']}"


def _label(document: dict, drawn: Mapping[str, dict]) -> str:
    about = drawn.get(document.get("source"), {})
    if "share" in about:
        return f"text with {about['share']:.0%} noise"
    if "smoothing" in about:
        return f"{about['order']}-grams, {about['smoothing']}"
    return labels.target(document, rank=True)
