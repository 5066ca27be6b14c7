"""Figures 1, 4 and 5: a student's test loss on clones, while it learns original text.

Each figure is a function of

- losses: a table of losses with seeds (`tables.read_losses`);
- targets: what is behind each target (`tables.read_targets`);
- student: `about` of one of the runs (`tables.read_run`), and its `steps_per_epoch`;
- block: its block in the config: `ladder` (targets from low to high order), `control` (original
  text), for figures 4 and 5 `late_steps`, and where they are run `early_stopped`, `wide`, `norm`
  (a ladder of clones by the norm score) and `starts` (two targets: test and unigram starts);
- generators (figures 4 and 5): the generators' losses on test text (`comparison.Generator`), on
  which the premise of claim 11 rests.

and returns the figure, the numbers drawn and the checks. Means over seeds are rows with the seed
"mean", whose y_err is one sd over seeds; rows of a seed carry the standard error over sequences.
"""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from manybody.claims import labels, verdicts
from manybody.claims.simplicity import comparison
from manybody.files import tables
from manybody.plotting import colours, style

Drawing = tuple[Figure, pd.DataFrame, pd.DataFrame]

LADDER = {"linestyle": "-", "marker": "o"}
CONTROL = {"linestyle": ":", "marker": ""}
EARLY = {"linestyle": "--", "marker": "D", "markerfacecolor": "white"}
WIDE = {"linestyle": "--", "marker": "s", "markerfacecolor": "white"}
BAND = 0.2  # opacity


def read(files, block: dict, context: dict) -> tuple[pd.DataFrame, dict, dict]:
    """Losses, targets and student of a figure, from the files of its rule."""
    name = block["evaluation"]
    runs = list(zip(context["runs"], files["losses"], files["runs"], strict=True))
    mine = [run for run in runs if run[0][0] == name]
    losses = tables.read_losses({seed: path for (_, seed), path, _ in mine})
    clones = dict(zip(context["clones"], files["clones"], strict=True))
    about, history = tables.read_run(mine[0][2])
    student = about | {"steps_per_epoch": tables.steps_per_epoch(history)}
    return losses, tables.read_targets(context["targets"][name], clones), student


@style.styled(style.RC)
def fig1(losses, targets, student, block, elsewhere: str | None = None) -> Drawing:
    """The student's loss on the clones against the epoch, on a linear axis.

    elsewhere: a figure that draws the same runs and has the rows about them.
    """
    view = _View(losses, targets, block)
    figure = style.new(5.6, 3.7)
    axes = figure.subplots()
    drawn = []
    for series in view.main():
        curve = series.curve("loss", "loss", 1 / student["steps_per_epoch"])
        drawn.append(curve)
        _draw(axes, curve, series)
    axes.set(xlabel="training epoch", ylabel="test loss (nats per token)", xlim=(0, None))
    axes.set_title(labels.scale(student, view.seeds))
    axes.legend(title=_band(view.seeds), alignment="left")
    found = [] if elsewhere else _order_checks("6 (fig. 1)", view)
    return figure, _table(drawn), verdicts.table(found)


def fig4(losses, targets, student, block, generators=()) -> Drawing:
    """The masked student: losses against steps, accuracy, and late losses clone by clone."""
    return _steps_figure(losses, targets, student, block, generators, ("6", "7"), "fig. 4")


def fig5(losses, targets, student, block, generators=()) -> Drawing:
    """The causal student, by its next-token loss; else as figure 4 (claim 8)."""
    return _steps_figure(losses, targets, student, block, generators, ("8", "8"), "fig. 5")


