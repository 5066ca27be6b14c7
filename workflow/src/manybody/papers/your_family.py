"""Pictures of a family: what mutations of a sequence change, and what generated sequences are
beside the natural ones."""

import numpy as np
import pandas as pd

from manybody.papers import style

STRIP = 60  # sites in a row of the figure
EXTREME = 99  # percentile of the sizes of changes from which colours are full
TITLES = {"f": "one site", "c_2": "two sites, connected", "c_3": "three sites, connected"}
COLOURS = {"natural": style.ORIGINAL, "generated": style.ORDERS[2]}
CHAINS = {
    "own": ("themselves before", style.ORDERS[2]),
    "other": ("another chain before", style.ORIGINAL),
}


@style.in_house_style
def mutations(changes: np.ndarray, own: np.ndarray, sites: list[str], letters: str):
    """Changes of log p (L, q) of `measure.mutations.scan`, with a dot at the residue that the
    sequence `own` (L,) has, grey where that is a gap. sites: their names; letters: the alphabet,
    whose gap is left out."""
    from matplotlib import colormaps

    rows = -(-len(sites) // STRIP)
    figure = style.new(2, 0.6 + 0.11 * len(letters) * rows)
    most = np.nanpercentile(abs(changes), EXTREME)
    colours = colormaps["RdBu"].with_extremes(bad="0.85")
    looks = dict(cmap=colours, vmin=-most, vmax=most, aspect="auto", interpolation="none")
    for row, axes in enumerate(figure.subplots(rows, 1, squeeze=False).flat):
        first, last = STRIP * row, min(STRIP * (row + 1), len(sites))
        drawn = axes.imshow(changes[first:last, 1:].T, **looks)
        with_residue = np.flatnonzero(own[first:last])
        axes.plot(with_residue, own[first:last][with_residue] - 1, "k.", markersize=2)
        axes.set_xlim(-0.5, STRIP - 0.5)
        ticks = np.arange(0, last - first, 5)
        axes.set_xticks(ticks, [sites[first + tick] for tick in ticks])
        axes.set_yticks(range(len(letters) - 1), letters[1:])
        axes.tick_params(labelsize=6, length=0)
        axes.spines["bottom"].set_bounds(-0.5, last - first - 0.5)
    figure.colorbar(drawn, ax=figure.axes, label="change of log p (nats)", aspect=40)
    return figure


@style.in_house_style
def generated(table: pd.DataFrame, points: pd.DataFrame):
    """Six panels of the two tables of `measure.family_statistics`, whose points are also those of
    the panel `mixing`: three statistics, projections, distances to the nearest natural sequence,
    and how the chains mix."""
    figure = style.new(2, 4.8)
    *statistics, components, distances, chains = figure.subplots(2, 3).flat
    drawn = {panel: dict(iter(one.groupby("series"))) for panel, one in points.groupby("panel")}
    for letter, axes, row in zip("abc", statistics, table.itertuples(), strict=True):
        (values,) = drawn[row.statistic].values()
        ends = values[["x", "y"]].to_numpy()
        axes.plot([ends.min(), ends.max()], [ends.min(), ends.max()], color=style.ORIGINAL)
        axes.plot(values["x"], values["y"], ".", color=COLOURS["generated"], markersize=1.5)
        axes.set(xlabel="natural", ylabel="generated", title=f"({letter}) {TITLES[row.statistic]}")
        said = f"r = {row.correlation:.3f}\nslope {row.slope:.2f}\nhalves: r = {row.halves:.3f}"
        axes.text(0.05, 0.95, said, transform=axes.transAxes, va="top", fontsize=style.SMALL)
    for series, colour in COLOURS.items():
        along, near = drawn["components"][series], drawn["distances"][series]
        components.plot(along["x"], along["y"], ".", color=colour, markersize=2, label=series)
        distances.plot(near["x"], near["y"], color=colour, label=series)
    components.set(xlabel="first component", ylabel="second", title="(d) principal components")
    distances.set(xlabel="sites that differ (share)", ylabel="share of sequences")
    distances.set_title("(e) nearest natural sequence")
    style.legend_below(distances, 2)
    for name, (label, colour) in CHAINS.items():
        later = drawn["mixing"][name]
        chains.plot(later["x"], later["y"], ".-", color=colour, label=label)
    chains.set(xscale="log", xlabel="sweeps later", ylabel="share of sites")
    style.plain_ticks(chains.xaxis)
    chains.set_title("(f) chains have the colour of")
    style.legend_below(chains)
    return figure
