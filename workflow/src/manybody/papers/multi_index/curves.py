"""Tables of theory as this paper's figures read, compare and draw them.

Message passing is one of them, a run a seed. Its cosines are compared rather than its overlaps,
since M converges to |w|^2 / D of the teacher drawn, not to 1 (specification, section 7).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from manybody.papers import claims as records
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.inputs import Theory
from manybody.papers.readings import Table, Value, crossings, departure, is_in

KIND = "multi-index-"
LAYERS = (1, 2)
BOUND = 1 / 6  # no threshold of linear stability is below (specification, section 4)
LEARNED = 0.5  # cosine with the teacher, or similarity to the last state, of a layer that is

LAYER = {1: style.ORDERS[2], 2: style.UNBOUNDED, 3: style.ORDERS[4]}
ERROR = style.ORIGINAL
LIGHT = {"alpha": 0.45, "linewidth": 1.0}  # of the theory of the other channel
FAILED = ", not converged"  # ends the name of a series of points that did not converge
PUBLIC = dict(linestyle="", marker="s", markersize=3.5, markerfacecolor="none", zorder=6)
UNSEEN = 1e-3  # of the largest value: a band as thin as this is drawn as stray lines


class Inputs(needed.Inputs):
    """The tables of theory that a figure's block names by their roles, and their entries."""

    theory: dict[str, Theory]
    entries: dict[str, dict]

    @classmethod
    def of(cls, block, config: dict) -> "Inputs":
        names = {role: str(name) for role, name in block.theory}
        return cls(
            theory={role: Theory(theory=name) for role, name in names.items()},
            entries={role: config["theory"][name] for role, name in names.items()},
        )

    def read(self) -> dict[str, Table]:
        """The tables by role; `ArtifactError` names a file that is not such a table."""
        return {role: Table.read(key.file()) for role, key in self.theory.items()}


@dataclass(frozen=True)
class Tables:
    """Rows drawn; comparisons by claim, or the cause why there are none; the entries by role;
    further values that panels and scopes state, by name."""

    drawn: pd.DataFrame
    judged: dict[str, list[records.Comparison] | str]
    entries: dict[str, dict]
    stated: dict[str, Any] = field(default_factory=dict)


# --- Words ----------------------------------------------------------------------------------------


def channel(entry: dict) -> str:
    """The channel in words: V + 1e-3, or no regulariser."""
    regulariser = entry["regulariser"]
    return f"V + {regulariser:g}" if regulariser else "no regulariser"


def runs_of(entry: dict) -> str:
    """The number of runs of an entry, in words."""
    return f"{entry['runs']} run{'s' if entry['runs'] > 1 else ''}"


def sampled(entry: dict) -> str:
    """The points of an entry in words."""
    return f"{entry['points']} Sobol points, {entry['scrambles']} scramblings"


# --- What is judged -------------------------------------------------------------------------------


def unusable(label: str, reason: str) -> records.Comparison:
    """A comparison whose number is missing."""
    return records.Comparison(label, math.nan, unusable=reason)


def near(label: str, found: Value, expected: float, tolerance: float) -> records.Comparison:
    """A value that must differ from the expected one by less than the tolerance."""
    return records.near(label, found.value, found.error, expected, tolerance, runs=found.runs)


def largest_difference(
    label: str,
    found: Mapping[float, Value | None],
    expected: Mapping[float, float],
    tolerance: float,
    name: str = "alpha",
    failed: Iterable[float] = (),
) -> records.Comparison:
    """The difference from expected values where it is largest, which must be below the tolerance.

    Places without a value, and those in `failed`, where an iteration did not converge, are left
    out.
    """
    left_out = is_in(list(found), failed)
    apart = {
        x: value._replace(value=value.value - expected[x])
        for (x, value), out in zip(found.items(), left_out, strict=True)
        if value is not None and not out
    }
    if not apart:
        return unusable(label, "no common points")
    worst = max(apart, key=lambda x: abs(apart[x].value))
    label += f", largest difference at {len(apart)} points, at {name} = {worst:g}"
    return near(label, apart[worst], 0.0, tolerance)


def from_stored(
    table: Table, stored: Mapping[str, Mapping[float, float]], tolerance: float, converged: str
) -> list[records.Comparison]:
    """Overlaps of a table less the stored ones, where they differ most, one comparison a name.

    converged: the series of the flags of the table's iterations.
    """
    failed = table.failed(converged)
    found = {
        name: {alpha: table.between("overlap", name, alpha) for alpha in values}
        for name, values in stored.items()
    }
    return [
        largest_difference(
            f"state evolution, {name}", found[name], values, tolerance, "alpha", failed
        )
        for name, values in stored.items()
    ]


def later(label: str, table: Table, early: str, late: str, series: str = "") -> records.Comparison:
    """How much later, run by run, one quantity passes `LEARNED` than another; above 0."""
    first, second = (crossings(table.get(name, series), LEARNED) for name in (early, late))
    differences = (second - first).dropna()
    if not len(differences):
        return unusable(label, "no run learned both layers")
    label += f", {len(differences)} of {len(second)} runs learned both"
    return records.over_seeds(label, differences)


