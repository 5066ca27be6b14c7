"""Tables of theory as this paper's figures read, compare and draw them.

Of message passing cosines are compared rather than overlaps, since M converges to |w|^2 / D of the
teacher drawn, not to 1 (specification, section 7).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from manybody.measure import crossings, intervals
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.readings import Table, departure, same

KIND = "multi-index-"
LAYERS = (1, 2)
BOUND = 1 / 6  # no threshold of linear stability is below (specification, section 4)
LEARNED = 0.5  # cosine with the teacher, or similarity to the last state, of a layer that is

LAYER = {1: style.ORDERS[2], 2: style.UNBOUNDED, 3: style.ORDERS[4]}
ERROR = style.ORIGINAL
LIGHT = {"alpha": 0.45, "linewidth": 1.0}  # of the theory of the other channel
FAILED = "not converged"  # ends the name of a series of points that did not converge
INFORMED = ", from side information"
HOLLOW = dict(linestyle="", marker="o", markerfacecolor="white", markeredgecolor="0.3")
PUBLIC = dict(linestyle="", marker="s", markersize=3.5, markerfacecolor="none", zorder=6)
START = dict(linestyle="", marker="^", markersize=4.5, clip_on=False, zorder=7)  # a threshold
UNSEEN = 1e-3  # of the largest value: a band as thin as this is drawn as stray lines


class Inputs(needed.Inputs):
    """The tables of theory that a figure's block names by their roles, and their entries."""

    theory: dict[str, needed.Theory]
    entries: dict[str, dict]

    @classmethod
    def of(cls, block, config: dict) -> "Inputs":
        names = {role: str(name) for role, name in block.theory}
        return cls(
            theory={role: needed.Theory(theory=name) for role, name in names.items()},
            entries={role: config["theory"][name] for role, name in names.items()},
        )

    def read(self) -> dict[str, Table]:
        """The tables by role; `ArtifactError` names a file that is not such a table."""
        return {role: Table.read(key.file()) for role, key in self.theory.items()}


def channel(entry: dict) -> str:
    """The channel in words: V + 1e-3, or no regulariser."""
    regulariser = entry["regulariser"]
    return f"V + {regulariser:g}" if regulariser else "no regulariser"


def runs_of(entry: dict) -> str:
    return records.counted(entry["runs"], "run")


def sampled(entry: dict) -> str:
    return "{points} Sobol points, {scrambles} scramblings".format(**entry)


def threshold(table: Table, layer: int) -> intervals.Value | None:
    """That of a layer at the entry's c; None if the table has not got it."""
    return table.at("threshold", f"alpha_{layer}", table.entry["skip"])


def largest_difference(
    label: str,
    found: Mapping[float, intervals.Value | None],
    expected: Mapping[float, float],
    tolerance: float,
    name: str = "alpha",
    failed: Sequence[float] = (),
) -> records.Comparison:
    """The largest difference from expected values, which must be below the tolerance. Places
    without a value, and those in `failed`, which did not converge, are left out."""
    apart = {
        x: value._replace(value=value.value - expected[x])
        for x, value in found.items()
        if value is not None and not same(x, failed).any()
    }
    if not apart:
        return records.unusable(label, "no common points")
    worst = max(apart, key=lambda x: abs(apart[x].value))
    label += f", largest difference at {len(apart)} points, at {name} = {worst:g}"
    value, error, runs = apart[worst]
    return records.near(label, value, error, 0.0, tolerance, runs=runs)


def from_stored(
    table: Table, stored: Mapping[str, Mapping[float, float]], tolerance: float, converged: str
) -> list[records.Comparison]:
    """Overlaps of a table less the stored ones, where they differ most, one comparison a name.
    converged: the series of the flags of its iterations."""
    failed = table.failed(converged)
    return [
        largest_difference(
            f"state evolution, {name}",
            {alpha: table.between("overlap", name, alpha) for alpha in values},
            values,
            tolerance,
            failed=failed,
        )
        for name, values in stored.items()
    ]


