"""Does the order of a term set the time at which it is learned? Students of laws whose terms, with
their orders and information, are known.

In the table: panel `a` (x: order; y: step; seed: student) has every term at equal information, with
medians by order; `b` what an order costs (x: row; y: a factor of steps; y_err: half width of log
y); `c` the factor between the times of the two orders of a law (x: information of the lower over
that of the higher), and the fitted line; `d` times of saturation on clones, predicted by half of
the students (x) and seen in the others (y; y_err: half width of the difference of logs), `d,
trained` the same on clones of generators, `kappa` the times seen (y) by the mean order (x) of a
clone's information; `e` test losses of generators of text (x: order; y: nats a token; y_err: half
width of the 95 % interval); `half-times` those of the students' M_k (x: k + 1), which tell of no
term.
"""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables as stored
from manybody.io.options import Block as Part, Seed, Text, key, refers
from manybody.measure import clone_times, half_times, order_times
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import code_clones, spectra, text_bounds

LIKE = 0.05  # chance below which the log-linear form is refused
EXCHANGE = "One order costs as much as a factor of two in information, or more"
FACTORS = (0.1, 0.3, 1, 3, 10, 30)
LENGTHS = (style.ORDERS[2], style.ORDERS[4], style.ORDERS[6])  # colours


class Cell(Part):
    """Students of one law by one recipe."""

    label: Text = key("What they are called.")
    source: refers("sources", "code") = key("The law.")
    model: refers("models") = key("The student.")
    seeds: list[Seed] = key("Its runs.", min_length=1)

    def clocks(self) -> list[needed.Clock]:
        named = dict(source=self.source, model=self.model)
        return [needed.Clock(**named, seed=seed) for seed in self.seeds]


class Block(Figure):
    """Times of terms against their order and information, under controls; clones; texts."""

    ladder: list[Cell] = key(
        "Students of one length: of equal information first, then of other pairs.", min_length=1
    )
    lengths: list[Cell] = key("Students of other lengths, at equal information.", [])
    nested: list[Cell] = key("Students of terms inside others, beside disjoint ones.", [])
    alone: list[Cell] = key("Students of a high order alone, then beside lower ones.", [])
    controls: list[Cell] = key("Students by other recipes, at equal information.", [])
    clones: code_clones.Clones = key(
        "Clones of the first law of the ladder, of two symbols and terms that share no sites.", None
    )
    spectrum: refers("spectra", "draws", "enumeration") = key(
        "Order spectrum of the students of the ladder's first law.", None
    )
    text: list[text_bounds.Generators] = key("What orders could tell of texts.", [])


class Inputs(needed.Inputs):
    clocks: dict[str, dict[str, list[needed.Clock]]]
    runs: list[needed.Tested]
    laws: dict[str, dict]
    parts: dict[str, needed.Drawn]
    clones: list[needed.Clone]
    spectra: list[needed.Spectrum]
    text: dict[str, list[list[needed.Tested]]]
    steps: int

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        groups = dict(
            ladder=block.ladder, lengths=block.lengths, nested=block.nested, alone=block.alone,
            controls=block.controls,
        )  # fmt: skip
        clocks = {
            group: {one.label: one.clocks() for one in cells} for group, cells in groups.items()
        }
        runs, sources, parts = [], {}, {}
        if block.clones:
            runs = needed.runs_of([block.clones.evaluation], config)
            targets = config["evaluations"][block.clones.evaluation]["targets"]
            law = block.ladder[0].source
            own = {name: one.get("source", law) for name, one in targets.items() if "split" in one}
            parts = {name: needed.Drawn(source=source) for name, source in own.items()}
            sources = {"": law} | own
        return cls(
            clocks=clocks,
            runs=runs,
            laws={name: config["sources"][source] for name, source in sources.items()},
            parts=parts,
            clones=needed.clones_of(runs),
            spectra=needed.spectra_of([block.spectrum], config) if block.spectrum else [],
            text={one.label: one.runs(config) for one in block.text},
            steps=config["models"][block.ladder[0].model]["training"]["steps"],
        )


