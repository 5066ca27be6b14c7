"""Recovery of the couplings: errors of factored attention against the number of sequences M.

The numbers are those of `training.learning_curves.compute`, of kind `recovery`.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io.options import key, refers
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.readings import Table

POINTS = dict(color=style.ORDERS[2], linestyle="", marker="o")
LOOKS = {
    "coupling error": POINTS | dict(alpha=0.7, markeredgecolor="white", markersize=5),
    "fit": dict(color="0.4"),
    "pearson": POINTS,
    "score correlation": POINTS | dict(color=style.ORDERS[4], marker="D"),
    "excess loss": POINTS | dict(markersize=3, elinewidth=0.8),
    "expected excess": dict(color=style.UNBOUNDED),
}
PANELS = {
    "a": ("coupling error", "fit"),
    "b": ("pearson", "score correlation"),
    "c": ("excess loss", "expected excess"),
}
AXES = {
    "a": dict(yscale="log", ylabel="err$_J$ = |cA − J|² / |J|²"),
    "b": dict(ylabel="Pearson r", ylim=(None, 1.01)),
    "c": dict(yscale="log", ylabel="excess loss (nats per site)"),
}
SLOPE = (-1.0, 0.15)  # of log err_J by log M, and its tolerance


class Block(Figure):
    """Errors of the couplings against the number of sequences."""

    curve: refers("curves", "recovery") = key("Curve of kind recovery.")


class Inputs(needed.Inputs):
    curve: needed.Curve
    entry: dict
    source: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        entry = config["curves"][block.curve]
        return cls(
            curve=needed.Curve(curve=block.curve),
            entry=entry,
            source=config["sources"][entry["source"]],
        )


class Tables(NamedTuple):
    """Rows drawn; slope of log err_J by log M with its standard error; runs; L."""

    drawn: pd.DataFrame
    slope: tuple[float, float]
    runs: int
    length: int


def tables(inputs: Inputs, block: Block) -> Tables:
    table = Table.read(inputs.curve.file())
    found = {
        name: pd.concat([table.get(name, series) for series in table.series(name)])
        for name in LOOKS
        if name != "fit"
    }
    slope = table.get("mean slope", table.series("mean slope")[0]).iloc[0]
    power, errors = slope["y"], found["coupling error"]
    sizes = np.array(sorted(errors["x"].unique()))
    level = np.log(errors["y"]).mean() - power * np.log(errors["x"]).mean()
    found["fit"] = pd.DataFrame({"x": sizes, "y": np.exp(level) * sizes**power, "seed": "all"})
    parts = [
        found[name].assign(panel=panel, series=name)
        for panel, names in PANELS.items()
        for name in names
    ]
    given = (power, slope["y_err"]), errors["seed"].nunique(), table.about["length"]
    return Tables(style.gathered(parts), *given)


def claims(tables: Tables) -> list[records.Claim]:
    return [
        records.judged(
            "potts/recovery/slope",
            "The squared error of inferred couplings falls as 1 / M",
            records.near("slope of log err_J by log M", *tables.slope, *SLOPE, runs=tables.runs),
            scope=f"{tables.runs} samples, L = {tables.length}",
            rule=f"the slope is {SLOPE[0]:g} within {SLOPE[1]:g}",
        )
    ]


@style.in_house_style
def draw(tables: Tables):
    figure = style.new(2, 2.9)
    labels = {
        "coupling error": f"{tables.runs} samples",
        "fit": "$M^{{s}}$, s = {:.3f} ± {:.3f}".format(*tables.slope),
        "pearson": "A$_{ij}$ with J$_{ij}$",
        "score correlation": "|A$_{ij}$ + A$_{ji}$| / 2 with |J$_{ij}$|",
        "excess loss": "fits",
        "expected excess": "p / (2ML)",
    }
    titles = (
        f"(a) error of the couplings, L = {tables.length}",
        "(b) correlation with the true J",
        "(c) test loss above the optimum",
    )
    places = figure.subplots(1, 3)
    for axes, title, (panel, names) in zip(places, titles, PANELS.items(), strict=True):
        for name in names:
            found = style.series(tables.drawn, panel, name)
            errors = found["y_err"] if found["y_err"].max() > 0 else None
            axes.errorbar(found["x"], found["y"], errors, label=labels[name], **LOOKS[name])
        sizes = sorted(set(found["x"]))
        axes.set(xscale="log", xlabel="sequences M", title=title, **AXES[panel])
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes], rotation=45)
        axes.set_xticks([], minor=True)
        style.legend_below(axes, drop=0.62)
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "Inverse Potts: factored attention recovers the couplings from M sequences.\n\n"
        "**(a)** Relative squared error of A, its scale and sign fixed by the best fit to J, one "
        "point a sample; the line is a power of M through them. **(b)** Correlation of A with J "
        "over ordered pairs, and of symmetrised scores over pairs. **(c)** Test loss less that of "
        "the true conditionals on {test} sequences, some of them among the M; the line p / (2ML) "
        "has no free parameter.\n\n"
        "One head (free A, full V) was fitted by L-BFGS to all L = {length} masks of M sequences, "
        "{realisations} times at each M, with a ridge of {ridge:g}.\n"
    ).format(**inputs.entry, length=inputs.source["length"])
