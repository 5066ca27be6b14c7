"""Contact maps: scores of all pairs of sites, and how many of the best ones are true contacts.

files: `contacts` (one table of `evaluation.contacts`) and, where the block names one, `truth`: a
list of contacts or a table of distances, or the Hamiltonian that the sequences were sampled from
(`truth: {hamiltonian: source}`). block: `separation` is the least j - i of the pairs that count.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from manybody.claims import verdicts
from manybody.claims.potts import setting
from manybody.evaluation import contacts
from manybody.plotting import style
from manybody.sources.hamiltonian import Hamiltonian

Drawing = tuple[Figure, pd.DataFrame, pd.DataFrame]

RIGHT, WRONG, PLAIN = "#0072B2", "#D55E00", "#444444"
CONTACT, UNKNOWN = "#9A9A9A", "#E9E9E9"
# How well the couplings of the default setting are found from 3000 sequences (potts, section 5).
CORRELATION = 0.98  # of scores and |J|, at least
SHARE = 0.9  # of contacts among as many of the best pairs, at least
SITES = 60  # up to which a site's square is large enough for a dot of full size


@dataclass
class Truth:
    """Contacts and known pairs (L, L, bool); the Hamiltonian if they were planted."""

    contacts: np.ndarray
    known: np.ndarray
    law: Hamiltonian | None = None


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure, what is drawn and the checks, from files; see the module's docstring."""
    (path,) = files["contacts"]
    frame, about = contacts.read_scores(path)
    truth = None
    if "truth" in block:
        (given,) = files["truth"]
        truth = read_truth(given, block["truth"], about["length"])
    source = context.get("sources", {}).get(block.get("source"), {})
    return contact_map(frame, about, truth, block.get("separation", 1), source)


def read_truth(path, named: str | dict, length: int) -> Truth:
    """The contacts in a file, or the pairs that a Hamiltonian of two-body interactions couples."""
    if not isinstance(named, dict):
        return Truth(*contacts.read_contacts(path, length))
    law = Hamiltonian.load(path)
    couplings = law.couplings
    if couplings.shape != (length, length):
        raise ValueError(
            f"truth: {path} has couplings of shape {couplings.shape}, the scores are of L = "
            f"{length} sites; name the source of two-body interactions that the model was fitted to"
        )
    return Truth(couplings != 0, ~np.eye(length, dtype=bool), law)


