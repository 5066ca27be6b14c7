"""What a figure says about each claim: rows `claim, kind, value, ..., holds`.

`kind` is `exact` (an identity), `statistical` (our own measured value within its error) or `paper`
(a claim of the paper, measured here). The first two are gates: `holds` is `confirmed` (the value is
within the tolerance by its error), `consistent` (the value's interval reaches into the tolerance
and out of it) or `contradicted` (it lies outside, or there is no usable value). Of a claim of the
paper `holds` is `yes`, `no`, `undecided` or `not-run`. `expected` is a number, or a bound such as
"> 0" with the margin by which it must be passed in `tolerance`. Numbers of claims are those of the
table in nlp-clones, section 10. Rules of decision, once:

- over seeds: a difference d > 0 holds if the 95 % interval of its mean (Student's, with the spacing
  of checkpoints where d is a time) lies above zero, and fails if it lies below; an interval that
  holds zero, and one seed, decide nothing;
- over sequences: a gap holds if it is above 3 standard errors, fails if below minus 3;
- bounds: |value - expected| must be below the tolerance by the value's 95 % interval (`margin`);
  above it by as much, it fails. An error known from few runs has the margin of Student's t.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from manybody.claims.saturation import SATURATION, saturations
from manybody.claims.scorecard import ANSWERS, COLUMNS, GATES
from manybody.io import tables
from manybody.measure import chains as measured
from manybody.measure.chains import FORGOTTEN, MET, RHAT, Agreement, agreement, drift, in_words
from manybody.measure.intervals import DEVIATIONS, ERRORS, decided, margin

__all__ = [  # measured by `measure.chains` and `measure.intervals`
    "DEVIATIONS",
    "ERRORS",
    "FORGOTTEN",
    "MET",
    "RHAT",
    "Agreement",
    "agreement",
    "decided",
    "drift",
    "in_words",
    "margin",
]

KINDS = (*GATES, "paper")
# What a rule of decision answers, and the word for it where it decides a gate.
GATE_ANSWERS = {"yes": "confirmed", "undecided": "consistent", "no": "contradicted"}

OVERLAP = 0.1  # ratio of early loss drops: 1 +- this
DRIFT = 0.01  # of the score's total change, over the last quarter of the sweeps
SWEEPS = 0.02  # relative difference of losses that count as equal (sweeps, starts)
SAME = 2e-5  # nats per token, between a sum in single and one in double precision
IDENTITY = 1e-4  # nats per token, between two single-precision sums of the same terms


def row(
    claim: str,
    kind: str,
    holds: str,
    value: float = math.nan,
    standard_error: float = math.nan,
    expected: str | float = "",
    tolerance: float = math.nan,
) -> dict:
    """A claim and what it came to; `holds` is the answer of a rule, or a gate's word for it.

    A gate without a finite value is contradicted, whatever `holds` says. Raises `ValueError` for a
    kind or an answer that does not exist, and for a gate that was not run: a gate that does not
    apply is no row.
    """
    answers = ANSWERS["paper"]
    if kind not in KINDS or holds not in answers or (kind in GATES and holds == "not-run"):
        raise ValueError(
            f"claim {claim!r}: found kind {kind!r}, holds {holds!r}; expected one of "
            f"{', '.join(KINDS)} and one of {', '.join(answers)} (not-run for paper only)"
        )
    if kind in GATES:
        if not math.isfinite(value) and not claim.endswith("]"):
            claim = f"{claim} [the value is {value}]"
        holds = GATE_ANSWERS[holds if math.isfinite(value) else "no"]
    expected = expected if isinstance(expected, str) else f"{expected:g}"
    values = (claim, kind, float(value), float(standard_error), expected, float(tolerance), holds)
    return dict(zip(COLUMNS, values, strict=True))


def not_run(claim: str, reason: str) -> dict:
    """A claim of the paper that could not be tested, and why."""
    return row(f"{claim} [{reason}]", "paper", "not-run")


def failed(
    claim: str,
    kind: str,
    cause: str,
    expected: str | float = "",
    tolerance: float = math.nan,
) -> dict:
    """A gate that the config carries and whose value cannot be used, and why: contradicted."""
    return row(f"{claim} [{cause}]", kind, "no", math.nan, math.nan, expected, tolerance)


def table(rows: Iterable[dict]) -> pd.DataFrame:
    """The claims of a figure, in the order in which they were judged."""
    return pd.DataFrame(list(rows), columns=COLUMNS)


# --- Decisions -----------------------------------------------------------------------------------


def together(rows: Iterable[dict]) -> str:
    """The answer of several rows of a claim: it holds if every one does, and fails if one does."""
    answers = {one["holds"] for one in rows}
    return next(word for word in ("no", "undecided", "yes") if word in answers)


def _judged(claim, kind, holds, fails, width, value, error, expected, tolerance) -> dict:
    """A row whose interval has the half width `width`; a gate that has none is contradicted."""
    if kind in GATES and math.isnan(width):
        return failed(claim, kind, f"its standard error is {error}", expected, tolerance)
    return row(claim, kind, decided(holds, fails), value, error, expected, tolerance)


def identity(claim: str, value: float, expected: float, tolerance: float) -> dict:
    """An exact row: |value - expected| <= tolerance, where rounding is the only error."""
    holds = "yes" if abs(value - expected) <= tolerance else "no"
    return row(claim, "exact", holds, value, 0.0, expected, tolerance)


def within(
    claim: str,
    value: float,
    error: float,
    expected: float,
    tolerance: float,
    kind: str = "paper",
    runs: int | None = None,
) -> dict:
    """|value - expected| < tolerance, by the value's margin either way (`margin`).

    A gate whose error is not a number is contradicted; a claim of the paper stays undecided.
    """
    distance, width = abs(value - expected), margin(error, runs)
    holds, fails = distance + width < tolerance, distance - width > tolerance
    return _judged(claim, kind, holds, fails, width, value, error, expected, tolerance)


def gap(
    claim: str, value: float, error: float, kind: str = "paper", runs: int | None = None
) -> dict:
    """A difference above zero by three standard errors, over sequences or over `runs` runs."""
    width = margin(error, runs, DEVIATIONS)
    return _judged(claim, kind, value > width, value < -width, width, value, error, "> 0", width)


def bounded(
    claim: str,
    sign: str,
    value: float,
    error: float,
    bound: float,
    kind: str = "paper",
    runs: int | None = None,
) -> dict:
    """A value above (`sign` is ">") or below ("<") its bound, by the value's margin either way."""
    room, width = (value - bound if sign == ">" else bound - value), margin(error, runs)
    expected = f"{sign} {bound:g}"
    return _judged(claim, kind, room > width, room < -width, width, value, error, expected, width)


