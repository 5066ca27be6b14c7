"""Which orders of interaction generators and students use along training.

Beside the points of its panels the table has the half-times' errors: y_err of panel c is the
standard error of log(step) by the choice of contexts.
"""

import itertools
import textwrap

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from manybody.claims.simplicity.spectra import Spectra, read
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn, points

MARKERS = ("o", "s", "D", "^", "v", "P", "X")
FLOOR = 1e-5  # share of the variance below which nothing is drawn
SMALLEST = 1e-2  # nats: below it the axis of losses is linear
DEGREES = (0, 1, 2, 3)
TITLE = 42  # letters of a line of a title
STEPS = [digit * 10**power for power in range(7) for digit in (1, 3)]  # that are labelled


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    parts = (
        read(files, block.get(role, []), context) for role in ("generators", "students", "laws")
    )
    return figure_of(*parts)


@style.styled(style.RC)
def figure_of(generators: list[Spectra], students: list[Spectra], laws: list[Spectra]) -> Drawing:
    """M_k along training, their half-times, what each model ends with, and the loss by order."""
    figure = style.new(2, 5.2)
    panels = figure.subplots(2, 3)
    tables = []
    followed = [one for one in generators if one.followed]
    groups = {"a": students[:1], "b": students[1:2], "d": followed}
    places = {"a": panels[0, 0], "b": panels[0, 1], "d": panels[1, 0]}
    for letter, group in groups.items():
        axes = places[letter]
        name = ", ".join(
            f"{one.short} ({line})" if len(group) > 1 else one.short
            for one, line in zip(group, ("solid", "dashed", "dotted"), strict=False)
        )
        tables += [draw_growth(axes, letter, one, number) for number, one in enumerate(group)]
        runs = sum(len(one.runs) for one in group)
        if group:
            title = f"({letter}) {name}, {runs}\N{NO-BREAK SPACE}run{'s' if runs > 1 else ''}"
            axes.set_title(textwrap.fill(title, TITLE))
        axes.set(xscale="log", yscale="log", xlabel="training step", ylabel="$M_k$")
        style.plain_ticks(axes.xaxis, STEPS)
        if not group:
            axes.axis("off")
    rows = {one.short: one for one in [*students, *laws]}
    rows |= {f"{one.short}, generator": one for one in followed}
    tables += _draw_half_times(panels[0, 2], rows)
    models = [*generators, *students]
    tables += draw_shares(panels[1, 1], "e", models)
    tables += draw_losses(panels[1, 2], "f", models)
    figure.legend(handles=handles_of(models), loc="outside lower center", ncols=4)
    return figure, drawn(tables)


def handles_of(models: list[Spectra]) -> list[Line2D]:
    """What colours of orders and markers of models mean, for a legend."""
    handles = [
        Line2D([], [], color=style.ORDERS[k + 1], label=f"$M_{k}$: order {k + 1} and above")
        for k in models[0].orders
    ]
    return handles + [
        Line2D([], [], linestyle="", color="0.3", marker=marker, label=_name(one, models))
        for marker, one in zip(itertools.cycle(MARKERS), models, strict=False)
    ]


def _name(one: Spectra, models: list[Spectra]) -> str:
    """Generators of one label are told apart by their rank, a student from its like by its role."""
    alike = [other for other in models if other.label == one.label]
    rank = one.about["description"].get("rank")
    return (
        one.label
        if len(alike) == 1
        else f"{one.label}, {f'rank {rank}' if rank else one.about['model']}"
    )


def draw_growth(axes: Axes, panel: str, one: Spectra, number: int) -> pd.DataFrame:
    """A curve for each run and order, a dot at its half-time; hollow what an audit doubts."""
    tables, line = [], ("-", "--", ":")[number % 3]
    for k, seed in itertools.product(one.orders, one.runs):
        curve, colour = one.curve(seed, "M", k), style.ORDERS[k + 1]
        curve = curve[(curve["step"] > 0) & (curve["state"] == "measured")]
        axes.plot(curve["step"], curve["value"], color=colour, linestyle=line, linewidth=1.0)
        half = one.half_time(seed, k).step
        axes.plot(half, one.end(seed, "M", k)["value"] / 2, "o", color=colour, markersize=4)
        series = f"{one.short}: M_{k}"
        tables.append(points(panel, series, seed, curve["step"], curve["value"], curve["se"]))
        doubted = one.suspects(seed, "M", k)
        hollow = dict(color=colour, marker="s", markerfacecolor="white", linestyle="")
        axes.plot(doubted["step"], doubted["value"], **hollow)
        if len(doubted):
            given = seed, doubted["step"], doubted["value"], doubted["se"]
            tables.append(points(panel, f"{series}, suspect", *given))
    return pd.concat(tables, ignore_index=True)


