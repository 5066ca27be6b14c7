"""Test losses of generators of bounded order, which bound the best losses of these orders on a text
from above: how much could interactions of more than two tokens tell of it?

A bound counts where the two widest generators of its order agree.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody import models
from manybody.io import tables as stored
from manybody.io.manifest import Manifest
from manybody.io.options import Block, Text, key, refers
from manybody.measure.intervals import margin
from manybody.papers import claims as records, inputs as needed, style

AGREE = 0.005  # nats a token, between two widths
LITTLE = 0.02  # nats a token
NARROWER = ", narrower"
RULE = (
    f"the least loss of the lowest order is less than {LITTLE:g} nats a token above that of all; "
    f"undecided where the two widest generators of an order are more than {AGREE:g} nats apart"
)


class Generators(Block):
    """Generators of a text, of low to high order."""

    label: Text = key("What the text is called.")
    widths: list[list[refers("evaluations")]] = key(
        "Of each order, from low to high, two tests on the same test sequences or more: from a "
        "narrow generator to the widest.",
        min_length=2,
    )

    def runs(self, config: dict) -> list[list[needed.Tested]]:
        return [needed.runs_of(names, config) for names in self.widths]


class Bound(NamedTuple):
    """Losses of the generators of one order, from narrow to wide: sums (sequences,) in nats, and
    how many tokens of each sequence were predicted (sequences,)."""

    order: int
    sums: list[np.ndarray]
    counts: np.ndarray

    @property
    def losses(self) -> list[tuple[float, float]]:
        """Nats a token, and its standard error over sequences."""
        return [stored.ratio(sums, self.counts) for sums in self.sums]

    @property
    def apart(self) -> float:
        """Nats a token between the two widest."""
        return abs(self.losses[-2][0] - self.losses[-1][0])


def read(runs: Sequence[Sequence[needed.Tested]]) -> list[Bound]:
    """The bounds of each order, of the last checkpoints."""
    found = []
    for of_order in runs:
        sums = []
        for run in of_order:
            test = next(name for name, of in run.targets.items() if of.get("split") == "test")
            losses = stored.read_losses({run.seed: run.file("losses")})
            last = stored.select(losses, test, losses["step"].max()).sort_index()
            sums.append(last["loss_sum"].to_numpy())
        about = Manifest.read(run.file("runs"), "model").about
        order = models.about(about["description"]).order
        found.append(Bound(order, sums, last["predictions"].to_numpy()))
    return found


def gain(label: str, bounds: Sequence[Bound]) -> records.Comparison:
    """How much lower the least loss of all orders is than that of the lowest."""
    least = [min(one.sums, key=np.sum) for one in bounds]
    value, error = stored.ratio(least[0] - min(least, key=np.sum), bounds[0].counts)
    wide = [
        f"two widths of order {one.order} are {one.apart:.3f} nats apart"
        for one in bounds
        if one.apart > AGREE
    ]
    return records.below(label, value, error, LITTLE, unusable="; ".join(wide))


def rows(label: str, bounds: Sequence[Bound]) -> Iterator[pd.DataFrame]:
    """Rows of panel e."""
    for one in bounds:
        for place, (loss, error) in enumerate(reversed(one.losses)):
            series = label + NARROWER * (place > 0)
            half = margin(error, len(one.counts))
            yield style.points("e", series, place, [one.order], [loss], half)


def draw(axes, drawn: pd.DataFrame) -> None:
    """Loss against order, the widest generators filled."""
    every = drawn[drawn["panel"] == "e"]
    labels = [name for name in every["series"].unique() if not name.endswith(NARROWER)]
    for label, colour in zip(labels, style.ORDERS.values(), strict=False):
        for series, face in ((label, colour), (label + NARROWER, "white")):
            one = style.series(drawn, "e", series)
            look = dict(color=colour, markerfacecolor=face)
            style.dots(axes, one["x"], one["y"], yerr=one["y_err"], label=series, **look)
    axes.set(xlabel="order of the generator", ylabel="test loss (nats a token)")
    axes.set(title="(e) texts", xticks=sorted(set(every["x"])))
    axes.legend()
