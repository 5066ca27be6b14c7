"""Recovery of the couplings: errors of factored attention against the number of sequences M.

The numbers are those of `inverse_potts.learning_curves.compute`, of kind `recovery`, whose
docstring names the quantities.
"""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from manybody.claims import verdicts
from manybody.claims.potts import setting
from manybody.files import tables
from manybody.plotting import style

Drawing = tuple[Figure, pd.DataFrame, pd.DataFrame]

POINTS, LINE, THEORY = style.ORDERS[2], "0.4", style.UNBOUNDED
SCORES = style.ORDERS[4]

SLOPE = (-1.0, 0.15)
SLOPE_SPREAD = 0.011  # sd over samples
MEASURED = (500, 1000, 2000, 3000, 5000, 10000, 20000)  # the sizes that this is for
SMALLEST = 500  # sequences from which errors fall like 1 / M
RIDGE = 1e-4  # under which these were measured
SIZE = setting.M  # sequences of figure 2
EXCESS = (0.004, 0.009)  # at that size, nats a site
EXCESS_SPREAD = 1.3e-3
# Bounds at that size, the values that were measured and their sd over samples.
BOUNDS = {
    "coupling error": ("err_J", setting.below, 0.06, 0.0546, 4.2e-3),
    "pearson": ("r", setting.above, 0.96, 0.9666, 2.7e-3),
}


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    return recovery(*tables.read_theory(files["curves"][0]))


@style.styled(style.RC)
def recovery(frame: pd.DataFrame, about: dict) -> Drawing:
    """The figure, from the curve's table and document."""
    figure = style.new(9.6, 3.2)
    drawn = []
    for letter, axes, panel in zip(
        "abc", figure.subplots(1, 3), (_errors, _correlations, _excess), strict=True
    ):
        drawn += [part.assign(panel=letter) for part in panel(axes, frame, about)]
        axes.set(xscale="log", xlabel="sequences M")
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}")
        sizes = sorted(_get(frame, "coupling error")["x"].unique())
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes], rotation=45)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.minorticks_off()
    return figure, pd.concat(drawn)[style.FIGURE_COLUMNS], claims(frame, about)


def _get(frame: pd.DataFrame, quantity: str) -> pd.DataFrame:
    return frame[frame["quantity"] == quantity].assign(series=quantity)


def _slope(frame: pd.DataFrame) -> tuple[float, float]:
    row = _get(frame, "mean slope").iloc[0]
    return row["y"], row["y_err"]


# --- Panels --------------------------------------------------------------------------------------


def _errors(axes: Axes, frame: pd.DataFrame, about: dict) -> list[pd.DataFrame]:
    found = _get(frame, "coupling error")
    slope, error = _slope(frame)
    x = np.array(sorted(found["x"].unique()))
    level = np.log(found["y"]).mean() - slope * np.log(found["x"]).mean()
    law = pd.DataFrame({"x": x, "y": np.exp(level) * x**slope, "series": "fit", "seed": "all"})
    axes.plot(law["x"], law["y"], color=LINE, label=f"$M^{{s}}$, s = {slope:.3f} ± {error:.3f}")
    runs = found["seed"].nunique()
    axes.plot(found["x"], found["y"], "o", color=POINTS, alpha=0.7, label=f"{runs} samples")
    axes.set(yscale="log", ylabel="err$_J$ = |cA − J|² / |J|²")
    axes.set_title(f"error of the couplings, L = {about['length']}")
    axes.legend(loc="lower left")
    return [found, law]


def _correlations(axes: Axes, frame: pd.DataFrame, about: dict) -> list[pd.DataFrame]:
    ordered, scores = (_get(frame, name) for name in ("pearson", "score correlation"))
    axes.plot(ordered["x"], ordered["y"], "o", color=POINTS, label="A$_{ij}$ with J$_{ij}$")
    label = "|A$_{ij}$ + A$_{ji}$| / 2 with |J$_{ij}$|"
    axes.plot(scores["x"], scores["y"], "D", color=SCORES, markersize=3, label=label)
    axes.set(ylabel="Pearson r", ylim=(None, 1.0))
    axes.set_title("correlation with the true J")
    axes.legend(loc="lower right")
    return [ordered, scores]