def claims(figure: str, tables: Tables, rows: Mapping[str, dict]) -> list[records.Claim]:
    """The claims of a figure that its comparisons decide; not run where none can be judged.

    rows: by the last part of the id the other arguments of `records.judged`.
    """
    found = []
    for name, row in rows.items():
        id_, parts = f"multi-index/{figure}/{name}", tables.judged[name]
        if not isinstance(parts, str) and all(part.unusable for part in parts):
            parts = "; ".join(map(str, parts))
        if isinstance(parts, str):
            left = parts, row["scope"], row.get("reference", "")
            found.append(records.not_run(id_, row["statement"], *left))
        else:
            found.append(records.judged(id_, parts=parts, **row))
    return found


# --- Rows of what is drawn ------------------------------------------------------------------------


def named(frame: pd.DataFrame, series: str, failed: bool = False) -> pd.DataFrame:
    """A frame under the name of its series in the CSV, which says if its points failed."""
    return frame.assign(series=series + FAILED * failed, seed=frame.get("seed", 0))


def points(series: str, values: Mapping[float, float]) -> pd.DataFrame:
    """Numbers without errors as rows of the CSV."""
    places = {"x": list(values), "y": list(values.values())}
    return pd.DataFrame({"series": series, "seed": 0, **places, "y_err": math.nan})


def line_rows(frame: pd.DataFrame, series: str, failed: Iterable[float] = ()) -> list[pd.DataFrame]:
    """All points of a curve, and once more those whose iteration did not converge."""
    bad = frame[is_in(frame["x"], failed)]
    return [named(frame, series), named(bad, series, failed=True)]


def stored_rows(
    table: Table, needed: dict, stored: dict[str, dict[float, float]], last: float
) -> list[pd.DataFrame]:
    """Stored public overlaps up to alpha `last`; none where the entry is not at `needed`."""
    if departure(table.entry, **needed):
        return []
    return [
        points(f"{name} public", {alpha: q for alpha, q in values.items() if alpha <= last})
        for name, values in stored.items()
    ]


def last(table: Table, quantity: str, series: str) -> pd.Series:
    """The value of each run at its last iteration."""
    return table.get(quantity, series).groupby("seed")["y"].last()


def gathered(panels: Mapping[str, list[pd.DataFrame]]) -> pd.DataFrame:
    """The rows of all panels, as the figure's CSV has them."""
    return style.gathered(
        [part.assign(panel=panel) for panel, parts in panels.items() for part in parts if len(part)]
    )


# --- Looks ----------------------------------------------------------------------------------------


def line(
    axes, drawn: pd.DataFrame, panel: str, series: str, colour: str, label="", **looks
) -> None:
    """A series as a line with a band of one standard error; points that failed are hollow."""
    frame = style.series(drawn, panel, series)
    if not len(frame):
        return
    axes.plot(frame["x"], frame["y"], color=colour, label=label, **looks)
    if frame["y_err"].max() > UNSEEN * frame["y"].abs().max():
        style.band(axes, frame, colour)
    hollow(axes, drawn, panel, series, colour)


def hollow(axes, drawn: pd.DataFrame, panel: str, series: str, colour: str) -> None:
    """Hollow markers where a series did not converge; on the axis where it left no number."""
    shown = style.series(drawn, panel, series + FAILED)
    looks = dict(linestyle="", marker="o", markersize=5, markerfacecolor="white")
    looks |= dict(markeredgecolor=colour, zorder=4)
    axes.plot(shown["x"], shown["y"], **looks)
    lost = shown["x"][shown["y"].isna()]
    if len(lost):
        looks |= dict(transform=axes.get_xaxis_transform(), clip_on=False)
        axes.plot(lost, np.zeros(len(lost)), **looks)


def marks(
    axes,
    drawn: pd.DataFrame,
    panel: str,
    series: str,
    colour: str,
    marker: str = "X",
    size: float = 6,
    aside: float = 0.0,
) -> None:
    """Marks with error bars, moved `aside` along x; hollow where a run did not converge."""
    for name, face, edge in (series, colour, "white"), (series + FAILED, "white", colour):
        shown = style.series(drawn, panel, name)
        looks = dict(color=colour, linestyle="", marker=marker, markersize=size)
        looks |= dict(markerfacecolor=face, markeredgecolor=edge, markeredgewidth=0.6)
        looks |= dict(capsize=2, elinewidth=1.0, zorder=5)
        axes.errorbar(shown["x"] + aside, shown["y"], shown["y_err"].fillna(0), **looks)


def stored(axes, drawn: pd.DataFrame, panel: str, layers: Iterable[int]) -> list:
    """Squares at the stored public overlaps of layers; the lines of the legend that they need."""
    shown = {layer: style.series(drawn, panel, f"Q{layer}{layer} public") for layer in layers}
    for layer, frame in shown.items():
        axes.plot(frame["x"], frame["y"], **PUBLIC, markeredgecolor=LAYER[layer])
    known = any(map(len, shown.values()))
    return handles({"public data": PUBLIC | {"color": "0.35"}} if known else {})


def failures(drawn: pd.DataFrame, panel: str) -> list:
    """The lines that a legend needs where a panel has points that did not converge."""
    failed = drawn.loc[drawn["panel"] == panel, "series"].str.endswith(FAILED).any()
    looks = dict(linestyle="", marker="o", markerfacecolor="white", markeredgecolor="0.3")
    return handles({"hollow: not converged": looks} if failed else {})


def handles(looks: Mapping[str, dict]) -> list:
    """Lines of a legend, by their labels."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], label=label, **one) for label, one in looks.items()]
