"""Recovery of the couplings: errors of factored attention against the number of sequences M.

The numbers are those of `inference.learning_curves.compute`, of kind `recovery`, whose docstring
names the quantities.
"""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from manybody import checks, tables
from manybody.plotting import style

Drawing = tuple[Figure, pd.DataFrame, pd.DataFrame]

POINTS, LINE, THEORY = style.ORDERS[2], "0.4", style.UNBOUNDED
SCORES = style.ORDERS[4]

SLOPE = (-1.0, 0.15)
FEWEST = 5  # realisations for a statement on the slope
SIZE = 3000  # sequences of figure 2
EXCESS = (0.004, 0.009)  # at that size, nats a site
ERROR, CORRELATION = 0.06, 0.96  # bounds at that size


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
    """The checks: how the error falls, and how good M = 3000 is (potts, section 6)."""
    entry = about["entry"]
    sizes = f"M = {min(entry['sizes'])} to {max(entry['sizes'])}"
    claim = f"recovery: slope of log err_J by log M, {sizes}, {entry['realisations']} samples"
    if entry["realisations"] >= FEWEST:
        rows = [checks.within(claim, *_slope(frame), *SLOPE, kind="statistical")]
    else:
        rows = [checks.not_run(claim, f"needs {FEWEST} samples", "statistical")]
    texts = {
        "excess loss": f"excess test loss within {EXCESS[0]:g} to {EXCESS[1]:g}",
        "coupling error": f"err_J < {ERROR:g}",
        "pearson": f"r > {CORRELATION:g}",
    }
    for quantity, text in texts.items():
        found = _get(frame, quantity)
        found = found[found["x"] == SIZE]
        claim = f"recovery: free A, M = {SIZE}: {text}"
        if len(found) < 2:
            rows.append(checks.not_run(claim, f"no fits to {SIZE} sequences", "statistical"))
            continue
        mean, error = found["y"].mean(), found["y"].std(ddof=1) / math.sqrt(len(found))
        if quantity == "excess loss":
            # All samples are tested on the same sequences: their error does not average out.
            error = math.hypot(error, found["y_err"].mean())
            middle, width = sum(EXCESS) / 2, (EXCESS[1] - EXCESS[0]) / 2
            rows.append(checks.within(claim, mean, error, middle, width, kind="statistical"))
        elif quantity == "coupling error":
            rows.append(_bound(claim, ERROR - mean, error, mean, f"< {ERROR:g}"))
        else:
            rows.append(_bound(claim, mean - CORRELATION, error, mean, f"> {CORRELATION:g}"))
    return checks.table(rows)


def _bound(claim: str, room: float, error: float, value: float, expected: str) -> dict:
    """A bound kept by two standard errors, or broken by as many."""
    margin = checks.ERRORS * error
    holds = "yes" if room > margin else "no" if room < -margin else "undecided"
    return checks.row(claim, "statistical", holds, value, error, expected, margin)