def _excess(axes: Axes, frame: pd.DataFrame, about: dict) -> list[pd.DataFrame]:
    found, expected = _get(frame, "excess loss"), _get(frame, "expected excess")
    axes.plot(expected["x"], expected["y"], color=THEORY, label="p / (2ML)")
    axes.errorbar(
        found["x"],
        found["y"],
        found["y_err"],
        color=POINTS,
        linestyle="",
        marker="o",
        markersize=3,
        elinewidth=0.8,
        label="fits",
    )
    axes.set(yscale="log", ylabel="test loss − optimum (nats per site)")
    axes.set_title("excess test loss")
    axes.legend(loc="lower left")
    return [found, expected]


# --- The checks ----------------------------------------------------------------------------------


def claims(frame: pd.DataFrame, about: dict) -> pd.DataFrame:
    """The checks at the default setting: how the error falls, and how good M = 3000 is (potts,
    section 6). No rows for what so few samples cannot confirm, or for another source."""
    entry, runs = about["entry"], about["entry"]["realisations"]
    elsewhere = setting.departure(about.get("source", {}), about.get("beta", math.nan))
    rows = []
    if elsewhere or entry["ridge"] != RIDGE:
        return verdicts.table(rows)
    sizes = np.array(entry["sizes"], float)
    spread = SLOPE_SPREAD * _reach(MEASURED) / _reach(sizes)
    if sizes.min() >= SMALLEST and _confirms(spread, runs, SLOPE[1]):
        claim = (
            f"recovery: slope of log err_J by log M, M = {sizes.min():g} to {sizes.max():g}, "
            f"{runs} samples"
        )
        rows.append(verdicts.within(claim, *_slope(frame), *SLOPE, "statistical", runs))
    if SIZE not in sizes:
        return verdicts.table(rows)
    claim = f"recovery: free A, M = {SIZE}:"
    middle, width = sum(EXCESS) / 2, (EXCESS[1] - EXCESS[0]) / 2
    if _confirms(EXCESS_SPREAD, runs, width):
        mean, error, of_test = _at_size(frame, "excess loss")
        # All samples are tested on the same sequences: that error does not average out.
        error = math.hypot(error, verdicts.margin(1.0) / verdicts.margin(1.0, runs) * of_test)
        text = f"{claim} excess test loss within {EXCESS[0]:g} to {EXCESS[1]:g}"
        rows.append(verdicts.within(text, mean, error, middle, width, "statistical", runs))
    for quantity, (name, bounded, bound, measured, spread) in BOUNDS.items():
        if _confirms(spread, runs, abs(bound - measured)):
            mean, error, _ = _at_size(frame, quantity)
            sign = "<" if bounded is setting.below else ">"
            text = f"{claim} {name} {sign} {bound:g}"
            rows.append(bounded(text, mean, error, bound, "statistical", runs))
    return verdicts.table(rows)


def _confirms(spread: float, runs: int, tolerance: float) -> bool:
    """So many samples of a known sd can confirm what holds within the tolerance."""
    return verdicts.margin(spread / math.sqrt(runs), runs) < tolerance


def _reach(sizes) -> float:
    """What the error of a slope goes down with: the spread of log M."""
    logs = np.log(sizes)
    return float(np.sqrt(((logs - logs.mean()) ** 2).sum()))


def _at_size(frame: pd.DataFrame, quantity: str) -> tuple[float, float, float]:
    """Mean over samples at M = 3000, its standard error, and the mean error over test sequences."""
    found = _get(frame, quantity)
    found = found[found["x"] == SIZE]
    error = found["y"].std(ddof=1) / math.sqrt(len(found))
    return float(found["y"].mean()), float(error), float(found["y_err"].mean())
