"""Claims as records, and the rules by which numbers decide them.

A `Comparison` says yes where the interval of one number lies inside the region in which a statement
holds, no where it lies outside, else undecided. A `Claim` is one statement of a paper, or one that
was found beyond it, with the comparisons that decide it and the rule by which they count together.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from manybody.io.atomic import ArtifactError, atomic
from manybody.measure.intervals import ERRORS, margin, mean

VERDICTS = ("yes", "no", "undecided", "not-run")
STRICT = 3.0  # standard errors, of differences over sequences


@dataclass(frozen=True)
class Comparison:
    """One number against the region in which the statement holds.

    error: standard error of `value`, estimated from `runs` values (None: very many). resolution: a
    further error that more runs do not lower, as the spacing of checkpoints. deviations: standard
    errors of the interval. half: its half width, where that does not follow from error and runs.
    unusable: why the value cannot be judged, if it cannot.
    """

    label: str
    value: float
    error: float = math.nan
    region: tuple[float, float] = (0.0, math.inf)
    runs: float | None = None
    resolution: float = 0.0
    deviations: float = ERRORS
    half: float | None = None
    unusable: str = ""

    def interval(self, deviations: float | None = None) -> tuple[float, float]:
        """The ends of the interval; NaN where the error is not known."""
        if self.unusable or math.isnan(self.value):
            return math.nan, math.nan
        count = self.deviations if deviations is None else deviations
        if self.half is None:
            width = math.hypot(margin(self.error, self.runs, count), count * self.resolution)
        else:
            width = self.half * count / self.deviations
        return self.value - width, self.value + width

    def verdict(self, deviations: float | None = None) -> str:
        """yes, no, or undecided, also where value or error is not a number."""
        low, high = self.interval(deviations)
        least, most = self.region
        if low > least and high < most:
            return "yes"
        return "no" if high < least or low > most else "undecided"

    def room(self) -> float:
        """Half widths to the edge of the region; below 0 outside, infinite where not known."""
        low, high = self.interval()
        edge = min(self.value - self.region[0], self.region[1] - self.value)
        room = edge / max((high - low) / 2, 1e-300)
        return math.inf if math.isnan(room) else room

    def __str__(self) -> str:
        if self.unusable:
            return f"{self.label}: {self.unusable}"
        return f"{self.label}: {written(self.value, *self.interval())}"


def above(label: str, value: float, error: float, bound: float = 0.0, **others) -> Comparison:
    return Comparison(label, value, error, (bound, math.inf), **others)


def below(label: str, value: float, error: float, bound: float, **others) -> Comparison:
    return Comparison(label, value, error, (-math.inf, bound), **others)


def near(
    label: str, value: float, error: float, expected: float, tolerance: float, **others
) -> Comparison:
    """A value that must differ from the expected one by less than the tolerance."""
    return Comparison(label, value, error, (expected - tolerance, expected + tolerance), **others)


def unusable(label: str, reason: str) -> Comparison:
    return Comparison(label, math.nan, unusable=reason)


def over_seeds(
    label: str, differences: Sequence[float], bound: float = 0.0, **others
) -> Comparison:
    """The mean of differences over runs that differ by their seed, which must be above a bound.

    others: `deviations`, and `resolution`: the standard deviation of a difference of times by the
    spacing of checkpoints, which all runs share.
    """
    if not len(differences) or not all(map(math.isfinite, differences)):
        return unusable(label, "a run has no such number")
    value, error, runs = mean(differences)
    return above(label, value, error, bound, runs=runs, **others)


@dataclass(frozen=True)
class Claim:
    """A statement, what was measured, and the verdict.

    id: {paper}/{figure}/{name}, unique in a run. value, low, high: those of the comparison that
    decides. rule: what would be yes, and what no. scope: corpus, scale, runs. because: how the
    verdict came about. reference: section, figure or table of the paper, empty where the statement
    was found here. parts: the comparisons that count, which are not written to files. sentence:
    what was found, with intervals, for the head of the page and the end of a run.
    """

    id: str
    statement: str
    value: float
    low: float
    high: float
    rule: str
    verdict: Literal[VERDICTS]
    scope: str
    because: str
    reference: str = ""
    parts: tuple[Comparison, ...] = ()
    sentence: str = ""

    @property
    def cited(self) -> str:
        return f"{self.statement} ({self.reference})" if self.reference else self.statement

    def says(self, sentence: str, values: Sequence[str]) -> "Claim":
        """The claim with a sentence, whose {} is the values; the claim as it is without any."""
        return replace(self, sentence=sentence.format(" and ".join(values))) if values else self


def judged(
    id: str,
    statement: str,
    parts: Comparison | Iterable[Comparison] | str,
    scope: str,
    rule: str,
    unanimous: bool = False,
    reference: str = "",
) -> Claim:
    """The claim that comparisons decide together; not run without any, or where `parts` says why.

    rule: what one comparison must show, as the end of "yes if ...". The verdict is yes if all say
    yes, and no if one says no by an interval widened for their number (Bonferroni), so that many
    comparisons are as rarely wrong as one. unanimous: it is no if all say no.
    """
    if isinstance(parts, str):
        return not_run(id, statement, parts, scope, reference)
    parts = (parts,) if isinstance(parts, Comparison) else tuple(parts)
    if not parts:
        return not_run(id, statement, "there is nothing to compare", scope, reference)
    count, answers = len(parts), [part.verdict() for part in parts]
    if unanimous:
        refuted = parts if set(answers) == {"no"} else []
        counted = f"all, or none, of {count} comparisons: "
    else:
        refuted = [part for part in parts if part.verdict(_widened(part, count)) == "no"]
        counted = "" if count == 1 else f"all of {count} comparisons: "
    verdict = "no" if refuted else "yes" if set(answers) == {"yes"} else "undecided"
    # The verdict hangs on the one nearest the edge of its region among those that say yes, on the
    # one farthest outside among those that say no, or do not say yes.
    deciding = refuted or [
        part
        for part, answer in zip(parts, answers, strict=True)
        if (answer == "yes") == (verdict == "yes")
    ]
    shown = min(deciding, key=lambda part: part.room())
    counts = ", ".join(f"{answers.count(one)} {one}" for one in VERDICTS if one in answers)
    because = str(shown) if count == 1 else f"{counts}; {shown}"
    ends = shown.interval()
    return Claim(
        id, statement, shown.value, *ends, counted + rule, verdict, scope, because, reference, parts
    )


def all_judged(
    prefix: str, given: Mapping[str, tuple], scope: str, reference: str = ""
) -> list[Claim]:
    """Claims by the last part of their names: statement, comparisons and rule of each, and its
    reference where that is not the same for all."""
    return [
        judged(
            f"{prefix}/{name}", statement, parts, scope, rule, reference="".join(own) or reference
        )
        for name, (statement, parts, rule, *own) in given.items()
    ]


def not_run(id: str, statement: str, reason: str, scope: str = "", reference: str = "") -> Claim:
    return Claim(id, statement, *[math.nan] * 3, "", "not-run", scope, reason, reference)


def _widened(part: Comparison, count: int) -> float:
    """Standard errors at which `count` comparisons are together as rarely wrong as one."""
    from scipy.special import ndtr, ndtri

    return float(-ndtri(ndtr(-part.deviations) / count))


def counted(count: int, noun: str) -> str:
    """A number of things: 1 run, 2 runs."""
    return f"{count} {noun}{'s' if count > 1 else ''}"


def written(value: float, low: float, high: float) -> str:
    """A value with its interval, to two digits of the half width; to four digits without one."""
    width = (high - low) / 2
    if not math.isfinite(value):
        return "no value"
    if not (width > 0 and math.isfinite(width)):
        return f"{value:.4g}"
    places = max(0, 1 - math.floor(math.log10(width)))
    return f"{value:.{places}f} ({low:.{places}f} to {high:.{places}f})"


COLUMNS = tuple(field.name for field in fields(Claim) if field.name != "parts")


def write(claims: Iterable[Claim], path: str | Path) -> None:
    """Writes claims as CSV, one a row. Raises `ValueError` where two have the same id."""
    claims = list(claims)
    names = [claim.id for claim in claims]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: found more than one claim with the id {', '.join(repeated)}")
    with atomic(path) as temporary:
        pd.DataFrame(claims, columns=COLUMNS).to_csv(
            temporary, index=False, float_format="%.7g", lineterminator="\n", na_rep="nan"
        )


def read(path: str | Path) -> list[Claim]:
    """Claims that `write` wrote, without comparisons; `ArtifactError` names any other file."""
    # A cut character leaves a cut row, which is refused below.
    with Path(path).open(encoding="utf-8", errors="replace", newline="") as opened:
        reader = csv.DictReader(opened)
        columns, rows = tuple(reader.fieldnames or ()), list(reader)
    if columns != COLUMNS:
        raise ArtifactError(
            f"{path} has the columns [{', '.join(columns)}], expected "
            f"{', '.join(COLUMNS)}; delete it and run snakemake again"
        )
    try:
        return TypeAdapter(list[Claim]).validate_python(rows)
    except ValidationError as error:
        first = error.errors()[0]
        raise ArtifactError(
            f"{path} is refused: found a row that is no whole claim ({first['loc'][-1]}: "
            f"{first['msg']}); delete it and run snakemake again"
        ) from error
