"""Comparisons by which figure 2 and its relatives judge a staircase (many-body, section 6).

Ends of runs and lengths of plateaus are judged as they are, shares of the seeds by exact tests.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from manybody.papers import claims as records
from manybody.papers.claims import Claim, Comparison, above, near
from manybody.papers.simplicity.staircase import MOVED, ON_LINE, REACHED, Group, Staircase

ONE_LAYER = 0.002  # nats per token: one layer is the same model as the 2-body fit
PLATEAU = 5.0  # epochs
FINE = PLATEAU / 2  # epochs between checkpoints that still show a plateau
SOME = 0.25  # share of the seeds
ENOUGH = 6  # seeds of which all must agree to show a rule: below 3 % by a coin
EXACT = 1.959964  # standard errors of a normal distribution's interval of 95 %, for exact tests
SEEDS = (
    f"at least {SOME:.0%} of the seeds do, by the exact 95 % interval of their share (Clopper and "
    f"Pearson)"
)


@dataclass(frozen=True)
class Share(Comparison):
    """A share of `runs` runs, with the exact interval of Clopper and Pearson."""

    deviations: float = EXACT

    def interval(self, deviations=None):
        from scipy.special import ndtr
        from scipy.stats import binomtest

        level = 1 - 2 * float(ndtr(-(deviations or self.deviations)))
        if self.unusable:
            return math.nan, math.nan
        found = binomtest(round(self.value * self.runs), self.runs).proportion_ci(level)
        return float(found.low), float(found.high)


@dataclass(frozen=True)
class MoreOften(Comparison):
    """How much larger a share of runs is than that of others; p values of Fisher's exact test.

    more, fewer: one-sided, that so many or more of the first runs, or so few, would be seen if both
    shares were one.
    """

    more: float = math.nan
    fewer: float = math.nan
    deviations: float = EXACT

    def verdict(self, deviations=None):
        from scipy.special import ndtr

        rare = ndtr(-(deviations or self.deviations))
        return "yes" if self.more < rare else "no" if self.fewer < rare else "undecided"

    def __str__(self):
        return f"{super().__str__()}, p = {self.more:.2g} (Fisher, one-sided)"


def claim(
    found: Staircase | list[Staircase],
    id: str,
    statement: str,
    parts: Iterable[Comparison],
    rule: str,
    beyond: bool = False,
) -> Claim:
    """The record of all these comparisons; not run where losses are not of the same tokens."""
    sources = found if isinstance(found, list) else [found]
    id, scope = f"simplicity/{id}", "; ".join(one.scope for one in sources)
    for one in sources:
        if len(one.predictions) > 1:
            tested = " and ".join(map(str, one.predictions))
            reason = f"runs and lines of {one.name} are tested on {tested} held-out tokens"
            return records.not_run(id, statement, reason, scope, beyond)
    return records.judged(id, statement, parts, scope, rule, beyond=beyond)


def lines(found: Staircase) -> list[Comparison]:
    """Each line lies above the next, also on the training set."""
    parts = []
    for upper, lower in pairwise(found.lines.descending):
        # Both are means over the same sequences: their own errors bound that of the difference.
        gap, error = upper.loss - lower.loss, math.hypot(upper.error, lower.error)
        label = f"{upper.name} less {lower.name}"
        parts.append(above(label, gap, error, deviations=records.STRICT))
    for low, high in pairwise(found.lines.fits):
        label = f"training set: {low.name} less {high.name}"
        parts.append(above(label, low.train - high.train, 0.0))
    return parts


def shallow(found: Staircase) -> list[Comparison]:
    """One layer ends on the 2-body line; two rest there, then end on the 3-body line: as far as
    there are such networks and lines."""
    fits = {line.order: line.loss for line in found.lines.fits}
    truth = found.lines.truth
    one, two = found.of_depth(1), found.of_depth(2)
    parts = []
    if one is not None and 2 in fits:
        end = max((run.end for run in one.runs.values()), key=lambda end: abs(end - fits[2]))
        parts.append(near("n = 1, farthest seed: end", end, 0.0, fits[2], ONE_LAYER))
    if two is not None:
        run = two.runs[two.chosen]
        if 2 in fits and truth.order > 2:
            coarse = "" if run.spacing <= FINE else f"checkpoints are {run.spacing:g} epochs apart"
            # Five epochs are enough: the bound itself is inside.
            least = math.nextafter(PLATEAU, 0)
            label = "n = 2, seed shown: epochs on the 2-body line"
            parts.append(above(label, run.dwell(fits[2]), 0.0, least, unusable=coarse))
        # Two layers cannot go below order 3; on data of order 3 the lowest line is the true one.
        third = truth.loss if truth.order == 3 else fits.get(3)
        if third is not None and truth.order >= 3:
            parts.append(near("n = 2, seed shown: end", run.end, 0.0, third, ON_LINE))
    return parts


def plateaus(found: Staircase) -> list[Comparison]:
    """The share of the deepest network's seeds that rest on every line below the data's order."""
    group, under = found.deepest, found.lines.under
    if not under:
        return []
    losses = [line.loss for line in found.lines.descending]
    runs = group.runs.values()
    unusable = ""
    if any(abs(high - low) < 2 * ON_LINE for low, high in pairwise(losses)):
        unusable = f"lines are closer than {2 * ON_LINE:g}"
    elif not all(run.spacing <= FINE for run in runs):
        unusable = "checkpoints are too far apart"
    rests = sum(all(run.dwell(line.loss) >= PLATEAU for line in under) for run in runs)
    names = " and ".join(f"{line.order}-body" for line in under)
    text = f"{group.label}: rests {PLATEAU:g} epochs on the {names} lines"
    return [_share(text, rests, len(runs), unusable)]


def arrivals(found: Staircase) -> list[Comparison]:
    """The share of the deepest network's seeds that come down to the true conditionals."""
    group, start = found.deepest, found.lines.descending[-2]
    text = f"{group.label}: comes {REACHED:.0%} of the way from {start.name} to the true line"
    return [_share(text, _reached(group, found), len(group.runs))]


