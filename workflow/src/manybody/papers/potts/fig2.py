"""Figure 2: factored attention and transformer encoders on samples of a Potts model.

In the table maps have columns in x, rows in the series, values in y. Numbers that are not points of
a panel have a panel of their own: `loss` (a with the loss itself, and the optimum), `c end` and
`pearson` (errors and correlations of J of all seeds at the last step) and `candidates` (x: learning
rate, y: excess of every recipe that was tried).
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io.options import Block as Part, NotNegative, Seeds, Text, key, refers
from manybody.papers import claims as records, inputs as needed, readings, style
from manybody.papers.figure import Adopting, Figure
from manybody.papers.potts import runs

COLOURS = (
    style.ORDERS[2],
    style.ORDERS[3],
    style.ORDERS[6],
    style.UNBOUNDED,
    style.ORDERS[4],
    style.TIMES[1],
)


class Choice(Part):
    """Runs among which the best learning rate is chosen."""

    candidates: list[refers("models")] = key(
        "Models that differ by their recipe; the one with the lowest held-out loss is drawn.",
        min_length=1,
    )
    seeds: Seeds = key("Runs of each.")

    def runs(self, source: str) -> list[needed.Trained]:
        return [
            needed.Trained(source=source, model=model, seed=seed)
            for model in self.candidates
            for seed in self.seeds
        ]


class Architecture(Choice):
    """One architecture of panels a to c."""

    label: Text = key("Name in the legend.")


class Interpolation(Choice):
    """Interpolated models of one parameter a, for panel d."""

    a: NotNegative = key("Their parameter.")
    candidates: list[refers("models", same=("a",))] = key(
        "Models that differ by their recipe; the one with the lowest held-out loss is drawn.",
        min_length=1,
    )


class Block(Figure):
    """Architectures on one sample of the generalised Potts model."""

    source: refers("sources") = key("A Potts source.")
    optimum: Adopting = key("The energy model with the source's own weights.")
    runs: list[Architecture] = key("Architectures of panels a to c.", min_length=1)
    interpolation: list[Interpolation] = key("Interpolated models of panel d.", [])


class Inputs(needed.Inputs):
    models: list[needed.Trained]
    maps: list[needed.Maps]
    equations: needed.Equations
    sequences: needed.Sequences
    hamiltonian: needed.Hamiltonian
    source: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        mapped = [run for entry in block.runs for run in entry.runs(block.source)]
        others = [run for entry in block.interpolation for run in entry.runs(block.source)]
        optimum = needed.Trained(source=block.source, model=block.optimum, seed=0)
        solved = [(run.source, run.model, run.seed) for run in [*mapped, *others]]
        return cls(
            models=[*mapped, *others, optimum],
            maps=[needed.Maps(**run.model_dump()) for run in mapped],
            equations=needed.Equations(runs=list(dict.fromkeys(solved))),
            sequences=needed.Sequences(source=block.source),
            hamiltonian=needed.Hamiltonian(source=block.source),
            source=config["sources"][block.source],
        )


class Tables(NamedTuple):
    """What is drawn, and all runs. maps: titles and matrices (L, L) of panel b, J first."""

    drawn: pd.DataFrame
    data: runs.Data
    maps: list[tuple[str, str, np.ndarray]]


def tables(inputs: Inputs, block: Block) -> Tables:
    data = runs.read(inputs, block)
    maps = _maps(data)
    rows = [
        style.points("b", f"{label}, row {number}", "", range(1, len(values) + 1), values)
        for label, _, matrix in maps
        for number, values in enumerate(matrix, start=1)
    ]
    parts = [*_losses(data), *rows, *_errors(data), *_steps(data), *runs.numbers(data)]
    return Tables(style.gathered(parts), data, maps)


def _losses(data: runs.Data) -> Iterator[pd.DataFrame]:
    """(a): excess of each architecture's best recipe, mean and sd over seeds; p / (2 M L), what any
    well-specified fit loses by its finite sample."""
    sizes = []
    for entry in data.architectures:
        curves = {seed: run.curve.set_index("epoch")["loss"] for seed, run in entry.runs.items()}
        yield _mean("a", entry.label, curves, data.optimum.end)
        for seed, curve in curves.items():
            yield style.points("loss", entry.label, seed, curve.index, curve)
        sizes.append(entry.about["recipe"].get("subset") or data.source["sequences"]["train"])
    optimum = data.optimum.curve.iloc[-1]
    yield style.points("loss", "optimum", "", math.nan, optimum["loss"], optimum["loss_se"])
    length, vocabulary = data.hamiltonian.length, data.hamiltonian.vocabulary
    parameters = length * (length - 1) + vocabulary * (vocabulary - 1) - 1
    for size in dict.fromkeys(sizes):
        expected = parameters / (2 * size * length)
        yield style.points("a", f"p/(2ML), M = {size}", "", math.nan, expected)


def _mean(panel: str, label: str, curves: dict[int, pd.Series], zero: float) -> pd.DataFrame:
    """Mean above `zero` and sd (NaN for one) over seeds, at the times that all of them have."""
    joined = pd.concat(curves, axis=1, join="inner").sort_index()
    mean = joined.mean(axis=1) - zero
    return style.points(panel, label, "mean", mean.index, mean, joined.std(axis=1))


def _maps(data: runs.Data) -> list[tuple[str, str, np.ndarray]]:
    """Label, correlation with J in words, and matrix of J and of each shown seed's map: of factored
    attention c A, with c, sign included, nearest to J: the gauge. Those of encoders have none."""
    shown = [("J", "true", np.array(data.hamiltonian.couplings, float))]
    for entry in data.architectures:
        run = entry.runs[readings.chosen(entry.runs)]
        if run.maps:
            error = data.coupling_error(run.last_map)
            scale = error.scale if entry.kind in runs.FACTORED else 1.0
            shown.append((entry.label, f"r = {error.pearson:.3f}", scale * run.last_map))
    for *_, matrix in shown:
        np.fill_diagonal(matrix, math.nan)
    return shown


def _errors(data: runs.Data) -> Iterator[pd.DataFrame]:
    """(c): err_J against the epoch, for runs whose maps were kept."""
    for entry in data.architectures:
        curves = {}
        for seed, run in entry.runs.items():
            errors = {step: data.coupling_error(found).error for step, found in run.maps.items()}
            epochs = run.curve.set_index("step")["epoch"]
            curves[seed] = pd.Series(errors, dtype=float).rename(epochs)
        yield _mean("c", entry.label, curves, 0.0)


def _steps(data: runs.Data) -> Iterator[pd.DataFrame]:
    for entry in data.interpolation:
        excess = runs.ends(entry.runs).mean() - data.optimum.end
        error = data.excess_error(entry)
        yield style.points("d", "interpolation", "mean", entry.a, excess, error)


def claims(tables: Tables) -> list[records.Claim]:
    data = tables.data
    seeds = max(len(entry.runs) for entry in data.entries)
    runs_each = f"up to {seeds} runs each" if seeds > 1 else "one run each"
    scope = f"{data.source['kind']} source, L = {data.hamiltonian.length}, {runs_each}"
    scope += f"; {data.repeated:.0%} of the held-out sequences are training sequences, too"
    above_zero = "the mean difference over seeds is above 0 by three standard errors"
    rows = {
        "encoders-above": (
            "Encoders end above factored attention, fewer layers higher",
            runs.encoders_above(data),
            above_zero,
            "figure 2a",
        ),
        "faster": (
            "Factored attention converges faster than encoders",
            runs.faster(data),
            above_zero,
            "figure 2a",
        ),
        "interpolation": (
            "The loss rises from factored to ordinary attention",
            runs.along_interpolation(data),
            above_zero,
            "figure 2d",
        ),
    }
    return records.all_judged("potts/fig2", rows, scope)


@style.in_house_style
def draw(tables: Tables):
    figure = style.new(2, 6.4)
    upper, middle, lower = figure.subfigures(3, 1, height_ratios=(1.05, 1.15, 1))
    errors, strength = lower.subplots(1, 2, width_ratios=(1.3, 1))
    _draw_losses(upper.subplots(), tables)
    count = len(tables.data.architectures)
    upper.legend(loc="outside upper left", ncols=count if count <= 4 else math.ceil(count / 2))
    _draw_maps(middle, tables)
    _draw_lines(errors, tables, "c")
    # No run has one where all diverged, and an axis without data has no logarithm.
    scale = "log" if (tables.drawn["y"][tables.drawn["panel"] == "c"] > 0).any() else "linear"
    errors.set(yscale=scale, ylabel="relative error |cA − J|² / |J|²")
    errors.set_title("(c) error of the couplings")
    _draw_interpolation(strength, tables)
    return figure


def _draw_lines(axes, tables: Tables, panel: str) -> None:
    """Means over seeds, with a band of one sd where there are several; epochs from 0 on, linear up
    to 1 and logarithmic beyond: runs differ much in length."""
    for number, entry in enumerate(tables.data.architectures):
        colour = COLOURS[number % len(COLOURS)]
        looks = dict(color=colour, marker="o", markeredgewidth=0, label=entry.label)
        style.band(axes, style.line(axes, tables.drawn, panel, entry.label, **looks), colour)
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    axes.set(xlim=(0, None), xlabel="training epoch")


def _draw_losses(axes, tables: Tables) -> None:
    _draw_lines(axes, tables, "a")
    drawn = tables.drawn[tables.drawn["panel"] == "a"]
    for _, row in drawn[drawn["series"].str.startswith("p/(2ML)")].iterrows():
        axes.axhline(row["y"], color="black", linestyle="--", linewidth=0.9, zorder=1)
        place = dict(xytext=(2, 2), textcoords="offset points", fontsize=style.SMALL)
        axes.annotate(row["series"], (0, row["y"]), **place)
    positive = drawn["y"][np.isfinite(drawn["y"]) & (drawn["y"] > 0)]
    if len(positive):
        axes.set(yscale="log", ylim=(0.5 * positive.min(), 1.3 * positive.max()))
    axes.set_ylabel("loss above the optimum\n(nats per token)")
    axes.set_title("(a) held-out loss")


def _draw_maps(part, tables: Tables) -> None:
    from matplotlib.ticker import MaxNLocator

    sites = [1, tables.data.hamiltonian.length]
    end = sites[1] + 0.5
    largest = np.nanmax(np.abs(tables.data.hamiltonian.couplings))
    looks = dict(cmap="RdBu_r", vmin=-largest, vmax=largest, extent=(0.5, end, end, 0.5))
    row = part.subplots(1, len(tables.maps), squeeze=False, sharey=True)[0]
    for axes, (label, words, matrix) in zip(row, tables.maps, strict=True):
        image = axes.imshow(matrix, **looks)
        axes.set(xticks=sites, yticks=sites, facecolor="0.85")
        axes.tick_params(labelsize=6)
        axes.set_title(label.replace(", ", "\n") + f"\n{words}", fontsize=style.SMALL)
    row[0].set_ylabel("site")
    looks = dict(shrink=0.75, aspect=14, pad=0.01, ticks=MaxNLocator(4), label="coupling")
    part.colorbar(image, ax=list(row), **looks).ax.tick_params(labelsize=6)
    part.suptitle("(b) couplings and attention maps; r: correlation with J", x=0.01, ha="left")


def _draw_interpolation(axes, tables: Tables) -> None:
    found = style.series(tables.drawn, "d", "interpolation")
    if found.empty:
        axes.axis("off")
        return
    axes.errorbar(found["x"], found["y"], found["y_err"], fmt="o-", color=style.ORIGINAL)
    axes.set(ylim=(min(0.0, *found["y"]), None), title="(d) from factored to ordinary attention")
    axes.set(xlabel="a", ylabel="loss above the optimum\n(nats per token)")


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "One layer of factored attention learns the couplings of a generalised Potts model.\n\n"
        "**(a)** Held-out loss above that of the true conditionals, every site masked in turn; "
        "dashed: the excess expected of a fit of p parameters to M sequences. **(b)** J, and the "
        "map of the run with the median loss; for factored attention c A, with the c that fits J "
        "best. **(c)** Relative error of these maps. **(d)** Loss above the optimum from factored "
        "(a = 0) to ordinary attention (a = 1).\n\n"
        r"Samples of {name}: L = {length}, \|V\| = {vocabulary}, {sequences[validation]} held-out "
        "sequences, some of them training sequences too. The best of each architecture's recipes "
        "is drawn, mean and sd over seeds.\n"
    ).format(**inputs.source, name=block.source)
