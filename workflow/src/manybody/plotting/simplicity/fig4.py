"""Figure 4: a masked student learns low orders first. Losses, accuracy, late losses by clone."""

import itertools
import math

import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from manybody import models
from manybody.claims import labels
from manybody.claims.saturation import SATURATION
from manybody.claims.simplicity import comparison
from manybody.claims.simplicity.learning import Student, read
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn
from manybody.plotting.simplicity.learning import EARLY, WIDE, Series, band, draw_curve, ladder


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    return figure_of(read(files, block, context))


@style.styled(style.RC)
def figure_of(student: Student) -> Drawing:
    """The losses on an axis of log steps, with the accuracy in an inset."""
    figure = style.new(9.2, 5.0)
    left, right = figure.subplots(1, 2, width_ratios=(1.55, 1))
    inset = left.inset_axes((0.09, 0.09, 0.36, 0.36))  # early losses are high: it is empty there
    parts, others = [], _controls(student)
    shown = [*ladder(student), *others]
    for series in shown:
        # Step 0 has no place on a log axis.
        losses, accuracy = (
            series.curve(name, name).query("x > 0") for name in ("loss", "accuracy")
        )
        draw_curve(left, losses, series)
        draw_curve(inset, accuracy, series, errorbar=None, err_kws=None, marker="", linewidth=0.9)
        saturated = series.saturation()
        _mark(left, saturated, series)
        parts += [losses, accuracy, saturated]
    causal = models.about(student.about["description"]).causal
    what = "next-token" if causal else "masked-token"
    left.set(
        xlabel="training step",
        ylabel=f"{what} test loss (nats per token)",
        title=labels.scale(student.about, student.seeds),
    )
    for axes in (left, inset):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10))
        axes.xaxis.set_minor_formatter(NullFormatter())
    inset.set(xlabel="", ylabel="")
    inset.set_title("accuracy", fontsize=7, pad=2)
    inset.tick_params(labelsize=6)
    inset.set_facecolor("none")
    parts.append(_draw_late(right, student, others))
    text = f"t: saturation, {SATURATION[0]:.0%} of the drop left"
    mark = Line2D([], [], color="0.4", marker="v", markersize=6, linestyle="", label=text)
    figure.legend(
        handles=[*map(_handle, shown), mark],
        loc="outside lower center",
        ncols=2,
        title="\n".join([band(student.seeds), *_findings(student)]),
        alignment="left",
    )
    return figure, drawn(parts)


def _controls(student: Student) -> list[Series]:
    """The clones that tell order from quality."""
    block, found = student.block, []
    if "early_stopped" in block:
        found.append(Series(student, block["early_stopped"], EARLY))
    if "wide" in block:
        found.append(Series(student, block["wide"], WIDE, rank=True))
    return found


def _mark(axes: Axes, saturated: pd.DataFrame, series: Series) -> None:
    """A triangle on the step axis at the saturation step, with its sd over seeds."""
    step, sd = saturated[["x", "y_err"]].iloc[0]
    if math.isnan(step):
        return
    looks = series.looks | {"marker": "v", "markersize": 6, "linestyle": ""}
    axes.errorbar(
        step,
        1.0,
        xerr=None if math.isnan(sd) else sd,
        transform=axes.get_xaxis_transform(),
        clip_on=False,
        **looks,
    )


def _draw_late(axes: Axes, student: Student, controls: list[Series]) -> pd.DataFrame:
    """Losses at a few late steps, clone by clone from low to high order, then all others."""
    *rungs, original = ladder(student)
    others = [original, *controls]
    slots = [(series, place) for place, series in enumerate(rungs)]
    slots += [(series, len(rungs) + 0.3 + place) for place, series in enumerate(others)]
    curves = [series.curve("late", "loss").assign(place=place) for series, place in slots]
    steps = student.block["late_steps"]
    late = pd.concat(
        [
            curve[curve["x"] == step].assign(step=f"step {step}")
            for step in steps
            for curve in curves
        ],
        ignore_index=True,
    )
    runs = late[late["seed"] != "mean"]
    palette = dict(zip([f"step {step}" for step in steps], itertools.cycle(style.TIMES)))
    looks = dict(hue="step", palette=palette, marker="o", markersize=5, markeredgewidth=0)
    looks |= dict(errorbar="sd", err_style="bars", err_kws={"capsize": 2})
    of_ladder = runs["place"] < len(rungs)
    if len(runs):  # else no such step is a checkpoint
        seaborn.lineplot(runs[of_ladder], x="place", y="y", ax=axes, **looks)
        looks |= {"linestyle": "", "legend": False}
        seaborn.lineplot(runs[~of_ladder], x="place", y="y", ax=axes, **looks)
        seaborn.move_legend(
            axes,
            "lower left",  # above the axes: the losses may be anywhere in them
            title="the same losses, clone by clone, at",
            alignment="left",
            bbox_to_anchor=(-0.03, 1.0),
            ncols=len(steps),
            columnspacing=1.0,
        )
    axes.axvline(len(rungs) - 0.35, color="0.8", linewidth=0.8)
    axes.set_xticks([place for _, place in slots], [_slot_name(series) for series, _ in slots])
    axes.set(
        xlim=(-0.4, slots[-1][1] + 0.4),
        xlabel="order of the clone's generator",
        ylabel="test loss (nats per token)",
    )
    return late


def _slot_name(series: Series) -> str:
    notes = {EARLY["marker"]: "\nstopped", WIDE["marker"]: "\nwide"}
    return series.short + notes.get(series.looks["marker"], "")


def _handle(series: Series) -> Line2D:
    """The legend's line, with the saturation step and its sd over seeds."""
    step, sd = series.saturation()[["x", "y_err"]].iloc[0]
    text = series.label
    if not math.isnan(step):
        text += f" (t = {step:.0f})" if math.isnan(sd) else f" (t = {step:.0f} ± {sd:.0f})"
    return Line2D([], [], label=text, **series.looks)


def _findings(student: Student) -> list[str]:
    """What the controls show: d, the log of the ratio of the times, by the first definition."""
    marks = {"stopped": "◇", "wide": "□"}
    found = []
    for role, one in comparison.compared(student, "fig. 4").items():
        share, d = next(iter(one.found.items()))
        found.append(
            f"control {marks[role]}: d = {d} at {share:.0%} left; "
            f"above {comparison.BOUND:.2f} if the order set the time: {one.claim['holds']}"
        )
    return found