class Found(NamedTuple):
    """All that was measured.

    times: rows of `order_times`, of all cells, with their `group` and what is `left`. ladder: the
    fit of the ladder at half. chance: of the log-linear form, None where nothing tells it. clones:
    by name. bounds: of each text.
    """

    times: pd.DataFrame
    ladder: order_times.Fit
    chance: tuple[float, int] | None
    estimates: list[order_times.Estimate]
    clones: dict[str, clone_times.Saturation]
    spectrum: half_times.Spectra | None
    bounds: dict[str, list[text_bounds.Bound]]

    @property
    def laws(self) -> list[order_times.Estimate]:
        """The cost of an order in each law of the ladder, at half."""
        return [
            one for one in self.estimates if one.group == "ladder" and one.left == order_times.HALF
        ]


def tables(inputs: Inputs, block: Block) -> style.Tables:
    times = read_times(inputs)
    clones = code_clones.read(inputs, block) if inputs.runs else {}
    bounds = {label: text_bounds.read(runs) for label, runs in inputs.text.items()}
    spectrum = next(iter(spectra.read(inputs.spectra)), None) if inputs.spectra else None
    return tables_of(times, clones, spectrum, bounds)


def read_times(inputs: Inputs) -> pd.DataFrame:
    """Times of all terms, by K_e, or by the terms' own shares where some have sites in common."""
    parts = []
    for group, cells in inputs.clocks.items():
        for label, runs in cells.items():
            for run in runs:
                table = stored.CLOCKS.read(run.file())[0]
                share = "own_share" if table["gap"].isna().any() else "gap"
                found = order_times.times(table, share)
                nested = found["nested"] & (found["order"] > found["order"].min())
                parts.append(found.assign(nested=nested, group=group, cell=label, student=run.seed))
    return pd.concat(parts, ignore_index=True)


def tables_of(
    times: pd.DataFrame,
    clones: Mapping[str, clone_times.Saturation] | None = None,
    spectrum: half_times.Spectra | None = None,
    bounds: Mapping[str, list[text_bounds.Bound]] | None = None,
    bootstraps: int = order_times.BOOTSTRAPS,
) -> style.Tables:
    ladder = times[(times["left"] == order_times.HALF) & (times["group"] == "ladder")]
    found = Found(
        times,
        *order_times.of_ladder(ladder, bootstraps),
        [*order_times.estimates(times, bootstraps)],
        dict(clones or {}),
        spectrum,
        dict(bounds or {}),
    )
    return style.Tables(style.gathered(_rows(found)), found)


def _rows(found: Found) -> Iterator[pd.DataFrame]:
    at_half = found.times[found.times["left"] == order_times.HALF]
    equal = [one for one in found.estimates if one.equal and one.group in ("ladder", "lengths")]
    for cell in dict.fromkeys(one.label for one in equal):
        mine = at_half[at_half["cell"] == cell]
        for reached, part in mine.groupby("reached"):
            series = cell if reached else f"{cell}, not reached"
            yield style.points("a", series, part["student"], part["order"], part["time"])
        medians = mine.groupby("order").agg({"time": "median", "reached": "mean"})
        medians = medians["time"].where(medians["reached"] > 0.5)  # else it is only a bound
        yield style.points("a, median", cell, "all", medians.index, medians)
    beta, costs = found.ladder.beta, {}
    if "information" in beta:
        costs["all laws of the ladder"] = found.ladder.of("order")
        for one in found.laws:
            yield style.points("c", "laws", one.label, one.x, math.exp(one.value), one.half)
        informed = [one.x for one in found.laws]
        x = np.geomspace(min(informed), max(informed), 2)
        line = np.exp(beta["order"] - beta["information"] * np.log(x))
        yield style.points("c", "log-linear fit", "all", x, line)
    for one in found.estimates:
        if one.equal or one.what != "order":
            costs[one.name] = one.value, one.error, one.half
    for row, (label, (value, _, half)) in enumerate(costs.items()):
        yield style.points("b", label, "all", row, math.exp(value), half)
    for name, one in found.clones.items():
        panel = "d, trained" if one.trained else "d"
        yield style.points(panel, name, "all", math.exp(one.told), math.exp(one.seen), one.half)
        yield style.points("kappa", name, "all", one.kappa, math.exp(one.seen))
    for label, bounds in found.bounds.items():
        yield from text_bounds.rows(label, bounds)
    for seed in found.spectrum.runs if found.spectrum else []:
        for k in found.spectrum.orders:
            one = found.spectrum.half_time(seed, k)
            yield style.points("half-times", f"M_{k}", seed, k + 1, one.step, one.error)