@style.styled(style.RC)
def contact_map(
    frame: pd.DataFrame, about: dict, truth: Truth | None, separation: int, source: dict
) -> Drawing:
    """The figure, from the table and document of `evaluation.contacts`, what is true, and the
    source's entry in the config."""
    length = about["length"]
    scores = {
        name: contacts.as_matrix(frame, column, length)
        for name, column in (("corrected", "apc"), ("as it is", "score"))
    }
    figure = style.new(9.2, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    drawn = [_map(figure, left, scores["corrected"], truth, separation, about)]
    if truth is None:
        drawn.append(_ranks(right, scores["corrected"], separation, about))
    else:
        drawn.append(_precision(right, scores, truth, separation, about))
    found = _is_default(truth, source, about, separation)
    figure.suptitle(_title(about), x=0.01, ha="left", fontsize=9)
    return figure, pd.concat(drawn, ignore_index=True), claims(scores, truth, separation, found)


def _title(about: dict) -> str:
    count = f"{about['sequences']} sequences"
    if about["weighted"]:
        count += f", which count as {about['effective']:.0f}"
    heads = f"{about['heads']} head{'s' if about['heads'] > 1 else ''}"
    return f"{about['source']}, {about['model']} (seed {about['seed']}): {heads}, {count}"


# --- Panels --------------------------------------------------------------------------------------


def _map(
    figure: Figure, axes: Axes, scores: np.ndarray, truth: Truth | None, separation: int, about
) -> pd.DataFrame:
    """Scores above the diagonal; below it contacts and the best pairs, or the scores again."""
    length = len(scores)
    edges = (0.5, length + 0.5)
    upper = np.triu(np.ones((length, length), bool), 1)
    shown = np.where(upper if truth is not None else ~np.eye(length, dtype=bool), scores, np.nan)
    most = np.nanmax(shown) if np.nanmax(shown) > 0 else 1.0
    image = axes.imshow(
        shown, cmap="Blues", vmin=0, vmax=most, extent=(*edges, *edges[::-1]),
        interpolation="nearest",
    )  # fmt: skip
    bar = figure.colorbar(image, ax=axes, shrink=0.85, extend="min", pad=0.02)
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
        _contacts(axes, scores, truth, separation, edges)
    i, j = np.nonzero(upper)
    rows = [f"score of site {site}" for site in i + 1]
    drawn = dict(panel="a", series=rows, x=j + 1.0, y=scores[i, j])
    return _rows(about, **drawn)


def _contacts(axes: Axes, scores: np.ndarray, truth: Truth, separation: int, edges) -> None:
    lower = np.tril(np.ones(scores.shape, bool), -1)
    states = np.where(truth.contacts, 1.0, np.where(truth.known, np.nan, 0.0))
    axes.imshow(
        np.where(lower, states, np.nan), cmap=ListedColormap([UNKNOWN, CONTACT]), vmin=0, vmax=1,
        extent=(*edges, *edges[::-1]), interpolation="nearest",
    )  # fmt: skip
    first, second = contacts.best_pairs(scores, separation, truth.known)
    count = _asked(truth, separation)
    first, second = first[:count], second[:count]
    hits = truth.contacts[first, second]
    size = 9 * min(1.0, SITES / len(scores))
    for right, colour in ((True, RIGHT), (False, WRONG)):
        kept = hits == right
        axes.scatter(first[kept] + 1, second[kept] + 1, s=size, color=colour, linewidths=0)
    marks = dict(linestyle="", marker="o", markersize=3)
    handles = [
        Line2D([], [], linestyle="", marker="s", color=CONTACT, label="contact"),
        Line2D([], [], color=RIGHT, label=f"best {count}: contact", **marks),
        Line2D([], [], color=WRONG, label=f"best {count}: no contact", **marks),
    ]
    if not (truth.known | np.eye(len(scores), dtype=bool)).all():
        handles.append(Line2D([], [], linestyle="", marker="s", color=UNKNOWN, label="unknown"))
    _legend_below(axes, handles, len(handles))


def _precision(axes: Axes, scores: dict, truth: Truth, separation: int, about) -> pd.DataFrame:
    """Share of contacts among the best n pairs, with one binomial standard error."""
    drawn = []
    for name, line, colour in (("corrected", "-", RIGHT), ("as it is", "--", PLAIN)):
        shares = contacts.precision(scores[name], truth.contacts, separation, None, truth.known)
        counts = np.arange(1, len(shares) + 1)
        errors = [contacts.binomial_error(*one) for one in zip(shares, counts, strict=True)]
        label = "corrected score" if name == "corrected" else "score as it is"
        axes.plot(counts, shares, line, color=colour, label=label)
        if name == "corrected":
            axes.fill_between(
                counts, np.maximum(shares - errors, 0), np.minimum(shares + errors, 1),
                color=colour, alpha=0.15, linewidth=0,
            )  # fmt: skip
        drawn.append(_rows(about, panel="b", series=label, x=counts, y=shares, y_err=errors))
    chance = _chance(truth, separation)
    count = _asked(truth, separation)
    axes.axhline(chance, color="0.5", linestyle=":", label=f"chance: {chance:.2g}")
    axes.axvline(count, color="0.7", linewidth=0.8, label=f"number of contacts: {count}")
    axes.set(xscale="log", ylim=(0, 1.03), xlim=(1, None))
    axes.set(xlabel=f"best n pairs{_apart(separation)}", ylabel="share of contacts among them")
    axes.set_title("(b) precision")
    _legend_below(axes, axes.get_legend_handles_labels()[0], 2)
    return pd.concat(drawn, ignore_index=True)


def _ranks(axes: Axes, scores: np.ndarray, separation: int, about) -> pd.DataFrame:
    """The scores in falling order: contacts, if any, stand out from the bulk."""
    first, second = contacts.best_pairs(scores, separation)
    ranks, values = np.arange(1, len(first) + 1), scores[first, second]
    axes.plot(ranks, values, color=RIGHT)
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.axvline(len(scores), color="0.7", linewidth=0.8, label=f"L = {len(scores)}")
    axes.set(xscale="log", xlabel=f"rank of the pair{_apart(separation)}", xlim=(1, None))
    axes.set_ylabel("corrected score (nats)")
    axes.set_title("(b) scores in order")
    axes.legend(loc="upper right")
    return _rows(about, panel="b", series="corrected score by rank", x=ranks, y=values)


def _legend_below(axes: Axes, handles: list, columns: int) -> None:
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=columns,
        columnspacing=1.2, handletextpad=0.4,
    )  # fmt: skip


