"""Figure 5: the overlap of layer 1 at convergence against that of layer 2, which is held fixed."""

import math

from manybody.io.options import Block as Part, key, refers
from manybody.papers import claims as records, style
from manybody.papers.figure import Figure
from manybody.papers.multi_index import curves
from manybody.papers.multi_index.curves import KIND, Inputs, channel, sampled
from manybody.papers.readings import Table

NO_FALL = 0.003  # a step down of Q11 that counts as none


class MultiIndexFig5Theory(Part):
    """Theory of figure 5."""

    fixed_overlap: refers("theory", f"{KIND}fixed-overlap") = key(
        "Theory of kind multi-index-fixed-overlap."
    )


class Block(Figure):
    """The overlap of layer 1 while layer 2 is held."""

    theory: MultiIndexFig5Theory = key("What is drawn.")


def tables(inputs: Inputs, block: Block) -> style.Tables:
    table = inputs.read()["fixed_overlap"]
    rows = [curves.named(table.get("fixed", "Q11"), "Q11"), curves.failures(table.failed("fixed"))]
    return style.Tables(curves.gathered({"": rows}), table)


def _smallest_step(table: Table) -> records.Comparison:
    """Where layer 1 is not learned the steps are 0, which is no fall."""
    label, found = "smallest step of Q11", table.get("fixed", "Q11")
    if len(found) < 2:
        return records.unusable(label, "Q22 is held at fewer than two values")
    if len(failed := table.failed("fixed")):
        places = ", ".join(f"{x:g}" for x in failed)
        return records.unusable(label, f"not converged at Q22 = {places}")
    steps = found["y"].diff().iloc[1:]
    if steps.isna().any():
        return records.unusable(label, "a Q11 is not a number")
    at = steps.idxmin()
    error = math.hypot(found["y_err"][at], found["y_err"].shift()[at])
    rule = dict(runs=table.entry["scrambles"], deviations=records.STRICT)
    label += f", up to Q22 = {found.loc[at, 'x']:g}"
    return records.above(label, steps[at], error, -NO_FALL, **rule)


def claims(tables: style.Tables) -> list[records.Claim]:
    entry = tables.found.entry
    at = "alpha = {alpha:g}, c = {skip:g}".format(**entry)
    return [
        curves.claim(
            "fig5/layer-2-helps",
            "The better the last layer is known, the more is learned of the first",
            [_smallest_step(tables.found)],
            f"two layers, {at}, {channel(entry)}, {len(entry['overlaps'])} values of Q22, "
            f"{sampled(entry)}",
            f"no step of Q11 is below -{NO_FALL:g} by three standard errors",
            "figure 5",
        )
    ]


@style.in_house_style
def draw(tables: style.Tables):
    figure, entry = style.new(1, 2.7), tables.found.entry
    axes = figure.subplots()
    curves.line(axes, tables.drawn, "", "Q11", curves.LAYER[1], marker="o", markersize=3)
    axes.set(
        xlabel="overlap of layer 2, Q₂₂, held fixed",
        ylabel="overlap of layer 1, Q₁₁",
        ylim=(-0.03, 1.04),
        title="α = {alpha:g}, c = {skip:g}, ".format(**entry) + channel(entry),
    )
    curves.mark_failures(axes, tables.drawn, "")
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    entry = inputs.entries["fixed_overlap"]
    return (
        "Layer 1 is not learned before layer 2 is known well.\n\n"
        f"Two tied layers, two tokens, c = {entry['skip']:g}, {channel(entry)}. The overlap Q₂₂ of "
        f"layer 2 is held at {len(entry['overlaps'])} values, and Q₁₁ solves its own fixed point "
        f"Q₁₁/(1 - Q₁₁) = α G₁₁(Q₁₁, Q₂₂) at α = {entry['alpha']:g}, the value of figure 2; the "
        "public data give none.\n\n"
        f"{sampled(entry)}, whose standard error is the band. Hollow, above: not converged.\n"
    )