@style.styled(style.RC)
def _steps_figure(losses, targets, student, block, generators, claims, name) -> Drawing:
    view = _View(losses, targets, block)
    figure = style.new(9.2, 5.0)
    left, right = figure.subplots(1, 2, width_ratios=(1.55, 1))
    inset = left.inset_axes((0.09, 0.09, 0.36, 0.36))  # early losses are high: it is empty there
    drawn = []
    for series in view.shown():
        for axes, quantity in ((left, "loss"), (inset, "accuracy")):
            curve = series.curve(quantity, quantity).query("x > 0")  # no place on a log axis
            drawn.append(curve)
            _draw(axes, curve, series, small=axes is inset)
        saturated = series.saturation()
        drawn.append(saturated)
        _mark(left, saturated, series)
    what = "next-token" if student["description"]["architecture"] == "gpt" else "masked-token"
    left.set(xlabel="training step", ylabel=f"{what} test loss (nats per token)")
    left.set_title(labels.scale(student, view.seeds))
    _log_steps(left)
    _log_steps(inset)
    inset.set_title("accuracy", fontsize=7, pad=2)
    inset.tick_params(labelsize=6)
    inset.set_facecolor("none")
    drawn.append(_draw_late(right, view, block["late_steps"]))
    handles = [*(_handle(series) for series in view.shown()), _saturation_handle()]
    compared = _comparisons(view, block, name, generators)
    found = _all_checks(view, block, claims, name, compared)
    title = "\n".join([_band(view.seeds), *_findings(compared)])
    figure.legend(
        handles=handles, loc="outside lower center", ncols=2, title=title, alignment="left"
    )
    return figure, _table(drawn), verdicts.table(found)


# --- What is drawn -------------------------------------------------------------------------------


class _Series:
    """One target: its label, looks and numbers."""

    def __init__(self, view, target: str, looks: dict, rank: bool = False):
        self.view, self.target, self.looks = view, target, looks
        document = view.targets[target]
        self.label = labels.target(document, rank)
        self.short = labels.short(document)
        self.colour = view.block.get("colours", {}).get(target, colours.colour(document))

    def curve(self, panel: str, quantity: str, unit: float = 1.0) -> pd.DataFrame:
        """The target's `loss` or `accuracy` at each checkpoint; x is the step times `unit`."""
        curves = self.view.curves
        mine = curves[curves["target"] == self.target]
        runs = _rows(panel, self.label, mine["seed"], mine["step"] * unit, mine[quantity])
        runs["y_err"] = mine[f"{quantity}_se"].to_numpy()
        means = mine.groupby("step")[quantity].agg(["mean", "std"])
        mean = _rows(panel, self.label, "mean", means.index * unit, means["mean"])
        mean["y_err"] = means["std"].to_numpy()
        return pd.concat([runs, mean], ignore_index=True)

    def saturation(self) -> pd.DataFrame:
        """Mean saturation step, its sd over seeds as y_err; x is the step, y the share in %."""
        steps = verdicts.saturations(self.view.curves, self.target)["step"]
        rows = _rows(
            "saturation", self.label, "mean", [steps.mean()], [100 * verdicts.SATURATION[0]]
        )
        return rows.assign(y_err=steps.std(ddof=1))


class _View:
    """The tables of a figure, by the roles that its block gives to targets."""

    def __init__(self, losses: pd.DataFrame, targets: dict, block: dict):
        self.losses, self.targets, self.block = losses, targets, block
        self.curves = tables.learning_curves(losses)
        self.seeds = int(losses["seed"].nunique())
        self.labels = {name: labels.target(document) for name, document in targets.items()}

    def main(self) -> list[_Series]:
        """The ladder of clones and the control."""
        rungs = [_Series(self, target, LADDER) for target in self.block["ladder"]]
        return [*rungs, _Series(self, self.block["control"], CONTROL)]

    def controls(self) -> list[_Series]:
        """The clones that tell order from quality."""
        found = []
        if "early_stopped" in self.block:
            found.append(_Series(self, self.block["early_stopped"], EARLY))
        if "wide" in self.block:
            found.append(_Series(self, self.block["wide"], WIDE, rank=True))
        return found

    def shown(self) -> list[_Series]:
        return self.main() + self.controls()


def _rows(panel, series, seed, x, y) -> pd.DataFrame:
    columns = {"panel": panel, "series": series, "x": list(x), "y": list(y)}
    frame = pd.DataFrame(columns)
    frame["seed"] = [str(value) for value in seed] if not isinstance(seed, str) else seed
    return frame


