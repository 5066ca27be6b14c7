"""Which orders of interaction a model uses along its checkpoints, and how far they reach."""

import itertools

import pandas as pd
from matplotlib.axes import Axes

from manybody.claims.simplicity.spectra import Spectra, read
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn, points
from manybody.plotting.simplicity.spectrum import draw_growth, draw_losses, draw_shares, handles_of

LINES = ("-", "--", ":")


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see `plotting.simplicity`."""
    return figure_of(read(files, block["spectra"], context))


@style.styled(style.RC)
def figure_of(models: list[Spectra]) -> Drawing:
    """M_k along the checkpoints, if there are several; at the last one shares, reach and loss."""
    followed = [one for one in models if one.followed]
    panels = [_draw_series] if followed else []
    panels += [draw_shares, _draw_reach]
    if any(len(one.excess(seed)) for one in models for seed in one.runs):
        panels.append(draw_losses)
    rows = -(-len(panels) // 2)
    figure = style.new(2, 0.6 + 2.4 * rows)
    places, tables = figure.subplots(rows, 2, squeeze=False).flat, []
    for axes, letter, panel in itertools.zip_longest(places, "abcd"[: len(panels)], panels):
        if panel is None:
            axes.axis("off")
            continue
        tables += panel(axes, letter, followed if panel is _draw_series else models)
    figure.legend(handles=handles_of(models), loc="outside lower center", ncols=4)
    return figure, drawn(tables)


def _draw_series(axes: Axes, panel: str, models: list[Spectra]) -> list[pd.DataFrame]:
    tables = [draw_growth(axes, panel, one, number) for number, one in enumerate(models)]
    doubted = any(one.about.get("suspects") for one in models)
    axes.set_title(f"({panel}) along training{'; hollow: suspect' if doubted else ''}")
    axes.set(xscale="log", yscale="log", xlabel="training step", ylabel="$M_k$")
    return tables


def _draw_reach(axes: Axes, panel: str, models: list[Spectra]) -> list[pd.DataFrame]:
    """Share of M_k by the distance of its first position from its last, target included."""
    tables = []
    for number, one in enumerate(models):
        seed = next(iter(one.runs))
        for k in one.orders:
            found = one.spans(seed, k)
            found = found[found["value"] > 0]
            looks = dict(color=style.ORDERS[k + 1], linewidth=1.0)
            axes.plot(found["order"], found["value"], LINES[number % len(LINES)], **looks)
            name = f"{one.about['model']}: M_{k}"
            tables.append(points(panel, name, seed, found["order"], found["value"], found["se"]))
    axes.set(xscale="log", yscale="log", xlabel="distance, first to last", ylabel="share of $M_k$")
    axes.set_title(f"({panel}) how far it reaches, last step")
    return tables
