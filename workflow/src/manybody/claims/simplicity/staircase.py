"""What figure 2 says: the claims of many-body, section 6, judged on the runs that were read.

Exact rows are identities. Statistical rows are about the samples and the lines, and, at the
default setting of the specification, about how large the gaps are: these are gates. How networks
learn, by the paper's recipe and by our own, is a claim. Gates that ask for the default setting are
left out on any other source.
"""

import math
from itertools import pairwise

import pandas as pd
from scipy.special import betaincinv

from manybody.claims import verdicts
from manybody.claims.simplicity.staircase_runs import MOVED, ON_LINE, REACHED, Group, Part

# many-body, section 3: the setting at which the numbers below were measured. More sequences and
# sweeps are as good.
DEFAULT = {
    "order": 4,
    "length": 10,
    "vocabulary": 5,
    "couplings": {"vectors": 1000, "variables": "signs", "probability": 0.8},
    "colours": "potts",
    "logit_scale": 5.0,
}
AT_LEAST = {"sweeps": 15, "train": 25600, "validation": 4096}
GAPS = {1: 0.05, 2: 0.05, 3: 0.02}  # from the line of this order to the next lower one
ONE_LAYER = 0.002  # one layer and the 2-body fit are the same model
PLATEAU = 5.0  # epochs
FINE = PLATEAU / 2  # epochs between checkpoints that still show a plateau
SOME = 0.25  # share of the seeds
ALL = 6  # seeds of which all must agree to show a rule: below 3 % by a coin
RARE = 0.025  # on each side of an exact interval or test
IDENTITIES = {  # quantity of the table: words, kind, bound, whether it must be above
    "degree above": ("largest coefficient above degree 2^(n-1), relative", "exact", 1e-10, False),
    "degree top": ("largest coefficient of degree 2^(n-1), relative", "exact", 1e-3, True),
    "masking single": ("all masks at once or one by one, single precision", "exact", 1e-5, False),
    "masking double": ("all masks at once or one by one, double precision", "exact", 1e-12, False),
    "gibbs": (
        "Gibbs sampling against enumeration, total variation over its sampling floor",
        "statistical",
        1.3,
        False,
    ),
}


def all_claims(part: Part, figure: str) -> list[dict]:
    """Every claim about the data, the lines and the networks of one part."""
    return [
        *sample_claims(part, figure),
        *line_claims(part, figure),
        *shallow_claims(part, figure),
        *staircase_claims(part, figure),
        *order_claims(part, figure),
        *protocol_claims(part, figure),
    ]


def seed_claims(part: Part, figure: str, elsewhere: str | None = None) -> list[dict]:
    """How often runs reach the data's order, by each recipe, and in which order layers move.

    elsewhere: a figure that draws the same runs by the first recipe and has the claims about them.
    """
    rows = protocol_claims(part, figure)
    if elsewhere is None:
        rows = [_reached(part.deepest, part, figure), *rows, *order_claims(part, figure)]
    return rows


def departure(source: dict) -> str:
    """Why a source is not the specification's default setting; empty if it is."""
    sizes = {"sweeps": source["sweeps"], **source["sequences"]}
    reasons = [f"{key} = {source[key]}" for key in DEFAULT if source[key] != DEFAULT[key]]
    reasons += [f"{key} = {sizes[key]}" for key, least in AT_LEAST.items() if sizes[key] < least]
    return f"not the default setting: {', '.join(reasons)}" if reasons else ""


# --- Identities ----------------------------------------------------------------------------------


def exact_claims(theory: pd.DataFrame | None, figure: str) -> list[dict]:
    """The identities of `claims.identities.many_body`; none where the figure names no `exact`."""
    rows = []
    for quantity, (words, kind, bound, above) in IDENTITIES.items() if theory is not None else ():
        found = theory[theory["quantity"] == quantity]
        if not len(found):
            rows.append(verdicts.failed(f"{figure}: {words}", kind, "no such row in `exact`"))
            continue
        for series, value in zip(found["series"], found["y"], strict=True):
            holds = "yes" if (value > bound if above else value < bound) else "no"
            expected = f"{'>' if above else '<'} {bound:g}"
            claim = f"{figure}: {words}, {series}"
            rows.append(verdicts.row(claim, kind, holds, value, 0.0, expected, 0.0))
    return rows


# --- Samples and lines ---------------------------------------------------------------------------


def sample_claims(part: Part, figure: str) -> list[dict]:
    """The samples are those of the Hamiltonian, and all losses are on the same ones."""
    test, sites = part.self_test, part.source["sequences"]["validation"] * part.source["length"]
    rows = [verdicts.self_test(figure, test, sites)]
    claim = f"{figure}: the true conditionals as a model have the sampler's cross-entropy"
    rows.append(verdicts.identity(claim, part.lines.truth[0], test["cross_entropy"], verdicts.SAME))
    counts = sorted(set(part.predictions.values()))
    claim = f"{figure}: networks and lines are tested on equally many held-out tokens"
    holds = "yes" if len(counts) == 1 else "no"
    return [*rows, verdicts.row(claim, "exact", holds, counts[-1], 0.0, counts[0], 0.0)]


