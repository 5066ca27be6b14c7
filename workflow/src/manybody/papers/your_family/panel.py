"""What generated sequences of a family are, beside the natural ones."""

import pandas as pd

from manybody.papers import style

TITLES = {"f": "one site", "c_2": "two sites, connected", "c_3": "three sites, connected"}
COLOURS = {"natural": style.ORIGINAL, "generated": style.ORDERS[2]}
CHAINS = {
    "own": ("themselves before", style.ORDERS[2]),
    "other": ("another chain before", style.ORIGINAL),
}


@style.in_house_style
def draw(table: pd.DataFrame, points: pd.DataFrame):
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