def _share(text: str, count: int, runs: int, unusable: str = "") -> Share:
    share = count / runs
    error = math.sqrt(share * (1 - share) / runs)
    label = f"{text} ({count} of {runs} seeds)"
    return Share(label, share, error, (SOME, math.inf), runs, unusable=unusable)


def _reached(group: Group, found: Staircase) -> int:
    return group.counts(found.lines)["reached"]


def recipes(found: Staircase) -> list[Comparison]:
    """Another recipe reaches the data's order in a larger share of the seeds than the first."""
    from scipy.stats import fisher_exact

    first, parts = found.deepest, []
    ours, of_ours = _reached(first, found), len(first.runs)
    for group in found.protocols:
        count, runs = _reached(group, found), len(group.runs)
        counts = [[count, runs - count], [ours, of_ours - ours]]
        more, fewer = (fisher_exact(counts, side).pvalue for side in ("greater", "less"))
        label = (
            f"share of {group.label} ({count} of {runs} seeds) less that of {first.label} "
            f"({ours} of {of_ours})"
        )
        share = count / runs - ours / of_ours
        parts.append(MoreOften(label, share, more=more, fewer=fewer))
    return parts


def layer_order(found: Staircase) -> list[Comparison]:
    """The last layer moves first; the paper's order is from the last to the first."""
    group = found.deepest
    if group.layers < 2:
        return []
    last_first, downward = [], []
    for run in group.runs.values():
        *others, last = run.escapes().sort_index()
        # Checkpoints tell two layers apart unless both moved between the same two.
        if math.isfinite(last) and last not in others:
            last_first.append(last < min(others))
        moved = [*others, last]
        if sum(map(math.isfinite, moved)) >= len(moved) - 1 and len(set(moved)) == len(moved):
            downward.append(all(later > sooner for later, sooner in pairwise(moved)))
    return [
        _always(f"{group.label}: the last layer moves first", last_first),
        _always(f"{group.label}: layers move from the last to the first", downward),
    ]


def _always(text: str, seen: list[bool]) -> Comparison:
    """A rule without exception: one seed breaks it, six that keep it are enough for a yes."""
    share = sum(seen) / len(seen) if seen else math.nan
    few = f"{len(seen)} seeds tell, {ENOUGH} are needed" if all(seen) and len(seen) < ENOUGH else ""
    label = f"{text} (in {sum(seen)} of {len(seen)} seeds that tell)"
    return near(label, share, 0.0, 1.0, 1e-9, unusable=few)


MOVES = (
    f"every seed does in which checkpoints tell (mean square displacement above {MOVED:g}), of at "
    f"least {ENOUGH}"
)
NEAR_LINES = (
    f"one layer ends within {ONE_LAYER:g} nats of the 2-body line; two are within {ON_LINE:g} of "
    f"it for {PLATEAU:g} epochs or more and end within {ON_LINE:g} of the 3-body line"
)


def layers_claim(found: Staircase, figure: str) -> Claim:
    """The record of the order in which layers move."""
    return claim(
        found,
        f"{figure}/layer-order",
        "The last layer moves first, then the others down to the first (figure 2c)",
        layer_order(found),
        MOVES,
    )


def recipes_claim(found: Staircase, figure: str) -> list[Claim]:
    """The record of other recipes, where a figure has any."""
    if not found.protocols:
        return []
    return [
        claim(
            found,
            f"{figure}/recipes",
            "Another training recipe reaches the order of the data in more of its seeds",
            recipes(found),
            "the share of seeds is larger by Fisher's exact test, one-sided at 2.5 % either way",
            beyond=True,
        )
    ]