def _table(drawn: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(drawn, ignore_index=True)[style.FIGURE_COLUMNS]


def _draw(axes: Axes, curve: pd.DataFrame, series: _Series, small: bool = False) -> None:
    mean = curve[curve["seed"] == "mean"]
    looks = dict(series.looks, color=series.colour)
    if small:
        looks |= {"marker": "", "linewidth": 0.9}
    axes.plot(mean["x"], mean["y"], label=series.label, **looks)
    if not small:
        low, high = mean["y"] - mean["y_err"], mean["y"] + mean["y_err"]
        axes.fill_between(mean["x"], low, high, color=series.colour, alpha=BAND, linewidth=0)


def _mark(axes: Axes, saturated: pd.DataFrame, series: _Series) -> None:
    """A triangle on the step axis at the saturation step, with its sd over seeds."""
    step, sd = saturated[["x", "y_err"]].iloc[0]
    if math.isnan(step):
        return
    axes.errorbar(
        step,
        1.0,
        xerr=None if math.isnan(sd) else sd,
        transform=axes.get_xaxis_transform(),
        marker="v",
        markersize=6,
        markerfacecolor=series.looks.get("markerfacecolor", series.colour),
        color=series.colour,
        linestyle="",
        clip_on=False,
    )


def _log_steps(axes: Axes) -> None:
    """A logarithmic axis of steps; the checkpoint before the first step has no place on it."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(10))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _draw_late(axes: Axes, view: _View, steps: list[int]) -> pd.DataFrame:
    """Losses at a few late steps, clone by clone from low to high order, then all others."""
    *ladder, original = view.main()
    others = [original, *view.controls()]
    slots = [(series, place) for place, series in enumerate(ladder)]
    slots += [(series, len(ladder) + 0.3 + place) for place, series in enumerate(others)]
    rows = []
    for index, step in enumerate(steps):
        points = []
        for series, place in slots:
            curve = series.curve("late", "loss")
            here = curve[(curve["x"] == step)]
            rows.append(here)
            mean = here[here["seed"] == "mean"]
            if len(mean):
                points.append((place, mean["y"].iloc[0], mean["y_err"].iloc[0]))
        for joined in (
            [point for point in points if point[0] < len(ladder)],
            [point for point in points if point[0] >= len(ladder)],
        ):
            if joined:
                place, mean, sd = zip(*joined, strict=True)
                axes.errorbar(
                    place,
                    mean,
                    yerr=None if any(map(math.isnan, sd)) else sd,
                    color=style.TIMES[index % len(style.TIMES)],
                    marker="o",
                    linestyle="-" if place[0] < len(ladder) else "",
                    capsize=2,
                    label=f"step {step}" if place[0] < len(ladder) else None,
                )
    axes.axvline(len(ladder) - 0.35, color="0.8", linewidth=0.8)
    axes.set_xticks([place for _, place in slots], [_slot_name(series) for series, _ in slots])
    axes.set_xlim(-0.4, slots[-1][1] + 0.4)
    axes.set(xlabel="order of the clone's generator", ylabel="test loss (nats per token)")
    # Above the axes: the losses may be anywhere in them.
    axes.legend(
        title="the same losses, clone by clone, at",
        alignment="left",
        loc="lower left",
        bbox_to_anchor=(-0.03, 1.0),
        ncols=len(steps),
        columnspacing=1.0,
    )
    return pd.concat(rows, ignore_index=True)


def _slot_name(series: _Series) -> str:
    what = "stopped" if series.looks is EARLY else "wide" if series.looks is WIDE else ""
    return f"{series.short}\n{what}" if what else series.short


def _handle(series: _Series) -> Line2D:
    """The legend's line, with the saturation step and its sd over seeds."""
    step, sd = series.saturation()[["x", "y_err"]].iloc[0]
    text = series.label
    if not math.isnan(step):
        text += f" (t = {step:.0f})" if math.isnan(sd) else f" (t = {step:.0f} ± {sd:.0f})"
    return Line2D([], [], color=series.colour, label=text, **series.looks)


def _findings(compared: dict[str, comparison.Comparison]) -> list[str]:
    """What the controls show: d, the log of the ratio of the times, by the first definition."""
    marks = {"stopped": "◇", "wide": "□"}
    found = []
    for role, one in compared.items():
        share, d = next(iter(one.found.items()))
        found.append(
            f"control {marks[role]}: d = {d} at {share:.0%} left; "
            f"above {comparison.BOUND:.2f} if the order set the time: {one.claim['holds']}"
        )
    return found


def _saturation_handle() -> Line2D:
    text = f"t: saturation, {verdicts.SATURATION[0]:.0%} of the drop left"
    return Line2D([], [], color="0.4", marker="v", markersize=6, linestyle="", label=text)


def _band(seeds: int) -> str:
    return f"mean and sd of {seeds} runs" if seeds > 1 else "one run: no band"


# --- The checks ----------------------------------------------------------------------------------


def _order_checks(claim: str, view: _View) -> list[dict]:
    ladder = view.block["ladder"]
    rows = verdicts.ordered(claim, view.curves, ladder, view.labels)
    name = "9" if claim.startswith("6") else f"{claim.split()[0]} as 9"
    figure = claim[claim.find("(") :]
    rows += verdicts.overlap(
        f"{name} {figure}", view.curves, ladder, view.labels, view.block["control"]
    )
    rows += _order_33(f"{claim}: order 33 saturates after order 9", view)
    return rows


def _order_33(claim: str, view: _View) -> list[dict]:
    """Says that the paper's n = 6 is missing or no restriction here; nothing if it is there."""
    length = next(d["length"] for d in view.targets.values() if not d["original"])
    rungs = [view.targets[name]["generator"]["description"] for name in view.block["ladder"]]
    six = [rung for rung in rungs if labels.order(rung) == 33]
    if six and labels.bounded(six[0]):
        return []
    reason = (
        "n = 6 is not among the clones" if length >= 33 else f"n = 6 needs L >= 33, L = {length}"
    )
    return [verdicts.not_run(claim, reason)]


def _all_checks(
    view: _View, block: dict, claims: tuple[str, str], name: str, compared: dict
) -> list[dict]:
    curves, ladder, names = view.curves, block["ladder"], view.labels
    first, last = block["late_steps"][0], block["late_steps"][-1]
    times, falls = (f"{claim} ({name})" for claim in claims)
    rows = _order_checks(times, view)
    rows += verdicts.late_changes(falls, curves, ladder, names, (first, last))
    text = f"10 ({name}): the loss on original text falls to the end of training"
    rows.append(verdicts.still_falling(text, curves, block["control"]))
    rows += _quality_checks(name, compared)
    rows += _score_checks(view, block, name, (first, last))
    rows.append(_start_check(view, block, name))
    return rows


def _comparisons(
    view: _View, block: dict, name: str, generators
) -> dict[str, comparison.Comparison]:
    """The two pairs of clones of equal loss and different order that the block has."""
    lowest, highest = block["ladder"][0], block["ladder"][-1]
    pairs = {}
    if "early_stopped" in block:
        pairs["stopped"] = ([block["early_stopped"]], [lowest])
    if "wide" in block:
        pairs["wide"] = ([highest], [block["wide"]])
    made = comparison.compare(
        name, view.losses, view.targets, generators, block.get("test", ""), list(pairs.values())
    )
    return dict(zip(pairs, made, strict=True))


def _quality_checks(name: str, compared: dict[str, comparison.Comparison]) -> list[dict]:
    """Claim 11 by both controls: does the time follow the order or the generator's quality?

    The premises, which are about the generators alone, are rows of figure 4 only.
    """
    missing = {
        "stopped": "no clone of a generator stopped early",
        "wide": "no clone of a wide generator of low order",
    }
    rows = []
    for role, reason in missing.items():
        if role not in compared:
            text = f"11 ({name}): at equal loss the order sets the time, {role} generator"
            rows.append(verdicts.not_run(text, reason))
            continue
        if name == "fig. 4":
            rows.append(compared[role].premise)
        rows.append(compared[role].claim)
    return rows


def _score_checks(view: _View, block: dict, name: str, steps: tuple[int, int]) -> list[dict]:
    """Claim 12: orders of saturation and late changes again, with clones by the norm score."""
    if "norm" not in block:
        text = f"12 ({name}): claims 6 and 7 hold with the norm score"
        return [verdicts.not_run(text, "no clones by the norm score")]
    claim = f"12 ({name}), norm score"
    rows = verdicts.ordered(claim, view.curves, block["norm"], view.labels)
    return rows + verdicts.late_changes(claim, view.curves, block["norm"], view.labels, steps)


def _start_check(view: _View, block: dict, name: str) -> dict:
    """Section 8: clones from test sequences and from unigram noise must give the same losses."""
    if "starts" not in block:
        text = f"section 8 ({name}): clones from test sequences and from unigram noise agree"
        return verdicts.not_run(text, "no clone from unigram starts")
    test, unigram = block["starts"]
    sweep = view.targets[test]["sweep"]
    text = (
        f"section 8 ({name}): clones of {view.labels[test]} from test sequences and from unigram "
        f"noise agree after {sweep} sweeps"
    )
    curves, control = view.curves, block["control"]
    differences = verdicts.loss_differences(
        view.losses, curves, test, unigram, control, paired=False
    )
    return verdicts.same_losses(text, differences)