def positive(claim: str, differences: Sequence[float], resolution: float = 0.0) -> dict:
    """A difference above zero in runs that differ by their seed, by the interval of its mean.

    `resolution` is the sd that the spacing of checkpoints gives to a difference of times. All runs
    have the same checkpoints, so that it is not divided by the root of their number. A 95 %
    interval of Student's is 2.6 sd of d wide for three seeds and 1.3 for five.
    """
    values = np.asarray(differences, dtype=float)
    seeds = len(values)
    if seeds == 0 or np.isnan(values).any():
        return row(claim, "paper", "undecided", expected="> 0")
    mean = values.mean()
    error = values.std(ddof=1) / math.sqrt(seeds) if seeds > 1 else math.nan
    width = math.hypot(margin(error, seeds), margin(resolution))
    holds = decided(mean > width, mean < -width)
    return row(claim, "paper", holds, mean, math.hypot(error, resolution), "> 0", width)


def _mean(values: pd.Series) -> tuple[float, float, float]:
    """Mean over seeds, its standard error and the half width of its interval."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    return values.mean(), error, margin(error, len(values))


# --- The plateau ----------------------------------------------------------------------------------


def plateau_end(curves: pd.DataFrame, control: str) -> float:
    """Last checkpoint of the initial plateau: the loss on original text, averaged over seeds, has
    not yet made half of its total drop. NaN when the drop is not resolved by checkpoints."""
    curve = mean_curve(curves, control)
    halfway = (curve.iloc[0] + curve.min()) / 2
    late = np.flatnonzero(curve.to_numpy() < halfway)
    return float(curve.index[late[0] - 1]) if len(late) and late[0] > 1 else math.nan


def mean_curve(curves: pd.DataFrame, target: str) -> pd.Series:
    """Loss of a target averaged over seeds, indexed by step."""
    return curves[curves["target"] == target].groupby("step")["loss"].mean()


def _losses(curves: pd.DataFrame, target: str) -> pd.DataFrame:
    """Losses of a target, steps x seeds."""
    mine = curves[curves["target"] == target]
    return mine.pivot(index="step", columns="seed", values="loss").sort_index()


# --- The claims about a student ------------------------------------------------------------------


def later(claim: str, curves: pd.DataFrame, early: str, late: str, share: float) -> dict:
    """Target `late` saturates after target `early`, seed by seed (claims 6, 8, 11, 12)."""
    first, second = (saturations(curves, target, share) for target in (early, late))
    # A time known to lie in an interval of width w has the sd w / sqrt(12).
    widths = first["spacing"] ** 2 + second["spacing"] ** 2
    resolution = math.sqrt(widths.mean() / 12) if len(widths) else math.nan
    return positive(claim, (second["step"] - first["step"]).to_numpy(), resolution)


def ordered(
    claim: str, curves: pd.DataFrame, ladder: Sequence[str], labels: dict[str, str]
) -> list[dict]:
    """Each target of the ladder, low to high order, saturates before the next and the last."""
    steps = list(pairwise(ladder))
    if len(ladder) > 2:
        steps.append((ladder[0], ladder[-1]))
    return [
        later(
            f"{claim}: {labels[low]} saturates before {labels[high]} ({share:.0%} of the drop)",
            curves,
            low,
            high,
            share,
        )
        for share in SATURATION
        for low, high in steps
    ]


def late_change(curves: pd.DataFrame, target: str, early: int, late: int) -> pd.Series:
    """Change of the loss from one checkpoint to a later one (nats per token) for each seed."""
    losses = _losses(curves, target)
    missing = [step for step in (early, late) if step not in losses.index]
    if missing:
        return pd.Series(math.nan, index=losses.columns)
    return losses.loc[late] - losses.loc[early]


def late_changes(
    claim: str,
    curves: pd.DataFrame,
    ladder: Sequence[str],
    labels: dict[str, str],
    steps: tuple[int, int],
) -> list[dict]:
    """Claim 7: late in training the lowest order has stopped and the highest goes on falling."""
    when = f"from step {steps[0]} to {steps[1]}"
    change = {target: late_change(curves, target, *steps) for target in ladder}
    lowest, highest = ladder[0], ladder[-1]
    curve = mean_curve(curves, lowest)
    drop = curve.iloc[0] - curve.min()
    rows = [
        _not_falling(
            f"{claim}: {labels[lowest]} does not fall {when} "
            f"(by less than {SATURATION[0]:.0%} of its total drop)",
            change[lowest],
            SATURATION[0] * drop,
        ),
        positive(f"{claim}: {labels[highest]} falls {when}", -change[highest]),
    ]
    rows += [
        positive(
            f"{claim}: {labels[highest]} falls by more than {labels[low]} {when}",
            change[low] - change[highest],
        )
        for low in ladder[:-1]
    ]
    return rows


def _not_falling(claim: str, changes: pd.Series, tolerance: float) -> dict:
    """The mean change over seeds is above -tolerance, by its margin."""
    mean, error, width = _mean(changes)
    holds = decided(mean - width > -tolerance, mean + width < -tolerance)
    return row(claim, "paper", holds, mean, error, "> 0", -tolerance)


def overlap(
    claim: str, curves: pd.DataFrame, ladder: Sequence[str], labels: dict[str, str], control: str
) -> list[dict]:
    """Claim 9: up to the plateau's end the losses on all clones have dropped alike.

    The drops are those from the first checkpoint to the last of the plateau, over the drop of the
    highest order.
    """
    end = plateau_end(curves, control)
    highest = ladder[-1]
    rows = []
    for low in ladder[:-1]:
        text = f"{claim}: {labels[low]} and {labels[highest]} have dropped alike"
        if math.isnan(end):
            rows.append(
                row(f"{text} at the plateau's end", "paper", "undecided", expected=1, tolerance=0.1)
            )
            continue
        drops = {target: _losses(curves, target) for target in (low, highest)}
        drops = {target: loss.iloc[0] - loss.loc[end] for target, loss in drops.items()}
        ratios = drops[low] / drops[highest]
        text = f"{text} at the plateau's end, step {end:.0f}"
        mean, error, _ = _mean(ratios)
        rows.append(within(text, mean, error, 1.0, OVERLAP, runs=len(ratios)))
    return rows


def still_falling(claim: str, curves: pd.DataFrame, control: str) -> dict:
    """Claim 10: the loss on original text ends below that of every earlier checkpoint."""
    losses = _losses(curves, control)
    if len(losses) < 3:
        return row(claim, "paper", "undecided", expected="< 0")
    rise = losses.iloc[-1] - losses.iloc[:-1].min()
    mean, error, width = _mean(rise)
    holds = decided(mean < -width, mean > width)
    return row(claim, "paper", holds, mean, error, "< 0", width)


def loss_differences(
    losses: pd.DataFrame, curves: pd.DataFrame, first: str, second: str, control: str, paired: bool
) -> pd.DataFrame:
    """second / first - 1 of two targets' losses after the plateau, and its error.

    Losses are averaged over seeds. Errors are over sequences: within pairs if row i of both targets
    is the same chain, else as of two independent sets. Columns step, value, error.
    """
    end = plateau_end(curves, control)
    steps = mean_curve(curves, first).index.intersection(mean_curve(curves, second).index)
    rows = []
    for step in steps[steps > end]:
        one, two = (tables.select(losses, target, step) for target in (first, second))
        (loss, error), (other, other_error) = (
            tables.ratio(sums["loss_sum"].to_numpy(float), sums["predictions"].to_numpy(float))
            for sums in (one, two)
        )
        error = tables.paired_difference(one, two)[1] if paired else math.hypot(error, other_error)
        rows.append((step, other / loss - 1, error / loss))
    return pd.DataFrame(rows, columns=["step", "value", "error"])


def same_losses(claim: str, differences: pd.DataFrame, tolerance: float = SWEEPS) -> dict:
    """Relative differences of losses (`loss_differences`), all below `tolerance` (claim 5).

    The row reports the checkpoint at which the difference is largest; it holds if every one does
    and fails if any one fails.
    """
    if len(differences) == 0:
        return row(claim, "paper", "undecided", expected=0, tolerance=tolerance)
    rows = [
        within(claim, value, error, 0.0, tolerance)
        for value, error in zip(differences["value"], differences["error"], strict=True)
    ]
    largest = max(rows, key=lambda one: abs(one["value"]))
    return {**largest, "holds": together(rows)}


# --- The claims about samples of a known Hamiltonian ---------------------------------------------


def self_test(figure: str, test: dict, sites: int) -> dict:
    """Samples of `sites` tokens agree with the conditionals that drew them (`Sequences`)."""
    # Colours too unlikely to be seen at any site add to the entropy only.
    error = math.hypot(test["standard_error"], math.log(sites) / sites)
    difference, most = test["difference"], DEVIATIONS * error
    claim = f"{figure}: cross-entropy of the true conditionals less their mean entropy"
    holds = "yes" if abs(difference) <= most else "no"
    return row(claim, "statistical", holds, difference, error, 0, most)


# --- The claims about chains ---------------------------------------------------------------------


def settled(claim: str, trace: pd.DataFrame, sweep: int) -> dict:
    """Claim 4: the mean score drifts by less than 1 % of its total change in the last quarter."""
    return within(claim, *drift(trace, sweep), 0.0, DRIFT)


def forgotten(claim: str, trace: pd.DataFrame, sweep: int, chains: int) -> dict:
    """Less than a tenth of the positions hold the token that the chain started from."""
    kept, error = measured.kept(trace, sweep, chains)
    holds = measured.forgotten(kept, error)
    return row(claim, "paper", holds, kept, error, f"< {FORGOTTEN:g}", 0.0)


def mixed(claim: str, trace: pd.DataFrame) -> dict:
    """Split R-hat of the score, over the second half of the sweeps, is below 1.05."""
    rhat = measured.rhat_of(trace)
    return row(claim, "paper", measured.mixed(rhat), rhat, math.nan, f"< {RHAT:g}", 0.0)


def sample(
    claim: str,
    traces: tuple[pd.DataFrame, pd.DataFrame],
    losses: tuple[pd.DataFrame, pd.DataFrame],
    sweep: int,
    chains: int,
) -> dict:
    """The row of `agreement`; losses as `tables.select` gives them. Its value is that of the own
    losses (nats per token)."""
    own = [
        tables.ratio(one["loss_sum"].to_numpy(float), one["predictions"].to_numpy(float))
        for one in losses
    ]
    (apart, error), (difference, loss_error), rhats, holds = agreement(traces, own, sweep, chains)
    claim = (
        f"{claim} [scores differ by {apart:.3g} ± {error:.2g}, own losses by {difference:.3g} ± "
        f"{loss_error:.2g}, R-hat {rhats[0]:.3g} and {rhats[1]:.3g}]"
    )
    width = margin(loss_error, chains)
    return row(claim, "paper", holds, difference, loss_error, 0, width)