def claims(tables: style.Tables) -> list[records.Claim]:
    found, later = tables.found, "the log of the ratio of times is above 0"
    counts = found.times.groupby("cell")["student"].nunique()
    fewest = f"{counts.min()} to " if counts.min() < counts.max() else ""
    scope = f"{fewest}{counts.max()} students of each of {len(counts)} laws or recipes"

    def parts(make, what: str, *groups: str, equal: bool = False):
        return [
            make(f"log of the factor, {one.name}", one.value, one.error, 0.0, half=one.half)
            for one in found.estimates
            if one.what == what and one.group in groups
            if (one.equal if equal else one.left == order_times.HALF)
        ]

    exchange, linear, alone = [], [], []
    if "information" in found.ladder.beta:
        value, error, half = found.ladder.exchange()
        exchange = [records.above("log r*", value, error, math.log(2), half=half)]
        alone = parts(records.above, "order", "ladder")
    if found.chance:
        chance, degrees = found.chance
        vague = chance > LIKE and any(one.half > code_clones.WIDEST for one in found.laws)
        label, why = f"chance, {degrees} degrees of freedom", "a law's interval is wider" * vague
        linear = [records.above(label, chance, 0.0, LIKE, unusable=why)]
    covered, clones = code_clones.covered, found.clones.values()
    predicted = (
        f"more than {code_clones.COVERED:.0%} lie in their 95 % intervals; of those that are wider "
        "than a factor of two either way it is not known"
    )
    given = {
        "equal-information": (
            "At equal information a term of higher order is learned later",
            parts(records.above, "order", "ladder", "lengths", equal=True),
            later,
        ),
        "order-alone": (
            "Terms are learned in the sequence of their orders, whatever they tell",
            alone,
            later,
        ),
        "exchange": (EXCHANGE, exchange, "log r* is above log 2"),
        "log-linear": (
            "log t is linear in the order and in the log of the information",
            linear,
            f"deviations as large have a chance above {LIKE:g}, where the interval of each law is "
            "within a factor of two either way",
        ),
        "controls": (
            "Other recipes and students learn the higher order later too",
            parts(records.above, "order", "controls"),
            later,
        ),
        "foothold": (
            "A term with a lower one inside it is learned earlier",
            parts(records.below, "foothold", "nested"),
            "the log of the ratio of times is below 0",
        ),
        "beside": (
            "A high order is learned earlier beside lower ones than alone",
            parts(records.below, "beside", "alone"),
            "the log of the ratio of times is below 0",
        ),
        "clones": (
            "Times of saturation on parts of the law follow from the times of terms",
            covered(clones, trained=False),
            predicted,
        ),
        "clones-trained": (
            "Times of saturation on clones of trained generators follow from the times of terms",
            covered(clones, trained=True),
            predicted,
        ),
    }
    given = {name: one for name, one in given.items() if one[1]}
    made = records.all_judged("simplicity/order", given, scope)
    made += text_bounds.claims(found.bounds)
    if "exchange" not in given:
        reason = "the students have terms of equal information only: config/order.yaml"
        made.append(records.not_run("simplicity/order/exchange", EXCHANGE, reason, scope))
    return made


@style.in_house_style
def draw(tables: style.Tables):
    drawn = tables.drawn
    present = {panel[0] for panel in drawn["panel"]}
    shown = [[name for name in row if name in present] for row in ("ab", "cd", "e")]
    upper = max(2.6, 0.9 + 0.17 * (drawn["panel"] == "b").sum())
    heights = [height for height, names in zip((upper, 2.6, 2.6), shown, strict=True) if names]
    figure = style.new(2, sum(heights))
    parts = np.atleast_1d(figure.subfigures(len(heights), height_ratios=heights))
    for part, names in zip(parts, filter(None, shown), strict=True):
        for name, axes in zip(names, np.ravel(part.subplots(1, len(names))), strict=True):
            DRAWN[name](axes, drawn)
    return figure