def later(label: str, table: Table, early: str, late: str, series: str = "") -> records.Comparison:
    """The time from one quantity's passing of `LEARNED` to another's, run by run; above 0."""
    first, second = (crossings.of_runs(table.get(name, series), LEARNED) for name in (early, late))
    differences = (second - first).dropna()
    if differences.empty:
        return records.unusable(label, "no run learned both layers")
    label += f", {len(differences)} of {len(second)} runs learned both"
    return records.over_seeds(label, differences)


def claim(
    name: str,
    statement: str,
    parts: list[records.Comparison] | str,
    scope: str,
    rule: str,
    reference: str = "",
    unanimous: bool = False,
) -> records.Claim:
    """The claim of `records.judged`; not run where none of its parts can be judged."""
    if not isinstance(parts, str) and all(part.unusable for part in parts):
        parts = "; ".join(map(str, parts))
    id_ = f"multi-index/{name}"
    return records.judged(id_, statement, parts, scope, rule, unanimous, reference)


def named(frame: pd.DataFrame, series: str) -> pd.DataFrame:
    """A frame under the name of its series in the CSV."""
    return frame.assign(series=series, seed=frame.get("seed", 0))


def points(series: str, values: Mapping[float, float]) -> pd.DataFrame:
    return style.points("", series, 0, list(values), list(values.values()))


def failures(places: Iterable[float]) -> pd.DataFrame:
    """The x at which an iteration did not converge, without numbers."""
    return points(FAILED, dict.fromkeys(places, math.nan))


def overlap_rows(table: Table, layers: Iterable[int], *flags: str) -> list[pd.DataFrame]:
    """Overlaps over alpha, also from side information if the table has it, and the thresholds at
    its c, on the axis. flags: series of the flags of the iterations."""
    parts = [failures(x for flag in flags for x in table.failed(flag))]
    note = f", {channel(table.entry)}"
    for layer in layers:
        name = f"Q{layer}{layer}"
        parts += [
            named(table.get("overlap", name), name + note),
            named(table.get("overlap informed", name), name + note + INFORMED),
        ]
        start = threshold(table, layer)
        if start is not None and math.isfinite(start.value):
            parts.append(points(f"alpha_{layer}{note}", {start.value: 0.0}))
    return parts


def error_rows(table: Table, names: Iterable[str], flag: str) -> list[pd.DataFrame]:
    """Plug-in errors over alpha: of all layers, and with the others forced to 0."""
    note = channel(table.entry)
    curves = [
        named(table.get("error plug-in", name), f"plug-in error, {name}, {note}") for name in names
    ]
    return [failures(table.failed(flag)), *curves]


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


def run_rows(frame: pd.DataFrame, name: str) -> list[pd.DataFrame]:
    median = frame.groupby("x")["y"].median().reset_index().assign(y_err=math.nan)
    return [named(frame, name), named(median, f"{name}, median")]


def last(table: Table, quantity: str, series: str) -> pd.Series:
    return table.get(quantity, series).groupby("seed")["y"].last()


def gathered(panels: Mapping[str, list[pd.DataFrame]]) -> pd.DataFrame:
    return style.gathered(
        [part.assign(panel=panel) for panel, parts in panels.items() for part in parts if len(part)]
    )


def line(axes, drawn: pd.DataFrame, panel: str, series: str, colour: str, **looks) -> None:
    """A series as a line with a band of one standard error."""
    frame = style.line(axes, drawn, panel, series, color=colour, **looks)
    if frame["y_err"].max() > UNSEEN * frame["y"].abs().max():
        style.band(axes, frame, colour)


def mark_failures(axes, drawn: pd.DataFrame, panel: str) -> None:
    """Hollow circles on the upper edge where an iteration did not converge."""
    places = style.series(drawn, panel, FAILED)["x"]
    looks = HOLLOW | dict(markersize=4, clip_on=False, transform=axes.get_xaxis_transform())
    if len(places):  # an empty line that is not clipped has no place in a layout
        axes.plot(places, np.ones(len(places)), **looks)