def _draw_half_times(axes: Axes, models: dict[str, Spectra]) -> list[pd.DataFrame]:
    """A row for each entry, a point for each run and order, with its error."""
    tables, names = [], [name.replace(", ", ",\n") for name in models]
    for row, (name, one) in enumerate(models.items()):
        for place, (seed, k) in enumerate(itertools.product(one.runs, one.orders)):
            found, count = one.half_time(seed, k), len(one.runs)
            height = row + 0.5 * ((place // len(one.orders)) - (count - 1) / 2) / max(count, 2)
            looks = dict(color=style.ORDERS[k + 1], marker="o", linestyle="", elinewidth=0.8)
            if found.step > 0:
                axes.errorbar(found.step, height, xerr=found.step * found.error, **looks)
            tables.append(points("c", f"{name}: M_{k}", seed, [found.step], [row], found.error))
    axes.set_yticks(range(len(models)), names)
    axes.set(xscale="log", xlabel="half-time (steps)", ylim=(len(models) - 0.5, -0.5))
    style.plain_ticks(axes.xaxis, STEPS)
    axes.tick_params(axis="y", length=0)
    axes.set_title("(c) half of the end is reached")
    return tables


def draw_shares(axes: Axes, panel: str, models: list[Spectra]) -> list[pd.DataFrame]:
    """M_k over the variance at the last checkpoint; what is less than FLOOR has no point."""
    tables = []
    for number, one in enumerate(models):
        seed, tint = next(iter(one.runs)), MARKERS[number % len(MARKERS)]
        aside = 0.1 * (number - (len(models) - 1) / 2)
        for k in one.orders:
            end = one.end(seed, "M", k)
            tables.append(
                points(panel, _name(one, models), seed, [k], [end["share"]], end["share_se"])
            )
            if end["share"] < FLOOR:
                continue
            colour = style.ORDERS[k + 1]
            face = colour if end["state"] == "measured" else "white"
            looks = dict(
                color=colour, markerfacecolor=face, marker=tint, linestyle="", elinewidth=0.8
            )
            axes.errorbar(k + aside, end["share"], yerr=end["share_se"], **looks)
    orders = models[0].orders
    axes.set_xticks(orders, [f"$M_{k}$" for k in orders])
    axes.set(yscale="log", ylim=(FLOOR, 3), xlim=(orders[0] - 0.5, orders[-1] + 0.5))
    axes.set_title(f"({panel}) shares of the variance, last step")
    return tables


def draw_losses(axes: Axes, panel: str, models: list[Spectra]) -> list[pd.DataFrame]:
    """Excess of the loss of logits cut at each order over that of all orders."""
    tables, measured = [], [one for one in models if len(one.excess(next(iter(one.runs))))]
    for number, one in enumerate(models):
        if one not in measured:
            continue
        seed = next(iter(one.runs))
        found = one.excess(seed)
        found = found[found["order"].isin(DEGREES)]
        aside = 0.1 * (number - (len(models) - 1) / 2)
        looks = dict(
            color="0.35", marker=MARKERS[number % len(MARKERS)], linestyle="", elinewidth=0.8
        )
        axes.errorbar(found["order"] + 1 + aside, found["value"], yerr=found["se"], **looks)
        tables.append(
            points(panel, _name(one, models), seed, found["order"] + 1, found["value"], found["se"])
        )
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.set_yscale("symlog", linthresh=SMALLEST)
    axes.set_xticks([degree + 1 for degree in DEGREES])
    axes.set_ylim(top=10)
    axes.set(xlabel="orders up to", ylabel="loss above that of all (nats)")
    axes.set_title(f"({panel}) which orders the loss needs")
    return tables
