"""Which of the paper's claims about clones survive which control.

Of every series of clones: does the time follow the order of interaction at all, does the order say
more than the generator's quality, and does it say anything at equal loss (by regression, by pairs)?
Of both ends of a twin, of text with noise, and of the student's own spectrum: is what the clones
show a sign of their order? An answer needs both definitions of saturation.
"""

import math

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.saturation import SATURATION
from manybody.claims.simplicity import crossed, spectrum
from manybody.claims.simplicity.comparison import BOUND
from manybody.claims.simplicity.crossed import Crossed, Series
from manybody.claims.simplicity.regression import Estimate, consistent

TRIPLED = math.log2(3)  # doublings from order 3 to order 9


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return claims(crossed.read(files, block, context))


def claims(design: Crossed) -> pd.DataFrame:
    """The rows, control by control."""
    rows = [row for one in design.series for row in of_series(one)]
    rows += across(design.series)
    rows += [of_twins(words, found) for words, found in design.twins.items()]
    rows += of_noise(design)
    rows += spectrum.half_times(design.spectrum)
    return verdicts.table(rows)


def above(claim: str, found: dict[float, Estimate], bound: float) -> dict:
    """Whether a number lies above a bound, by the intervals of all definitions of saturation."""
    answers = [verdicts.decided(one.low > bound, one.high < bound) for one in found.values()]
    first = next(iter(found.values()))
    values = "; ".join(f"{share:.0%}: {one}" for share, one in found.items())
    claim = f"{claim} ({values})"
    return verdicts.row(
        claim, "paper", consistent(answers), first.value, first.error, f"> {bound:.3g}", first.half
    )


def of_series(one: Series) -> list[dict]:
    """What clones that are drawn in one way say: the claim as it stands, and under each control."""

    def by_share(name, scale=1.0):
        return {
            share: Estimate(*(scale * number for number in one.found[share][name]))
            for share in SATURATION
        }

    count = f"controls, {one.label}, {len(one.targets)} clones"
    asked = {
        "doubling alone": ("without control: log t grows with the order", 1.0, 0.0),
        "order less loss": (
            "the order accounts for more of log t than the generator's loss: difference of R²",
            1.0,
            0.0,
        ),
        "doubling": (
            "at equal loss, by regression: order 9 saturates later than order 3, by a factor above "
            "1.25",
            TRIPLED,
            BOUND,
        ),
        "order at equal loss": (
            "at equal loss, in pairs: the higher order saturates later, by a factor above 1.25",
            1.0,
            BOUND,
        ),
        "quality at equal order": (
            "at equal order, in pairs: the better generator's clone saturates later, by a factor "
            "above 1.25",
            1.0,
            BOUND,
        ),
    }
    return [
        above(f"{count}, {claim}", by_share(name, scale), bound)
        for name, (claim, scale, bound) in asked.items()
        if one.interval(name)
    ]


def across(series: list[Series]) -> list[dict]:
    """Whether the order matters at equal loss in all samplers alike, by regression."""
    answers = {}
    for one in series:
        if one.interval("doubling"):
            found = [one.found[share]["doubling"] for share in SATURATION]
            scaled = [(TRIPLED * each.low, TRIPLED * each.high) for each in found]
            answers[one.label] = consistent(
                [verdicts.decided(low > BOUND, high < BOUND) for low, high in scaled]
            )
    if len(answers) < 2:
        return []
    claim = "controls, at equal loss the order sets the time whatever draws the clones"
    told = ", ".join(f"{label}: {answer}" for label, answer in answers.items())
    holds = verdicts.together([{"holds": answer} for answer in answers.values()])
    return [verdicts.row(f"{claim} ({told})", "paper", holds)]


def of_twins(words: str, found: dict) -> dict:
    """Whether chains from noise give the same time as those from text, within a factor 1.25."""
    answers = [
        verdicts.decided(
            abs(one.value) + one.half < BOUND,
            abs(one.value) - one.half > BOUND,
        )
        for one in found.values()
    ]
    first = next(iter(found.values()))
    values = "; ".join(f"{share:.0%}: {one}" for share, one in found.items())
    claim = f"controls, twins: the start does not set the time, within a factor 1.25: {words}"
    claim = f"{claim}, from noise less from text ({values})"
    return verdicts.row(claim, "paper", consistent(answers), first.value, first.error, "0", BOUND)


def of_noise(design: Crossed) -> list[dict]:
    """Whether text with noise, which is of any order, shows what low orders are known by."""
    first, last = design.steps
    rows = []
    for words, found in design.noise.items():
        answers = [verdicts.decided(one.high < BOUND, one.low > BOUND) for one in found.values()]
        one = next(iter(found.values()))
        values = "; ".join(f"{share:.0%}: {each}" for share, each in found.items())
        claim = f"controls, noise: {words} does not saturate before text by a factor above 1.25"
        claim = (
            f"{claim}: an early time is a sign of low order (log t of text less its own {values})"
        )
        rows.append(
            verdicts.row(
                claim,
                "paper",
                consistent(answers),
                one.value,
                one.error,
                f"< {BOUND:.3g}",
                one.half,
            )
        )
        claim = f"controls, noise: the loss on {words} falls from step {first} to {last}"
        claim = f"{claim}: a late rise is a sign of low order"
        rows.append(verdicts.positive(claim, -design.changes[words]))
    return rows
