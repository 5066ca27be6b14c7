"""How much could interactions of more than two tokens tell of a text? Test losses of generators of
bounded order bound the best losses of these orders from above, where the two widest ones agree."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

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
Tested = refers(
    "evaluations",
    wanted="of one run of bounded order, on the test split of its source",
    fits=lambda one, config: (
        len(one.seeds) == 1 and config.models[one.model].about.order and _test(one.targets)
    ),
)


class Generators(Block):
    """Generators of a text, of low to high order."""

    label: Text = key("What the text is called.")
    widths: list[Annotated[list[Tested], Field(min_length=2)]] = key(
        "Of each order, from low to high, two evaluations or more on the same test sequences: from "
        "a narrow generator to the widest.",
        min_length=2,
    )

    def runs(self, config: dict) -> list[list[needed.Tested]]:
        return [needed.runs_of(names, config) for names in self.widths]


def _test(targets: Mapping) -> str | None:
    """The name of the target that is the test split of the source itself."""
    for name, target in targets.items():
        plain = target if isinstance(target, dict) else vars(target)
        if plain.get("split") == "test" and not plain.get("source"):
            return name
    return None


class Bound(NamedTuple):
    """The generators of one order, from narrow to wide: sums of their test losses by sequence."""

    order: int
    sums: list[pd.DataFrame]

    @property
    def losses(self) -> list[tuple[float, float]]:
        """Nats a token, and its standard error over sequences."""
        return [stored.ratio(one["loss_sum"], one["predictions"]) for one in self.sums]

    @property
    def least(self) -> pd.DataFrame:
        return min(self.sums, key=lambda one: one["loss_sum"].sum())

    @property
    def apart(self) -> float:
        """Nats a token between the two widest."""
        return abs(stored.paired_difference(*self.sums[-2:])[0])


def read(runs: Sequence[Sequence[needed.Tested]]) -> list[Bound]:
    """The bounds of each order, of the last checkpoints."""
    found = []
    for of_order in runs:
        sums = [
            stored.select(stored.read_losses({one.seed: one.file("losses")}), _test(one.targets))
            for one in of_order
        ]
        about = Manifest.read(of_order[-1].file("runs"), "model").about
        found.append(Bound(models.about(about["description"]).order, sums))
    return found


def claims(bounds: Mapping[str, Sequence[Bound]]) -> list[records.Claim]:
    if not bounds:
        return []
    statement = "Generators of order above two fit a text little better than those of order two"
    scope = "one run of each generator; errors over test sequences"
    parts = [gain(*one) for one in bounds.items()]
    return [records.judged("simplicity/order/text", statement, parts, scope, RULE)]


def gain(label: str, bounds: Sequence[Bound]) -> records.Comparison:
    """The least loss of the lowest order less that of all orders."""
    best = min((one.least for one in bounds), key=lambda one: one["loss_sum"].sum())
    value, error = stored.paired_difference(best, bounds[0].least)
    wide = [
        f"two widths of order {one.order} are {one.apart:.3f} nats apart"
        for one in bounds
        if one.apart > AGREE
    ]
    return records.below(label, value, error, LITTLE, unusable="; ".join(wide))


def rows(label: str, bounds: Sequence[Bound]) -> Iterator[pd.DataFrame]:
    for one in bounds:
        for place, (loss, error) in enumerate(reversed(one.losses)):
            series = label + NARROWER * (place > 0)
            half = margin(error, len(one.least))
            yield style.points("e", series, place, one.order, loss, half)


def draw(axes, drawn: pd.DataFrame) -> None:
    every = drawn[drawn["panel"] == "e"]
    labels = [name for name in every["series"].unique() if not name.endswith(NARROWER)]
    for label, colour in zip(labels, cycle(("black", "0.6")), strict=False):
        for series, face in ((label, colour), (label + NARROWER, "white")):
            one = style.series(drawn, "e", series)
            look = dict(color=colour, markerfacecolor=face)
            style.dots(axes, one["x"], one["y"], yerr=one["y_err"], label=series, **look)
    axes.set(xlabel="order of the generator", ylabel="test loss (nats a token)")
    axes.set(title="(e) texts", xticks=np.unique(every["x"]))
    axes.legend(ncols=2)