def line_claims(part: Part, figure: str) -> list[dict]:
    """Each order's line is above the next; at the default setting by how much, and where."""
    lines, elsewhere = part.lines, departure(part.source)
    ladder = [(1, lines.marginals)]
    ladder += [(order, lines.fits[order]) for order in lines.under()] + [(lines.order, lines.truth)]
    rows = []
    for (low, upper), (high, lower) in pairwise(ladder):
        # Both are means over the same sequences: their own errors bound that of the difference.
        gap, error = upper[0] - lower[0], math.hypot(upper[1], lower[1])
        names = f"{_name(low)} line above the {_name(high, lines.order)} one"
        if elsewhere:
            rows.append(verdicts.gap(f"{figure}: {names}", gap, error))
        else:
            least = GAPS[low]
            claim = f"{figure}: {names}, by more than {least:g}"
            rows.append(_above(claim, gap, error, least, "statistical"))
    fitted = {f"{order}-body fit": value for order, value in lines.fits.items()}
    for name, (loss, error) in fitted.items():
        claim = f"{figure}: the {name} does not beat the true conditionals"
        # A bound: it fails only where the fit is below by three standard errors.
        difference, error = loss - lines.truth[0], math.hypot(error, lines.truth[1])
        margin = verdicts.DEVIATIONS * error
        if not math.isfinite(margin):
            rows.append(
                verdicts.failed(claim, "statistical", f"its standard error is {error}", "> 0")
            )
            continue
        holds = "no" if difference < -margin else "yes"
        rows.append(verdicts.row(claim, "statistical", holds, difference, error, "> 0", -margin))
    train = [(order, lines.train[order]) for order in sorted(lines.train)]
    for (low, worse), (high, better) in pairwise(train):
        claim = f"{figure}: {high}-body fits the training set better than {low}-body"
        kind = "paper" if elsewhere else "statistical"
        holds = "yes" if worse > better else "no" if worse <= better else "undecided"
        rows.append(verdicts.row(claim, kind, holds, worse - better, math.nan, "> 0", 0.0))
    return rows


def _name(order: int, truth: int = 0) -> str:
    if order == truth:
        return "true"
    return "single-site" if order == 1 else f"{order}-body"


def _above(claim: str, value: float, error: float, bound: float, kind: str) -> dict:
    """value > bound, by two standard errors either way."""
    margin = verdicts.ERRORS * error
    holds = verdicts.decided(value - margin > bound, value + margin < bound)
    return verdicts.row(claim, kind, holds, value, error, f"> {bound:g}", 0.0)


# --- Networks ------------------------------------------------------------------------------------


def shallow_claims(part: Part, figure: str) -> list[dict]:
    """One layer ends on the 2-body line; two rest there, then end on the 3-body line: as far as
    there are such networks and lines."""
    lines, fits, rows = part.lines, part.lines.fits, []
    one, two = part.of_depth(1), part.of_depth(2)
    if one is not None and 2 in fits:
        claim = f"{figure}: n = 1 ends on the 2-body line (farthest seed)"
        line = fits[2][0]
        end = max(one.ends, key=lambda end: abs(end - line))
        rows.append(_ends_on(claim, end, line, ONE_LAYER))
    if two is not None and 2 in lines.under():
        run = two.runs[two.chosen]
        claim = f"{figure}: n = 2 rests on the 2-body line (epochs within {ON_LINE:g}, chosen seed)"
        rows.append(_rests(claim, run.dwell(fits[2][0]), run.spacing))
    # Two layers cannot go below order 3; on data of order 3 the lowest line is the true one.
    line = lines.truth if lines.order == 3 else fits.get(3)
    if two is not None and line is not None and lines.order >= 3:
        claim = f"{figure}: n = 2 ends on the 3-body line (chosen seed)"
        rows.append(_ends_on(claim, two.runs[two.chosen].end, line[0], ON_LINE))
    return rows


def _ends_on(claim: str, end: float, line: float, tolerance: float) -> dict:
    holds = "yes" if abs(end - line) <= tolerance else "no"
    return verdicts.row(claim, "paper", holds, end, math.nan, line, tolerance)


def _rests(claim: str, epochs: float, spacing: float) -> dict:
    """At least five epochs on a line; undecided where checkpoints are too far apart to tell."""
    holds = "undecided" if not spacing <= FINE else "yes" if epochs >= PLATEAU else "no"
    return verdicts.row(claim, "paper", holds, epochs, math.nan, f">= {PLATEAU:g}", 0.0)


