"""Contact maps: scores of all pairs of sites, and how many of the best ones are true contacts."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from manybody.claims.potts.scores import Data, read
from manybody.measure import contacts
from manybody.plotting import style
from manybody.plotting.points import drawn, points

RIGHT, WRONG, PLAIN = "#0072B2", "#D55E00", "#444444"
CONTACT, UNKNOWN = "#9A9A9A", "#E9E9E9"
DARKEST = 0.99  # quantile of the scores at which the colours end: no single pair sets them
SITES = 60  # up to which a site's square is large enough for a dot of full size


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> tuple[Figure, pd.DataFrame]:
    """The figure and what is drawn, from files; see the package's docstring."""
    data = read(files, block)
    figure = style.new(2, 3.7)
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    parts = [
        _map(figure, left, data),
        _ranks(right, data) if data.truth is None else _precision(right, data),
    ]
    figure.suptitle(_title(data.about), x=0.01, ha="left")
    return figure, drawn(parts)


def _title(about: dict) -> str:
    count = f"{about['sequences']} sequences"
    if about["weighted"]:
        count += f", which count as {about['effective']:.0f}"
    heads = f"{about['heads']} head{'s' if about['heads'] > 1 else ''}"
    return f"{about['source']}, {about['model']} (seed {about['seed']}): {heads}, {count}"


def _map(figure: Figure, axes: Axes, data: Data) -> pd.DataFrame:
    """Scores above the diagonal; below it contacts and the best pairs, or the scores again."""
    scores, truth, separation = data.scores["corrected"], data.truth, data.separation
    length = len(scores)
    edges = (0.5, length + 0.5)
    upper = np.triu(np.ones((length, length), bool), 1)
    shown = np.where(upper if truth is not None else ~np.eye(length, dtype=bool), scores, np.nan)
    most = np.quantile(scores[upper], DARKEST, method="lower")
    most = most if most > 0 else max(scores[upper].max(), 1e-9)
    image = axes.imshow(
        shown, cmap="Blues", vmin=0, vmax=most, extent=(*edges, *edges[::-1]),
        interpolation="nearest",
    )  # fmt: skip
    bar = figure.colorbar(image, ax=axes, shrink=0.85, extend="both", pad=0.02)
    bar.set_label("corrected score (nats)")
    axes.set(xlabel="site j", ylabel="site i", xlim=edges, ylim=edges[::-1])
    axes.spines[["top", "right"]].set_visible(True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.plot(edges, edges, color="0.6", linewidth=0.6)
    title = "(a) scores" if truth is None else "(a) scores above, contacts below the diagonal"
    axes.set_title(title)
    if separation > 1:
        for shift in (separation - 0.5, 0.5 - separation):
            x = np.array(edges)
            axes.plot(x + shift, x, color="0.6", linewidth=0.6, linestyle=":")
    if truth is not None:
        _contacts(axes, data, edges)
    i, j = np.nonzero(upper)
    rows = [f"score of site {site}" for site in i + 1]
    return points("a", rows, data.about["seed"], j + 1.0, scores[i, j])


def _contacts(axes: Axes, data: Data, edges) -> None:
    scores, truth = data.scores["corrected"], data.truth
    lower = np.tril(np.ones(scores.shape, bool), -1)
    states = np.where(truth.contacts, 1.0, np.where(truth.known, np.nan, 0.0))
    axes.imshow(
        np.where(lower, states, np.nan), cmap=ListedColormap([UNKNOWN, CONTACT]), vmin=0, vmax=1,
        extent=(*edges, *edges[::-1]), interpolation="nearest",
    )  # fmt: skip
    first, second = contacts.best_pairs(scores, data.separation, truth.known)
    count = data.asked
    first, second = first[:count], second[:count]
    hits = truth.contacts[first, second]
    size = 9 * min(1.0, SITES / len(scores))
    axes.scatter(first + 1, second + 1, s=size, c=np.where(hits, RIGHT, WRONG), linewidths=0)
    marks = dict(linestyle="", marker="o", markersize=3)
    handles = [
        Line2D([], [], linestyle="", marker="s", color=CONTACT, label="contact"),
        Line2D([], [], color=RIGHT, label=f"best {count}: contact", **marks),
        Line2D([], [], color=WRONG, label=f"best {count}: no contact", **marks),
    ]
    if not (truth.known | np.eye(len(scores), dtype=bool)).all():
        handles.append(Line2D([], [], linestyle="", marker="s", color=UNKNOWN, label="unknown"))
    style.legend_below(axes, 2, handles=handles)


def _precision(axes: Axes, data: Data) -> pd.DataFrame:
    """Share of contacts among the best n pairs, with one binomial standard error."""
    truth, parts = data.truth, []
    for name, line, colour in (("corrected", "-", RIGHT), ("as it is", "--", PLAIN)):
        shares = contacts.precision(
            data.scores[name], truth.contacts, data.separation, None, truth.known
        )
        counts = np.arange(1, len(shares) + 1)
        errors = [contacts.binomial_error(*one) for one in zip(shares, counts, strict=True)]
        label = "corrected score" if name == "corrected" else "score as it is"
        axes.plot(counts, shares, line, color=colour, label=label)
        if name == "corrected":
            axes.fill_between(
                counts, np.maximum(shares - errors, 0), np.minimum(shares + errors, 1),
                color=colour, alpha=0.15, linewidth=0,
            )  # fmt: skip
        parts.append(points("b", label, data.about["seed"], counts, shares, errors))
    chance, count = data.chance, data.asked
    axes.axhline(chance, color="0.5", linestyle=":", label=f"chance: {chance:.2g}")
    axes.axvline(count, color="0.7", linewidth=0.8, label=f"number of contacts: {count}")
    axes.set(
        xscale="log",
        ylim=(0, 1.03),
        xlim=(1, None),
        xlabel=f"best n pairs{data.apart}",
        ylabel="share of contacts among them",
        title="(b) precision",
    )
    style.legend_below(axes, 2)
    return drawn(parts)


def _ranks(axes: Axes, data: Data) -> pd.DataFrame:
    """The scores in falling order: contacts, if any, stand out from the bulk."""
    scores = data.scores["corrected"]
    first, second = contacts.best_pairs(scores, data.separation)
    ranks, values = np.arange(1, len(first) + 1), scores[first, second]
    axes.plot(ranks, values, color=RIGHT)
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.axvline(len(scores), color="0.7", linewidth=0.8, label=f"L = {len(scores)}")
    axes.set(
        xscale="log",
        xlabel=f"rank of the pair{data.apart}",
        xlim=(1, None),
        ylabel="corrected score (nats)",
        title="(b) scores in order",
    )
    axes.legend(loc="upper right")
    return points("b", "corrected score by rank", data.about["seed"], ranks, values)