def _apart(separation: int) -> str:
    return f", |i − j| ≥ {separation}" if separation > 1 else ""


def _rows(about: dict, y_err=math.nan, **columns) -> pd.DataFrame:
    columns = {"seed": about["seed"], "y_err": y_err, **columns}
    return pd.DataFrame(columns)[style.FIGURE_COLUMNS]


def _pairs(matrix: np.ndarray, truth: Truth, separation: int) -> np.ndarray:
    """Entries of the known pairs that count."""
    first, second = np.triu_indices(len(matrix), max(1, separation))
    return matrix[first, second][truth.known[first, second]]


def _asked(truth: Truth, separation: int) -> int:
    """As many pairs as there are contacts; at least one."""
    return max(1, int(_pairs(truth.contacts, truth, separation).sum()))


def _chance(truth: Truth, separation: int) -> float:
    known = _pairs(truth.contacts, truth, separation)
    return float(known.mean()) if len(known) else math.nan


# --- The checks ----------------------------------------------------------------------------------


def claims(scores: dict, truth: Truth | None, separation: int, default: bool) -> pd.DataFrame:
    """Whether true contacts are found by the best pairs; no rows where nothing is known.

    Where the default setting was planted these are gates, correlation and share; the couplings or
    contacts of any other family decide nothing but whether more are found than by chance.
    """
    if truth is None:
        return verdicts.table([])
    known = _pairs(truth.contacts, truth, separation)
    if not known.any():
        claim = "contacts: the best pairs are true contacts more often than by chance"
        reason = f"none of the {len(known)} known pairs{_apart(separation)} is a contact"
        return verdicts.table([verdicts.not_run(claim, reason)])
    count, chance = _asked(truth, separation), _chance(truth, separation)
    rows = []
    for name, matrix in scores.items():
        (share,) = contacts.precision(matrix, truth.contacts, separation, [count], truth.known)
        share = float(share)
        error = contacts.binomial_error(share, count)
        if default:
            planted = _pairs(np.abs(truth.law.couplings), truth, separation)
            r = float(np.corrcoef(_pairs(matrix, truth, separation), planted)[0, 1])
            of_r = (1 - r**2) / math.sqrt(len(planted) - 1)
            claim = f"inverse Potts: Pearson r of the score ({name}) and the planted |J|"
            rows.append(setting.above(claim, r, of_r, CORRELATION, "statistical"))
            claim = (
                f"inverse Potts: share of planted contacts among the best {count} pairs ({name})"
            )
            rows.append(setting.above(claim, share, error, SHARE, "statistical"))
        else:
            claim = (
                f"contacts: share of true ones among the best {count} pairs{_apart(separation)} "
                f"({name}), {share:.3g}, above that of all known pairs, {chance:.3g}"
            )
            rows.append(verdicts.gap(claim, share - chance, error))
    return verdicts.table(rows)


def _is_default(truth: Truth | None, source: dict, about: dict, separation: int) -> bool:
    """Enough samples of the setting whose numbers are known, and all pairs are asked for."""
    if truth is None or truth.law is None or separation > 1 or about["sequences"] < setting.M:
        return False
    return not setting.departure(source, truth.law.beta)