def staircase_claims(part: Part, figure: str) -> list[dict]:
    """The deepest network: a plateau on every line below the data's order, then the last step."""
    group, lines = part.deepest, part.lines
    under = lines.under()
    plateaus = " and ".join(f"{order}-body" for order in under)
    claim = f"{figure}: n = {group.layers} rests on the {plateaus} lines, 5 epochs each"
    values = [lines.marginals[0], *under.values(), lines.truth[0]]
    close = [low for low, high in pairwise(values) if abs(high - low) < 2 * ON_LINE]
    if not under:
        rows = []
    elif close:
        rows = [verdicts.not_run(claim, f"lines closer than {2 * ON_LINE:g}: nobody can tell")]
    elif any(not run.spacing <= FINE for run in group.runs.values()):
        rows = [verdicts.row(f"{claim} (share of the seeds)", "paper", "undecided")]
    else:
        rests = [
            all(run.dwell(line) >= PLATEAU for line in under.values())
            for run in group.runs.values()
        ]
        rows = [_share(f"{claim} (share of the seeds)", sum(rests), len(rests), SOME)]
    return [*rows, _reached(group, part, figure)]


def _reached(group: Group, part: Part, figure: str) -> dict:
    reached = group.counts(part.lines)["reached"]
    claim = (
        f"{figure}: {group.label} comes {REACHED:.0%} of the way from the "
        f"{_name(part.lines.below())} line to the true one ({reached} of {len(group.runs)} seeds)"
    )
    return _share(claim, reached, len(group.runs), SOME)


def protocol_claims(part: Part, figure: str) -> list[dict]:
    """Another training protocol reaches the data's order in a larger share of the seeds.

    Decided by Fisher's exact test, one-sided at 2.5 % either way: few seeds of each are enough
    where the shares differ as much as they do.
    """
    first, rows = part.deepest, []
    ours = first.counts(part.lines)["reached"], len(first.runs)
    for group in part.protocols:
        reached, seeds = group.counts(part.lines)["reached"], len(group.runs)
        region = f"the {part.lines.order}-body region"
        claim = (
            f"{figure}, beyond the paper: {group.label} reaches {region} in more of its seeds "
            f"({reached} of {seeds}) than {first.label} ({ours[0]} of {ours[1]})"
        )
        difference = reached / seeds - ours[0] / ours[1]
        more, fewer = fisher(reached, seeds, *ours), fisher(*ours, reached, seeds)
        holds = verdicts.decided(more < RARE, fewer < RARE)
        rows.append(verdicts.row(claim, "paper", holds, difference, math.nan, "> 0", 0.0))
    return rows


def fisher(reached: int, seeds: int, other: int, others: int) -> float:
    """One-sided p value that so many of the first runs or more reached, if both shares are one."""
    both = reached + other
    more = range(reached, min(seeds, both) + 1)
    ways = sum(math.comb(seeds, k) * math.comb(others, both - k) for k in more)
    return ways / math.comb(seeds + others, both)


def exact_interval(count: int, runs: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `count` of `runs` were seen (Clopper and Pearson)."""
    low = betaincinv(count, runs - count + 1, RARE) if count else 0.0
    high = betaincinv(count + 1, runs - count, 1 - RARE) if count < runs else 1.0
    return float(low), float(high)


def _share(claim: str, count: int, seeds: int, least: float) -> dict:
    """A share of the seeds of at least `least`, by its exact interval."""
    share = count / seeds
    low, high = exact_interval(count, seeds)
    holds = "yes" if low >= least else "no" if high < least else "undecided"
    error = math.sqrt(share * (1 - share) / seeds)
    claim = f"{claim} [95 % interval {low:.2f} to {high:.2f}]"
    return verdicts.row(claim, "paper", holds, share, error, f">= {least:g}", 0.0)


def order_claims(part: Part, figure: str) -> list[dict]:
    """The last layer moves first; the paper's order is from the last to the first."""
    group = part.deepest
    when = f"(mean square displacement above {MOVED:g}; share of the seeds in which it is seen)"
    first = f"{figure}: n = {group.layers}, the last layer moves first {when}"
    down = f"{figure}: n = {group.layers}, layers move from the last to the first {when}"
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
    return [_always(first, last_first), _always(down, downward)]


def _always(claim: str, seen: list[bool]) -> dict:
    """A rule without exception: one seed breaks it, six that keep it are enough for a yes."""
    claim = f"{claim} [{len(seen)} seeds tell]"
    if not seen:
        return verdicts.row(claim, "paper", "undecided", expected=1)
    share = sum(seen) / len(seen)
    error = math.sqrt(share * (1 - share) / len(seen))
    holds = "no" if not all(seen) else "yes" if len(seen) >= ALL else "undecided"
    return verdicts.row(claim, "paper", holds, share, error, 1, 0.0)
