"""Figure 4: a masked student learns low orders first. Losses, accuracy, late losses by clone."""

import itertools
import math
import textwrap

import numpy as np
import pandas as pd
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
from manybody.plotting.statistical import seaborn

LINE = 145  # characters of small type in two columns


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    return figure_of(read(files, block, context))


@style.styled(style.RC)
def figure_of(student: Student) -> Drawing:
    """When losses saturate, the losses with the accuracy in an inset, and late ones by clone."""
    figure = style.new(2, 5.4)
    places = [["times", "late"], ["left", "late"]]
    panels = figure.subplot_mosaic(places, width_ratios=(1.5, 1), height_ratios=(1, 2.9))
    times, left, right = (panels[name] for name in ("times", "left", "late"))
    inset = left.inset_axes((0.1, 0.11, 0.36, 0.36))  # early losses are high: it is empty there
    parts, others = [], _controls(student)
    shown = [*ladder(student), *others]
    for series in shown:
        # Step 0 has no place on a log axis.
        losses, accuracy = (
            series.curve(name, name).query("x > 0") for name in ("loss", "accuracy")
        )
        draw_curve(left, losses, series)
        draw_curve(inset, accuracy, series, errorbar=None, err_kws=None, marker="", linewidth=0.9)
        parts += [losses, accuracy, series.saturation(), series.between()]
    causal = models.about(student.about["description"]).causal
    what = "next-token" if causal else "masked-token"
    left.set(xlabel="training step", ylabel=f"{what} test loss (nats per token)")
    for axes in (left, inset):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10))
        axes.xaxis.set_minor_formatter(NullFormatter())
    inset.set(xlabel="", ylabel="")
    inset.set_title("accuracy", fontsize=style.SMALL, pad=2)
    inset.tick_params(labelsize=6)
    inset.set_facecolor("none")
    _draw_times(times, left, shown)
    times.set_title(
        f"{labels.scale(student.about, student.seeds)}\n"
        f"(a) saturation ({SATURATION[0]:.0%} of the drop left) is between checkpoints"
    )
    left.set_title("(b) loss on each clone")
    parts.append(_draw_late(right, student, others))
    figure.legend(
        handles=[Line2D([], [], label=series.label, **series.looks) for series in shown],
        loc="outside lower left",
        ncols=2,
        title="\n".join([*_findings(student), band(student.seeds)]),
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


def _draw_times(axes: Axes, losses: Axes, shown: list[Series]) -> None:
    """A row for each series: a bar from checkpoint to checkpoint, on the axis of the losses."""
    first, last = losses.get_xlim()
    axes.set(xscale="log", xlim=(first, last))
    for row, series in enumerate(shown):
        low, high = series.between()["x"]
        if math.isnan(low):
            continue
        colour = series.looks["color"]
        # Step 0, where a loss that never falls saturates, has no place on a log axis.
        begin, end = max(low, first), max(high, first)
        axes.plot([begin, end], [row, row], "|-", color=colour, linewidth=2.5)
        early = math.log(end / first) < 0.5 * math.log(last / first)
        axes.annotate(
            f"{low:g} to {high:g}" if high else "step 0",
            (end if early else begin, row),
            xytext=(5 if early else -5, 0),
            textcoords="offset points",
            ha="left" if early else "right",
            va="center",
            fontsize=style.SMALL,
        )
    names = [_slot_name(series).replace("\n", " ") for series in shown]
    axes.set_yticks(range(len(shown)), names)
    axes.set(ylim=(len(shown) - 0.4, -0.6), ylabel="order")
    axes.tick_params(labelbottom=False)
    axes.tick_params(axis="y", length=0)


def _draw_late(axes: Axes, student: Student, controls: list[Series]) -> pd.DataFrame:
    """Losses at a few late steps, clone by clone from low to high order, then all others."""
    *rungs, original = ladder(student)
    others = [original, *controls]
    slots = [(series, place) for place, series in enumerate(rungs)]
    slots += [(series, len(rungs) + 0.3 + 1.3 * place) for place, series in enumerate(others)]
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
    looks = dict(hue="step", palette=palette, marker="o", markeredgewidth=0)
    looks |= dict(errorbar="sd", err_style="bars", err_kws={"capsize": 2})
    of_ladder = runs["place"] < len(rungs)
    if len(runs):  # else no such step is a checkpoint
        seaborn.lineplot(runs[of_ladder], x="place", y="y", ax=axes, **looks)
        looks |= {"linestyle": "", "legend": False}
        seaborn.lineplot(runs[~of_ladder], x="place", y="y", ax=axes, **looks)
        seaborn.move_legend(
            axes,
            "lower left",  # above the axes: the losses may be anywhere in them
            title="(c) the same losses, clone by clone, at",
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
        ylabel="",  # that of (b)
    )
    return late


def _slot_name(series: Series) -> str:
    notes = {EARLY["marker"]: "\nstopped", WIDE["marker"]: "\nwide"}
    return series.short + notes.get(series.looks["marker"], "")


def _findings(student: Student) -> list[str]:
    """What the controls show, in sentences: how much later a loss saturates, and the answer."""
    found = comparison.compared(student, "fig. 4")
    if not found:
        return []
    sentences = ["The order or the quality of the generator? Two clones were made to tell:"]
    answers = {"yes": "it is the order", "no": "it is not the order"}
    for role, one in found.items():
        d = next(iter(one.found.values()))  # log of the ratio of times, by the first definition
        factor, low, high = (f"{np.exp(value):.2f}" for value in (d.value, d.low, d.high))
        late, early = (_order(student, kind[0]) for kind in (one.late, one.early))
        which = {
            "stopped": f"◇ {late}, stopped near the test loss of {early}, saturates",
            "wide": f"□ {early}, made wide to come near that of {late}: {late} saturates",
        }[role]
        answer = answers.get(one.claim["holds"], one.claim["holds"])
        text = f"{which} at {factor} times the step of the other"
        text += f" (95 %: {low} to {high}): {answer}."
        sentences += textwrap.wrap(text, LINE, subsequent_indent="    ")
    bound = np.exp(comparison.BOUND)
    sentences.append(
        f"It is the order if all of the interval lies above {bound:.2f} and the two test losses "
        "are shown to be equal."
    )
    return sentences


def _order(student: Student, target: str) -> str:
    """`order 9`, or the name of a network that has none."""
    short = labels.short(student.targets[target]).split()[0]
    return f"order {short}" if short.isdigit() else short