def _draw_orders(axes, drawn: pd.DataFrame) -> None:
    from matplotlib.transforms import ScaledTranslation

    cells = dict.fromkeys(drawn.loc[drawn["panel"] == "a, median", "series"])

    def beside(place: int):
        """Where a point is drawn: beside its order, which other series have as well."""
        return axes.transData + ScaledTranslation(place / 14, 0, axes.figure.dpi_scale_trans)

    for place, (cell, colour) in enumerate(zip(cells, LENGTHS, strict=False)):
        look = dict(color=colour, transform=beside(place))
        line = style.line(axes, drawn, "a, median", cell, label=cell, **look)
        style.line(axes, drawn, "a", cell, "o", alpha=0.6, **look)
        look["markerfacecolor"] = "white"
        style.line(axes, drawn, "a", f"{cell}, not reached", "^", alpha=0.6, **look)
    halves = drawn[drawn["panel"] == "half-times"]
    if not halves.empty:
        look = dict(color="0.5", label=r"$M_{k-1}$, half-time", transform=beside(-1))
        axes.plot(halves["x"], halves["y"], "x", **look)
    # Limits by the data, which an axes does not look for behind another transform.
    axes.update_datalim(drawn.loc[drawn["panel"].isin(["a", "half-times"]), ["x", "y"]].dropna())
    axes.margins(x=0.2)  # what is drawn beside its place lies inside
    axes.set(yscale="log", xlabel="order of the term", ylabel="step at which half is learned")
    axes.set(title="(a) equal information", xticks=sorted(set(line["x"])))
    style.plain_ticks(axes.yaxis, style.STEPS)
    axes.legend(ncols=2)


def _draw_information(axes, drawn: pd.DataFrame) -> None:
    laws = style.series(drawn, "c", "laws")
    style.dots(axes, laws["x"], laws["y"], yerr=style.factors(laws["y"], laws["y_err"]))
    look = dict(color=style.UNBOUNDED, label="log-linear fit")
    style.line(axes, drawn, "c", "log-linear fit", **look)
    axes.axhline(1, **style.EQUAL)
    axes.set(xscale="log", yscale="log", xlabel="information of the pairs over the triples'")
    axes.set(ylabel="time of the triples over the pairs'", title="(c) dashed: equal time")
    style.plain_ticks(axes.xaxis)
    style.plain_ticks(axes.yaxis, FACTORS)
    axes.legend(loc="upper left")


def _draw_costs(axes, drawn: pd.DataFrame) -> None:
    rows = drawn[drawn["panel"] == "b"]
    error = style.factors(rows["y"], rows["y_err"].where(np.isfinite(rows["y_err"])))
    style.dots(axes, rows["y"], rows["x"], xerr=error, color="black")
    axes.axvline(1, **style.EQUAL)
    style.name_rows(axes, list(rows["series"]))
    axes.set(xscale="log", xlabel="factor of steps", title="(b) what one order costs")
    style.plain_ticks(axes.xaxis, FACTORS)


DRAWN = {
    "a": _draw_orders,
    "b": _draw_costs,
    "c": _draw_information,
    "d": code_clones.draw,
    "e": text_bounds.draw,
}


def caption(inputs: Inputs, block: Block) -> str:
    first, more = block.ladder[0], ""
    if block.nested:
        more += "*foothold*: a term with a lower one inside, over one without. "
    if block.alone:
        more += "Last: a high order beside lower ones, over alone. "
    if len(block.ladder) > 1:
        more += "**(c)** The same where pairs have less information than triples. "
    if inputs.runs:
        more += "**(d)** Saturation on clones: predicted, seen in other students. "
    if block.text:
        more += "**(e)** Losses of generators of text; open: narrower ones. "
    crosses = "; crosses: half-times of M_k, of all terms together" if block.spectrum else ""
    return (
        "Does the order of a term set the time at which it is learned?\n\n"
        "**(a)** Steps until students know half of each term's information, all equal; "
        f"hollow: not reached; lines: medians{crosses}. **(b)** Factor in "
        "time for one order more; *5% left*: until 5 % is left to learn; no dot: not reached. "
        f"{more}Bars: 95 % intervals.\n\n"
        f"{first.label}: {len(first.seeds)} students of {inputs.steps} steps.\n"
    )
