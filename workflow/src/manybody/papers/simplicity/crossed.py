"""The crossed design: clones of generators that differ in order, in quality and in their chains.

A block (`controls.Block`) has `series` of clones that are drawn in one way, `twins` (the same
generator and chains from text and from noise), text with `noise`, the `spectrum` of the students,
and `late`, two steps between which a loss rises or falls.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from manybody import models
from manybody.io import tables
from manybody.models import labels
from manybody.papers.saturation import SATURATION, read_kinds
from manybody.papers.simplicity import comparison, regression, spectra
from manybody.papers.simplicity.comparison import Interval
from manybody.papers.simplicity.regression import Design, Estimate
from manybody.papers.simplicity.students import Evaluated

LATE = "late change"
MEASURES = (*SATURATION, LATE)


class Drawn(NamedTuple):
    """Clones that are drawn in one way: their generators, and what students show on them.

    targets, labels: an entry a clone, as in `design`. measured: by definition of saturation log t,
    and the late change of the loss (nats per token), each (students, clones). found: estimates of
    each of them, by name.
    """

    label: str
    targets: list[str]
    labels: list[str]
    design: Design
    measured: dict[float | str, np.ndarray]
    found: dict[float | str, dict[str, Estimate]]

    def interval(self, name: str) -> bool:
        """True where an estimate has an interval: n-grams are of one training and have none."""
        return all(math.isfinite(self.found[share][name].half) for share in SATURATION)


class Crossed(NamedTuple):
    """Measurements; of paired chains and noise by their words, each by definition of saturation."""

    student: Evaluated
    block: Any
    series: list[Drawn]
    twins: dict[str, dict[float, Interval]]
    noise: dict[str, dict[float, Interval]]
    changes: dict[str, np.ndarray]
    spectrum: spectra.Spectra

    @property
    def steps(self) -> tuple[int, int]:
        return tuple(self.block.late)


def crossed(
    student: Evaluated,
    generators: Sequence[Evaluated],
    drawn: Mapping[str, dict],
    spectrum: spectra.Spectra,
    block: Any,
    bootstraps: int = regression.BOOTSTRAPS,
) -> Crossed:
    """Measures all clones. drawn: by name, the documents of n-grams and of text with noise."""

    def kinds(names, share, draws=1):
        each = [[name] for name in names]
        return read_kinds(student.losses, student.targets, each, share, draws)

    def interval(late, early):
        return {
            share: comparison.interval(*kinds([late, early], share, bootstraps), (math.nan, 0))
            for share in SATURATION
        }

    series = []
    for part in block.series:
        names, length = part.targets, student.about["description"]["length"]
        made = [
            _generator(student.targets[name], generators, drawn, block.test, length)
            for name in names
        ]
        words, orders, losses, trainings = zip(*made, strict=True)
        _, numbers = np.unique(trainings, return_inverse=True)
        design = Design(np.array(orders, float), np.array(losses, float), numbers)
        measured: dict[float | str, np.ndarray] = {
            share: np.hstack([kind.times for kind in kinds(names, share)]) for share in SATURATION
        }
        late = [late_change(student.losses, name, *block.late) for name in names]
        measured[LATE] = np.stack(late, axis=1)
        found = {
            measure: regression.estimates(design, y, bootstraps=bootstraps)
            for measure, y in measured.items()
        }
        series.append(Drawn(part.label, list(names), list(words), design, measured, found))
    label = {name: _label(student.targets[name], drawn) for name in student.targets}
    twins = {
        f"{_series_of(block, student.targets, text)}: {label[text]}": interval(noise, text)
        for text, noise in block.twins
    }
    noise = {label[name]: interval(block.control, name) for name in block.noise}
    changes = {
        label[name]: late_change(student.losses, name, *block.late)
        for name in [block.control, *block.noise]
    }
    return Crossed(student, block, series, twins, noise, changes, spectrum)


def _series_of(block: Any, targets: dict, name: str) -> str:
    """The label of the first series that has a target's clone."""
    return next(
        part.label
        for part in block.series
        if any(targets[other].get("clone") == targets[name]["clone"] for other in part.targets)
    )


def late_change(losses: pd.DataFrame, target: str, first: int, last: int) -> np.ndarray:
    """Change of a target's loss between two checkpoints, (students,), in nats per token."""
    mine = losses[(losses["target"] == target) & losses["step"].isin([first, last])]
    sums = mine.groupby(["seed", "step"])[["loss_sum", "predictions"]].sum()
    mean = (sums["loss_sum"] / sums["predictions"]).unstack("step")
    return (mean[last] - mean[first]).to_numpy(float)


def _generator(document, generators, drawn, test, length) -> tuple[str, float, float, str]:
    """Label, order, loss on text, and training of what a target is drawn from."""
    if "generator" not in document:
        about = drawn[document["source"]]
        loss = about["card"]["loss"]["masked"]
        label = _label(document, drawn)
        return label, about["order"], loss[0] if loss else math.nan, document["source"]
    made = document["generator"]
    about = models.about(made["description"])
    tested = comparison.tested(generators, made, test)
    if tested is None:
        raise ValueError(f"{document['clone']}: its generator was not tested at its step")
    loss, _ = tables.ratio(*(tested[key].to_numpy(float) for key in ("loss_sum", "predictions")))
    order = about.order if about.bounded else length
    return _label(document, drawn), order, loss, f"{made['model']}, run {made['seed']}"


def _label(document: dict, drawn: Mapping[str, dict]) -> str:
    """The name of a target."""
    about = drawn.get(document.get("source"), {})
    if "share" in about:
        return f"text with {about['share']:.0%} noise"
    if "smoothing" in about:
        return f"{about['order']}-grams, {about['smoothing']}"
    return labels.target(document, rank=True)