def overlaps(
    axes, tables: style.Tables, channels: Mapping[str, dict], layers: Iterable[int]
) -> None:
    """Overlaps and thresholds of layers by state evolution, and those stored with the public code:
    panel a. channels: by the role of its table the looks of a channel."""
    drawn = tables.drawn
    for layer in layers:
        colour, name = LAYER[layer], f"Q{layer}{layer}"
        for role, looks in channels.items():
            note = f", {channel(tables.found[role].entry)}"
            line(axes, drawn, "a", name + note, colour, **looks)
            line(axes, drawn, "a", name + note + INFORMED, colour, **looks | {"linestyle": ":"})
            for _, start in style.series(drawn, "a", f"alpha_{layer}{note}").iterrows():
                axes.plot(start["x"], start["y"], color=colour, alpha=looks.get("alpha"), **START)
        style.line(axes, drawn, "a", f"{name} public", **PUBLIC, markeredgecolor=colour)
    over_alpha(axes, drawn, "a")
    axes.set(ylim=(-0.03, 1.05), ylabel="overlap with the teacher, Q")


def errors(
    axes, tables: style.Tables, channels: Mapping[str, dict], names: tuple[str, str], forced: str
) -> None:
    """Plug-in errors, dashed where overlaps are forced to 0, which `forced` says: panel b."""
    for role, looks in channels.items():
        for name, dashes in zip(names, ("-", "--"), strict=True):
            series = f"plug-in error, {name}, {channel(tables.found[role].entry)}"
            line(axes, tables.drawn, "b", series, ERROR, **looks | {"linestyle": dashes})
            shown = style.series(tables.drawn, "b", series)
    if len(shown):
        place = dict(xytext=(0, 3), textcoords="offset points", ha="right", fontsize=style.SMALL)
        axes.annotate(forced, shown[["x", "y"]].iloc[-1], **place)
    over_alpha(axes, tables.drawn, "b")
    axes.set_yscale("log", nonpositive="mask")  # nothing is left where all layers are known
    axes.set_ylabel("plug-in error of the prediction")


def over_alpha(axes, drawn: pd.DataFrame, panel: str) -> None:
    last = drawn.loc[drawn["panel"] == panel, "x"].max()
    axes.set(xlim=(0, 1.02 * last), xlabel="samples per dimension, α = N / D")


def bound(axes) -> None:
    axes.axhspan(0, BOUND, color="0.93", linewidth=0, zorder=-2)
    place = dict(transform=axes.get_yaxis_transform(), fontsize=style.SMALL)
    axes.text(0.02, 0.02, "no threshold of tied weights below 1/6", **place)


def in_time(axes, drawn: pd.DataFrame, panel: str, names: Mapping[int, str], time: str) -> None:
    """A thin line for each run, a thick one for their median, of the series of each layer."""
    for layer, name in names.items():
        for _, run in style.series(drawn, panel, name).groupby("seed"):
            axes.plot(run["x"], run["y"], color=LAYER[layer], linewidth=0.7, alpha=0.45)
        line(axes, drawn, panel, f"{name}, median", LAYER[layer], linewidth=1.8)
    times = drawn.loc[drawn["panel"] == panel, "x"]
    axes.set(xscale="log", xlim=(times[times > 0].min(), 1.05 * times.max()), xlabel=time)
    axes.set_ylim(-0.03, 1.05)
    style.plain_ticks(axes.xaxis)


def legend(
    figure, drawn: pd.DataFrame, layers: Iterable[int], looks: Mapping[str, dict], columns: int
) -> None:
    """A legend of the layers' colours, `looks` by their labels, public data and failures if any."""
    shown = {f"layer {layer}": dict(color=LAYER[layer]) for layer in layers} | looks
    marks = {"public": ("public data", PUBLIC | {"color": "0.35"}), FAILED: (FAILED, HOLLOW)}
    for end, (label, look) in marks.items():
        if drawn["series"].str.endswith(end).any():
            shown[label] = look
    style.legend(figure, shown.items(), columns, loc="outside lower left")
