"""Figure 3: how good the generators are and whether their chains have settled.

Bands are one standard error, over sequences in (a) and chains in (b).
"""

import pandas as pd
from matplotlib.axes import Axes

from manybody.claims import labels
from manybody.claims.simplicity.quality import Quality, generator_label, read
from manybody.io import tables
from manybody.plotting import palette, style
from manybody.plotting.points import Drawing, drawn, points


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    return figure_of(read(files, block, context))


@style.styled(style.RC)
def figure_of(quality: Quality) -> Drawing:
    """(a) test losses of generators, (b) mean scores of their chains, (c) two sweeps compared."""
    figure = style.new(2, 3.9)
    first, second, third = figure.subplots(1, 3)
    parts = [
        *_draw_quality(first, quality),
        *_draw_scores(second, quality),
        *_draw_sweeps(third, quality),
    ]
    for axes in (first, third):
        axes.set(xscale="log", xlabel="training step", ylabel="test loss (nats per token)")
    for axes in (first, second, third):
        style.legend_below(axes)
    return figure, drawn(parts)


def _draw_quality(axes: Axes, quality: Quality) -> list[pd.DataFrame]:
    block, parts = quality.block, []
    wide = block.get("wide_generator")
    for name in [*block["generators"], *([wide] if wide else [])]:
        run = quality.generators[name]
        looks = {"marker": "o", "color": palette.generator_colour(run.about["description"])}
        if name == wide:
            looks |= {"linestyle": "--", "marker": "s", "markerfacecolor": "white"}
        label = generator_label(run, rank=name == wide)
        parts.append(_curve("a", label, run, block["test"]))
        axes.plot(parts[-1]["x"], parts[-1]["y"], label=label, markersize=3, **looks)
        style.band(axes, parts[-1], looks["color"])
    axes.set_title("(a) the generators on test text")
    return parts


def _draw_scores(axes: Axes, quality: Quality) -> list[pd.DataFrame]:
    parts = []
    for name in quality.block["chains"]:
        chains = quality.chains[name]
        about, trace = chains
        colour = palette.generator_colour(about["generator"]["description"])
        kept, rhat = 1 - trace["changed"].iloc[-1], trace["rhat"].iloc[-1]
        state = f"{chains.label}\n$\\hat R$ = {rhat:.2g}, {kept:.0%} of the start kept"
        score = trace["sweep"], trace["score"], trace["score_se"]
        parts.append(points("b", chains.label, about["chain_seed"], *score))
        axes.plot(parts[-1]["x"], parts[-1]["y"], color=colour, label=state)
        style.band(axes, parts[-1], colour)
    axes.set(xlabel="sweep", ylabel=r"mean score $-E/L$ (nats per position)")
    energy = quality.chains[quality.block["chains"][0]].about["energy"]
    axes.set_title(f"(b) the chains, {energy} score")
    return parts


def _draw_sweeps(axes: Axes, quality: Quality) -> list[pd.DataFrame]:
    student, parts = quality.student, []
    for pair in quality.block["pairs"]:
        for target, line, marker in zip(pair, ("-", "--"), ("o", "D"), strict=True):
            document = student.targets[target]
            colour = palette.colour(document)
            label = f"{labels.target(document)}, {document['sweep']} sweeps"
            parts.append(_curve("c", label, student, target))
            face = colour if line == "-" else "white"
            looks = dict(marker=marker, markersize=3, markerfacecolor=face, color=colour)
            axes.plot(parts[-1]["x"], parts[-1]["y"], line, label=label, **looks)
    axes.set_title(f"(c) student ({labels.network(student.about['description'])})")
    return parts


def _curve(panel: str, label: str, run, target: str) -> pd.DataFrame:
    """A run's loss on a target by step; step 0 has no place on a log axis."""
    curve = tables.learning_curves(run.losses)
    curve = curve[(curve["target"] == target) & (curve["step"] > 0)]
    return points(panel, label, run.about["seed"], curve["step"], curve["loss"], curve["loss_se"])
