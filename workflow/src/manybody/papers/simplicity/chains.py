"""Comparisons of the chains of clones: settled, away from their start, and in agreement.

The score is -E / L, in nats a position, averaged over chains; sweeps are those of the trace.
"""

from typing import NamedTuple

import pandas as pd

from manybody.io import tables
from manybody.measure import chains as measured
from manybody.measure.chains import FORGOTTEN, RHAT
from manybody.measure.intervals import margin
from manybody.models import labels
from manybody.papers import claims as records
from manybody.papers.claims import Comparison
from manybody.papers.inputs import Clone

DRIFT = 0.01  # of the score's total change, over the last quarter of the sweeps


class Chains(NamedTuple):
    """A clone: `about` of its manifest, and its trace."""

    about: dict
    trace: pd.DataFrame

    @classmethod
    def read(cls, clone: Clone) -> "Chains":
        """The clone of a key that knows its files."""
        return cls(*tables.read_trace(clone.file()))

    @property
    def label(self) -> str:
        """Its generator's, with the start where that is noise."""
        name = labels.generator(self.about["generator"]["description"])
        return f"{name}, from noise" if self.about["chain_init"] == "unigram" else name

    def kept(self, sweep: int) -> tuple[float, float]:
        """Share of positions that hold the token they started from, and its standard error."""
        return measured.kept(self.trace, sweep, self.about["chains"])


def settled(chains: Chains, sweep: int) -> Comparison:
    """The score drifts by less than 1 % of its total change in the last quarter of the sweeps."""
    label = f"{chains.label}, {sweep} sweeps: share of the score's change in the last quarter"
    return records.near(label, *measured.drift(chains.trace, sweep), 0.0, DRIFT)


def forgotten(chains: Chains, sweep: int) -> Comparison:
    """Less than a tenth of the positions hold the token that the chain started from."""
    label = f"{chains.label}, {sweep} sweeps: share of the start's tokens"
    return records.below(label, *chains.kept(sweep), FORGOTTEN)


def mixed(chains: Chains) -> Comparison:
    """Split R-hat of the score is below 1.05; it has no error."""
    rhat = measured.rhat_of(chains.trace)
    return records.below(f"{chains.label}: split R-hat of the score", rhat, 0.0, RHAT)


def agreement(
    text: Chains, noise: Chains, losses: tuple[pd.DataFrame, pd.DataFrame], sweep: int
) -> list[Comparison]:
    """Scores and their generator's losses of chains from noise, less those of chains from text.

    losses: of chains from text and from noise, as `tables.select` gives them. No difference is
    shown where each lies within its own margin of zero (Student, over chains).
    """
    count = min(one.about["chains"] for one in (text, noise))
    own = [
        tables.ratio(sums["loss_sum"].to_numpy(float), sums["predictions"].to_numpy(float))
        for sums in losses
    ]
    found = measured.agreement((text.trace, noise.trace), own, sweep, count)
    values = {"score": found.score, "loss of the generator": found.loss}
    return [
        records.near(
            f"{noise.label}, {sweep} sweeps: {name} (± {error:.2g}) less that from text",
            *(value, error, 0.0),
            margin(error, count),
            deviations=0.0,  # the margin is the region's
        )
        for name, (value, error) in values.items()
    ]
