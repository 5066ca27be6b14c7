"""Claim 11 with its intervals: does the order of interaction set the time, at equal loss?

For each of the block's `corpora` the student's losses on the clones that are compared, and for
each pair of kinds and definition of saturation d with its 95 % interval (`comparison`). In the
table: panel `loss` (x: step), `times` (x: log t; y: 100 x share) of every student and generator,
`d` (x: d; y: 100 x share; y_err: half width), and `errors`, the standard errors of d over
students, generators and chains (x: d, y: the error).
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from manybody.claims import labels, verdicts
from manybody.claims.simplicity import comparison
from manybody.files import tables
from manybody.plotting import colours, style
from manybody.plotting.simplicity.learning import LADDER, Drawing

STOPPED = {"linestyle": "--", "marker": "D", "markerfacecolor": "white"}
WIDE = {"linestyle": "--", "marker": "s", "markerfacecolor": "white"}
NOISE = {"linestyle": ":", "marker": "s", "markerfacecolor": "white"}
WIDTH, PAIR = 7.2, 0.66  # inches: of two columns of a journal; of a pair's heading and intervals
MARKS = {0.05: "o", 0.02: "D"}  # by definition of saturation


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    clones = dict(zip(context["clones"], files["clones"], strict=True))
    corpora = []
    for part in block["corpora"]:
        name = part["evaluation"]
        runs = {
            seed: (losses, manifest)
            for (run, seed), losses, manifest in zip(
                context["runs"], files["losses"], files["runs"], strict=True
            )
            if run == name
        }
        losses = tables.read_losses({seed: paths[0] for seed, paths in runs.items()})
        targets = tables.read_targets(context["targets"][name], clones)
        student, _ = tables.read_run(next(iter(runs.values()))[1])
        generators = comparison.read_generators(files, part["generators"], context)
        corpora.append((losses, targets, student, part, generators))
    return headline(corpora)


@style.styled(style.RC)
def headline(corpora: list[tuple], bootstraps: int = comparison.BOOTSTRAPS) -> Drawing:
    """A panel of losses for each corpus, and all intervals in one panel below.

    corpora: (losses with seeds, targets, `about` of a student, block, generators) of each.
    """
    compared = {}
    for losses, targets, student, part, generators in corpora:
        pairs = [(pair["late"], pair["early"]) for pair in part["comparisons"]]
        compared[student["source"]] = comparison.compare(
            f"headline, {student['source']}",
            losses,
            targets,
            generators,
            part["test"],
            pairs,
            bootstraps,
        )
    lines = sum(len(made) for made in compared.values())
    figure = style.new(WIDTH, 3.8 + PAIR * lines)
    panels = [[f"loss {name}" for name in compared], ["d"] * len(compared)]
    axes = figure.subplot_mosaic(panels, height_ratios=(2.4, PAIR * lines))
    drawn, found = [], []
    for losses, targets, student, part, _ in corpora:
        name = student["source"]
        made = compared[name]
        drawn.append(_draw_losses(axes[f"loss {name}"], losses, targets, student, part, made))
        drawn.append(_times(losses, targets, name, made))
        for one in made:
            # Two kinds of chains of the same generators rest on the same premise.
            premises = [row["claim"] for row in found]
            found += [one.claim] if one.premise["claim"] in premises else [one.premise, one.claim]
    handles = {  # what all corpora have in common is said once
        label: line
        for name in compared
        for line, label in zip(*axes[f"loss {name}"].get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=3)
    for name in list(compared)[1:]:
        axes[f"loss {name}"].set_ylabel("")  # that of the first
    drawn.append(_draw_intervals(axes["d"], compared))
    if len(corpora) == 1:
        found.append(
            verdicts.not_run(
                "11 (headline): the same answer on a second corpus",
                "its text is given by path: config/headline-second.yaml",
            )
        )
    return figure, pd.concat(drawn)[style.FIGURE_COLUMNS], verdicts.table(found)


def _kinds(made: list[comparison.Comparison]) -> list[list[str]]:
    """Every kind of clone that is compared, once."""
    pairs = [kind for one in made for kind in (one.late, one.early)]
    return [list(kind) for kind in dict.fromkeys(map(tuple, pairs))]


def _looks(targets: dict, kind: list[str], made: list[comparison.Comparison]) -> dict:
    """Line and marker of a kind: the controls are dashed, as in figure 4."""
    document = targets[kind[0]]
    looks = LADDER
    if document["start"] == "unigram":
        looks = NOISE
    elif labels.bounded(document["generator"]["description"]):
        if any(one.late == kind for one in made):
            looks = STOPPED
        elif any(one.early == kind and not _is_bounded(targets, one.late) for one in made):
            looks = WIDE
    return looks | {"color": colours.colour(document)}


def _is_bounded(targets: dict, kind: list[str]) -> bool:
    return labels.bounded(targets[kind[0]]["generator"]["description"])


def _draw_losses(axes: Axes, losses, targets, student, part, made) -> pd.DataFrame:
    """Mean over students of the loss on each clone; a line for each generator."""
    curves = tables.learning_curves(losses)
    corpus, drawn = student["source"], []
    for kind in _kinds(made):
        looks = _looks(targets, kind, made)
        for place, target in enumerate(kind):
            mine = curves[(curves["target"] == target) & (curves["step"] > 0)]
            mean = mine.groupby("step")["loss"].agg(["mean", "std"])
            label = comparison.kind_label(targets, kind)
            series = f"{corpus}: {label}, generator {place}"
            axes.plot(
                mean.index,
                mean["mean"],
                label=None if place else label,
                markersize=3,
                markevery=max(1, len(mean) // 12),
                **looks,
            )
            drawn.append(_rows("loss", series, "mean", mean.index, mean["mean"], mean["std"]))
    original = curves[(curves["target"] == part["control"]) & (curves["step"] > 0)]
    mean = original.groupby("step")["loss"].agg(["mean", "std"])
    axes.plot(mean.index, mean["mean"], color=style.ORIGINAL, linestyle=":", label="original text")
    series = f"{corpus}: original text"
    drawn.append(_rows("loss", series, "mean", mean.index, mean["mean"], mean["std"]))
    axes.set_xscale("log")
    axes.set(xlabel="training step", ylabel="test loss (nats per token)")
    axes.set_title(labels.scale(student, losses["seed"].nunique()), fontsize=8)
    axes.set_xlim(left=mean.index[-1] / 100)  # all curves are one before
    return pd.concat(drawn)


def _times(losses, targets, corpus: str, made: list[comparison.Comparison]) -> pd.DataFrame:
    """log t of every student and generator."""
    seeds, drawn = sorted(losses["seed"].unique()), []
    kinds = _kinds(made)
    for share in verdicts.SATURATION:
        for kind, read in zip(
            kinds, comparison.read_kinds(losses, targets, kinds, share, 1), strict=True
        ):
            for place, times in enumerate(read.times.T):
                label = f"{corpus}: {comparison.kind_label(targets, kind)}, generator {place}"
                shares = np.full(len(times), 100 * share)
                drawn += [
                    _rows("times", label, seed, [time], [part])
                    for seed, time, part in zip(seeds, times, shares, strict=True)
                ]
    return pd.concat(drawn)


def _draw_intervals(axes: Axes, compared: dict[str, list[comparison.Comparison]]) -> pd.DataFrame:
    """d with its interval for each corpus, pair and definition, and what the answer asks for."""
    axes.axvspan(-comparison.BOUND, comparison.BOUND, color="0.93", linewidth=0, zorder=0)
    drawn = []
    pairs = [(corpus, one) for corpus, made in compared.items() for one in made]
    for place, (corpus, one) in enumerate(pairs):
        for part, side, words in (
            (0.0, "left", f"{corpus}: {one.words}"),
            (1.0, "right", f"the order sets the time: {one.claim['holds']}"),
        ):
            axes.text(
                *(part, place + 0.22, words),
                transform=axes.get_yaxis_transform(),
                fontsize=7.5,
                ha=side,
                va="center",
            )
        axes.vlines(0, place + 0.38, place + 0.9, color="0.6", linewidth=0.8, zorder=0.5)
        for row, (share, d) in enumerate(one.found.items()):
            axes.errorbar(
                d.value,
                place + 0.5 + 0.26 * row,
                xerr=d.half if np.isfinite(d.half) else None,
                marker=MARKS[share],
                color="black",
                markerfacecolor="black" if row == 0 else "white",
                capsize=3,
                linestyle="",
                label="" if place else f"{share:.0%} of the drop left",
            )
            series = f"{corpus}: {one.words}"
            drawn.append(_rows("d", series, "all", [d.value], [100 * share], d.half))
            drawn += [
                _rows("errors", f"{series}, {part}, {share:.0%}", "all", [d.value], [error])
                for part, error in (
                    ("students", d.students),
                    ("generators", d.generators),
                    ("chains", d.chains),
                )
            ]
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(len(pairs), 0)
    axes.set_xlabel("d = log t of the first kind less that of the second; grey: within log 1.25")
    axes.set_title("d, with its 95 % interval", fontsize=8)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, ncols=2, fontsize=7.5)
    return pd.concat(drawn)


def _rows(panel: str, series: str, seed, x, y, errors=np.nan) -> pd.DataFrame:
    frame = pd.DataFrame({"x": np.asarray(x, float), "y": np.asarray(y, float)})
    return frame.assign(
        panel=panel, series=series, seed=str(seed), y_err=np.broadcast_to(errors, len(frame))
    )
