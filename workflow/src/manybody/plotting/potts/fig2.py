"""Figure 2: factored attention and transformer encoders on samples of a Potts model.

(a) held-out loss above the optimum against the epoch, (b) the true couplings and the attention
maps, (c) error of the couplings read off the maps, their gauge fixed, (d) loss above the optimum
against a, which leads from factored to ordinary attention. What is read and measured is in
`claims.potts.fig2_runs`.

In the table of what is drawn, maps have their columns in x, rows in the series and values in y.
Numbers that are not points of a panel have a panel of their own: `loss` (a with the loss itself,
and the optimum), `candidates` (x: learning rate, y: excess of every recipe that was tried),
`pearson`, `mean square` (of c A - J, as in the paper) and `values` (error of V, colours weighted by
their frequency), each at the last step and over seeds.
"""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from manybody.claims import training_runs
from manybody.claims.potts import fig2_runs
from manybody.claims.potts.fig2_runs import FACTORED, Candidate, Data, Entry
from manybody.data import gauge
from manybody.plotting import style
from manybody.plotting.points import drawn, points
from manybody.plotting.statistical import seaborn

COLOURS = (
    style.ORDERS[2],
    style.ORDERS[3],
    style.ORDERS[6],
    style.UNBOUNDED,
    style.ORDERS[4],
    style.TIMES[1],
)
DIVERGING = "RdBu_r"
BESIDE = 3  # names of architectures that fit beside each other below the narrow panel


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> tuple[Figure, pd.DataFrame]:
    """The figure and what is drawn, from files; see the package's docstring."""
    data = fig2_runs.read(files, block, context)
    figure = style.new(2, 6.9)
    upper, middle, lower = figure.subfigures(3, 1, height_ratios=(1.2, 0.85, 1))
    losses, strength = upper.subplots(1, 2, width_ratios=(2, 1))
    errors, ends = lower.subplots(1, 2, width_ratios=(2, 1), sharey=True)
    parts = [
        draw_losses(losses, data),
        draw_maps(middle, data),
        draw_errors(errors, data),
        draw_ends(ends, data),
        draw_interpolation(strength, data),
        *numbers(data),
    ]
    upper.legend(*losses.get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure, drawn(parts)


# --- Panels --------------------------------------------------------------------------------------


def draw_losses(axes: Axes, data: Data) -> pd.DataFrame:
    """(a): excess of each architecture's best recipe, mean and sd over seeds."""
    parts = []
    for colour, entry in zip(_palette(data), data.architectures, strict=True):
        curves = [run.curve.set_index("epoch")["loss"] for run in entry.runs.values()]
        label = f"{entry.label}: {recipe(entry.best)}"
        mean, spread = _line(axes, curves, data.optimum.end, colour, label)
        parts.append(points("a", entry.label, "mean", mean.index, mean, spread))
        for seed, curve in zip(entry.runs, curves, strict=True):
            parts.append(points("loss", entry.label, seed, curve.index, curve))
    optimum = data.optimum.curve.iloc[-1]
    parts.append(points("loss", "optimum", "", [math.nan], [optimum["loss"]], optimum["loss_se"]))
    parts.append(_draw_expected(axes, data))
    _epochs(axes)
    _log(axes, pd.concat(parts).query("panel == 'a'")["y"])
    axes.set(
        ylabel="held-out loss above the optimum\n(nats per token)",
        title=f"(a) β = {data.hamiltonian.beta:.4g}, optimum {optimum['loss']:.4f} nats per token",
    )
    return pd.concat(parts)


def _draw_expected(axes: Axes, data: Data) -> pd.DataFrame:
    """p / (2 M L), what any well-specified fit loses by its finite sample: a dashed line."""
    parts = []
    for size in dict.fromkeys(data.trained_on(entry) for entry in data.architectures):
        expected = data.expected_excess(size)
        axes.axhline(expected, color="black", linestyle="--", linewidth=0.9, zorder=1)
        axes.annotate(
            f"p/(2ML) = {expected:.2g}, M = {size}",
            xy=(0.0, expected),
            xycoords=("axes fraction", "data"),
            xytext=(3, -3),
            textcoords="offset points",
            va="top",
            fontsize=style.SMALL,
        )
        parts.append(points("a", f"p/(2ML), M = {size}", "", [math.nan], [expected]))
    return pd.concat(parts)


def draw_maps(part: Figure, data: Data) -> pd.DataFrame:
    """(b): J and the map of each architecture's shown seed, on one scale of colours.

    Of factored attention it is c A, with c the scale, sign included, that is nearest to J: the
    gauge. The averaged maps of encoders have no gauge and are as they are.
    """
    shown = [("J", data.hamiltonian.couplings, "true couplings")]
    for entry in data.architectures:
        found = entry.runs[training_runs.chosen(entry.runs)].last_map
        if found is not None:
            error = data.coupling_error(found)
            words = f"err {error.error:.2g}, r {error.pearson:.3f}"
            gauged = error.scale * found if entry.kind in FACTORED else found
            shown.append((entry.label, gauged, words))
    largest = np.abs(data.hamiltonian.couplings).max()
    row = part.subplots(1, len(shown), squeeze=False)[0]
    parts = []
    for axes, (label, matrix, words) in zip(row, shown, strict=True):
        apart = np.array(matrix, float)
        np.fill_diagonal(apart, np.nan)
        looks = dict(cmap=DIVERGING, vmin=-largest, vmax=largest, square=True, cbar=False)
        seaborn.heatmap(apart, ax=axes, xticklabels=False, yticklabels=False, **looks)
        axes.set_facecolor("0.85")
        axes.set_title(f"{label}\n{words}", fontsize=style.SMALL)
        ticks, sites = [0.5, len(apart) - 0.5], [1, len(apart)]
        axes.set_xticks(ticks, sites, fontsize=6)
        axes.set_yticks(ticks, sites if axes is row[0] else [], fontsize=6)
        for number, values in enumerate(apart, start=1):
            columns = range(1, len(values) + 1)
            parts.append(points("b", f"{label}, row {number}", "", columns, values))
    bar = part.colorbar(row[0].collections[0], ax=list(row), shrink=0.75, aspect=14, pad=0.01)
    bar.locator = MaxNLocator(4)
    bar.ax.tick_params(labelsize=6)
    part.suptitle("(b) couplings and attention maps", x=0.01, ha="left")
    return pd.concat(parts)


def draw_errors(axes: Axes, data: Data) -> pd.DataFrame:
    """(c): err_J against the epoch, for runs whose maps were kept at more than one step."""
    parts = []
    for colour, entry in zip(_palette(data), data.architectures, strict=True):
        curves = []
        for run in entry.runs.values():
            epochs = dict(zip(run.curve["step"], run.curve["epoch"], strict=True))
            found = {
                epochs[step]: data.coupling_error(matrix).error
                for step, matrix in sorted(run.maps.items())
                if step in epochs
            }
            if found:
                curves.append(pd.Series(found))
        if curves:
            mean, spread = _line(axes, curves, 0.0, colour)
            parts.append(points("c", entry.label, "mean", mean.index, mean, spread))
    _epochs(axes)
    axes.set(
        yscale="log",
        ylabel="error of J\n|cA − J|² / |J|²",
        title="(c) reconstruction of the couplings",
    )
    return pd.concat(parts) if parts else points("c", "", "", [], [])


def draw_ends(axes: Axes, data: Data) -> pd.DataFrame:
    """(c) beside: err_J of every seed at its last step."""
    parts, shown = [], {}
    for number, entry in enumerate(data.architectures):
        found = _ends(entry, lambda run: data.coupling_error(run.last_map).error)
        shown[entry.label.replace(", ", "\n").replace(" attention", "")] = found
        parts.append(points("c end", entry.label, found.index, [number] * len(found), found))
    seaborn.stripplot(pd.DataFrame(shown), palette=_palette(data), alpha=0.8, jitter=False, ax=axes)
    upright = len(shown) > BESIDE
    axes.tick_params(axis="x", labelsize=6, labelrotation=90 if upright else 0)
    axes.tick_params(axis="y", labelleft=False)
    several = any(len(entry.runs) > 1 for entry in data.architectures)
    axes.set_title(f"at the end{', every seed' if several else ''}")
    return pd.concat(parts)


def draw_interpolation(axes: Axes, data: Data) -> pd.DataFrame:
    """(d): excess against a, with its standard error over seeds, if there are several, and over
    sequences paired with the optimum; nothing where the figure has no interpolation."""
    if not data.interpolation:
        axes.axis("off")
        return points("d", "", "", [], [])
    ends = [
        (entry.a, data.excess(entry).mean(), data.excess_error(entry))
        for entry in data.interpolation
    ]
    a, excess, errors = map(list, zip(*ends, strict=True))
    axes.errorbar(a, excess, yerr=errors, fmt="o-", color=style.TIMES[2], capsize=2)
    axes.set(ylim=(min(0.0, *excess), None), xlabel="a", title="(d) interpolation")
    axes.set_ylabel("loss above the optimum")
    parts = [points("d", "interpolation", "mean", a, excess, errors)]
    for entry in data.interpolation:
        places = [entry.a] * len(entry.runs)
        parts.append(points("d", "interpolation", list(entry.runs), places, data.excess(entry)))
    return pd.concat(parts)


def numbers(data: Data) -> list[pd.DataFrame]:
    """Every recipe that was tried, and what else is known of the maps, as panels of their own."""
    parts = []
    for entry in data.entries:
        for candidate in entry.candidates:
            ends = candidate.ends - data.optimum.end
            spread = ends.std(ddof=1) if len(ends) > 1 else math.nan
            series = f"{entry.label}: {candidate.model}"
            mean = [ends.mean()]
            parts.append(points("candidates", series, "mean", [candidate.rate], mean, spread))
        for panel, of_map in {
            "pearson": lambda run: data.coupling_error(run.last_map).pearson,
            "mean square": lambda run: data.coupling_error(run.last_map).mean_square,
            "values": lambda run: _value_error(run, data),
        }.items():
            known = _ends(entry, of_map)
            known = known[np.isfinite(known)]
            parts.append(points(panel, entry.label, known.index, [math.nan] * len(known), known))
    return parts


def _ends(entry: Entry, of_run) -> pd.Series:
    """A number of every seed's last map."""
    known = {seed: run for seed, run in entry.runs.items() if run.last_map is not None}
    return pd.Series({seed: of_run(run) for seed, run in known.items()}, dtype=float)


def _value_error(run: fig2_runs.PottsRun, data: Data) -> float:
    # U of the Hamiltonian is -1/2 of that of the paper's H, so that beta U is this.
    truth = -2 * data.hamiltonian.beta * data.hamiltonian.colours
    if run.values is None or run.values.shape != truth.shape:
        return math.nan
    scale = data.coupling_error(run.last_map).scale
    return gauge.value_error(run.values, truth, data.frequencies, scale)


# --- Looks and words -----------------------------------------------------------------------------


def recipe(candidate: Candidate) -> str:
    """Optimiser, rate and steps of a recipe, and the number of seeds."""
    settings = candidate.recipe["optimizer"]
    names = {"sgd": "SGD", "adamw": "Adam", "lbfgs": "L-BFGS"}
    words = [names.get(settings["name"], settings["name"])]
    if math.isfinite(candidate.rate):
        words[0] += f" {candidate.rate:g}"
    seeds = len(candidate.runs)
    words += [f"{candidate.recipe['steps']} steps", f"{seeds} seed{'s' if seeds > 1 else ''}"]
    return ", ".join(words)


def _palette(data: Data) -> list[str]:
    return [COLOURS[number % len(COLOURS)] for number in range(len(data.architectures))]


def _line(
    axes: Axes, curves: list[pd.Series], zero: float, colour: str, label: str | None = None
) -> tuple[pd.Series, pd.Series]:
    """Draws, and gives, the mean above `zero` and the sd (NaN for one) over seeds, at the times
    that all of them have."""
    joined = pd.concat(curves, axis=1, join="inner").sort_index()
    mean, spread = joined.mean(axis=1) - zero, joined.std(axis=1, ddof=1)
    shown = (joined - zero).melt(ignore_index=False, value_name="y").reset_index(names="x")
    looks = dict(color=colour, marker="o", markeredgewidth=0, err_kws=style.BAND)
    seaborn.lineplot(
        shown, x="x", y="y", errorbar="sd", label=label, legend=False, ax=axes, **looks
    )
    return mean, spread


def _epochs(axes: Axes) -> None:
    """Epochs from 0 on, linear up to 1 and logarithmic beyond: runs differ much in length."""
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    axes.set(xlim=(0, None), xlabel="training epoch")


def _log(axes: Axes, values: pd.Series) -> None:
    """A logarithmic axis of losses, if any is above the optimum."""
    finite = values[np.isfinite(values) & (values > 0)]
    if len(finite):
        axes.set(yscale="log", ylim=(0.5 * finite.min(), 1.3 * finite.max()))
