"""The order spectrum against exact truth: a network trained on samples of a known Hamiltonian."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from manybody.claims.simplicity.spectrum_truth_runs import NEAR, Truth, read_truth, share
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn, points

BESIDE = 1.25  # steps of points beside the last, as a factor of it and of each other
STEPS = [digit * 10**power for power in range(7) for digit in (1, 3)]  # that are labelled


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    return figure_of(read_truth(files, block, context))


@style.styled(style.RC)
def figure_of(found: Truth) -> Drawing:
    """Shares of the orders, M_k with half-times, and the loss, all along training."""
    figure = style.new(2, 3.0)
    shares, growth, losses = figure.subplots(1, 3)
    tables = [
        *_draw_shares(shares, found),
        *_draw_growth(growth, found),
        *_draw_losses(losses, found),
    ]
    for axes in (shares, growth, losses):
        axes.set(xscale="log", xlabel="training step")
        style.plain_ticks(axes.xaxis, STEPS)
    handles = [
        Line2D([], [], color=style.ORDERS[d + 1], label=f"order {d + 1} (b: $M_{d}$)")
        for d in found.degrees
    ]
    looks = dict(color="0.3")
    handles += [
        Line2D([], [], label=found.student.short, **looks),
        Line2D([], [], linestyle="--", label="truth, all contexts", **looks),
        Line2D([], [], linestyle="", marker="o", label="truth, from draws", **looks),
        Line2D([], [], linestyle="", marker="x", label="a model of pairs", **looks),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure, drawn(tables)


def _draw_shares(axes: Axes, found: Truth) -> list[pd.DataFrame]:
    seed, tables = next(iter(found.student.runs)), []
    for d in found.degrees:
        colour, curve = style.ORDERS[d + 1], found.student.curve(seed, "W", d)
        curve, true = curve[curve["step"] > 0], share(found.truth, d)
        last = curve["step"].iloc[-1]
        drawn_, pairs = (
            one.end(next(iter(one.runs)), "W", d) for one in (found.estimate, found.pairs)
        )
        axes.plot(curve["step"], curve["share"], color=colour)
        axes.axhline(true, color=colour, linestyle="--", linewidth=0.8, zorder=1)
        looks = dict(color=colour, linestyle="", elinewidth=0.8)
        axes.errorbar(last * BESIDE, drawn_["share"], yerr=drawn_["share_se"], marker="o", **looks)
        axes.plot(last * BESIDE**2, pairs["share"], "x", color=colour)
        name = f"order {d + 1}"
        tables += [
            points("a", f"{name}, {found.student.short}", seed, curve["step"], curve["share"]),
            points("a", f"{name}, truth", 0, [last], [true]),
            points(
                "a", f"{name}, truth from draws", 0, [last], [drawn_["share"]], drawn_["share_se"]
            ),
            points("a", f"{name}, pairs", 0, [last], [pairs["share"]]),
        ]
    axes.set(title="(a) share of each order", ylabel="$W_d$ / Var g")
    return tables


def _draw_growth(axes: Axes, found: Truth) -> list[pd.DataFrame]:
    seed, tables = next(iter(found.student.runs)), []
    for k in found.degrees:
        colour, curve = style.ORDERS[k + 1], found.student.curve(seed, "M", k)
        curve, true = (
            curve[curve["step"] > 0],
            found.truth.end(next(iter(found.truth.runs)), "M", k),
        )
        axes.plot(curve["step"], curve["value"], color=colour)
        axes.axhline(true["value"], color=colour, linestyle="--", linewidth=0.8, zorder=1)
        half, height = found.student.half_time(seed, k), curve["value"].iloc[-1] / 2
        axes.plot(half.step, height, "D", color=colour, markersize=4)
        tables += [
            points("b", f"M_{k}, {found.student.short}", seed, curve["step"], curve["value"]),
            points("b", f"M_{k}, truth", 0, [curve["step"].iloc[-1]], [true["value"]]),
            points("half-times", f"M_{k}", seed, [half.step], [height]),
        ]
    axes.set(yscale="log", title="(b) $M_k$; diamonds: half-times", ylabel="$M_k$")
    return tables


def _draw_losses(axes: Axes, found: Truth) -> list[pd.DataFrame]:
    losses = found.losses[found.losses["step"] > 0]
    axes.plot(losses["step"], losses["excess"], color="0.3")
    axes.plot(losses["step"].iloc[-1] * BESIDE, found.pairs_excess, "x", color="0.3")
    axes.axhline(NEAR, color="0.8", linewidth=0.8, zorder=0)
    axes.set(yscale="log", title="(c) loss above the truth", ylabel="nats per token")
    seed = next(iter(found.student.runs))
    return [
        points("c", found.student.short, seed, losses["step"], losses["excess"]),
        points("c", "pairs", 0, [losses["step"].iloc[-1]], [found.pairs_excess]),
    ]
