"""Figure 3: how good the generators are, and whether their chains have settled."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from manybody import models
from manybody.io import tables as files
from manybody.io.options import Block as Options, key, refers
from manybody.measure.chains import FORGOTTEN, RHAT, rhat_of
from manybody.measure.intervals import ERRORS
from manybody.models import labels
from manybody.papers import claims as records, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import answers, learning, students
from manybody.papers.simplicity.students import Chains, Evaluated, StudentInputs as Inputs

VERBATIM = 0.01  # share of test blocks that may stand in the training text
TITLES = {"a": "generators on test text", "b": "their chains", "c": "student on clones"}
R_HAT = "R-hat"  # in the table: split R-hat of the chains of panel b, at the last sweep


class PairedChains(Options):
    """Clones of one generator from text and from noise, which agree if they are its samples."""

    evaluation: refers("evaluations") = key("Evaluation of the generator, one of the figure's.")
    text: students.CloneTarget = key("Its target of chains from test sequences.")
    noise: students.CloneTarget = key("Its target of chains from unigram noise.")

    def misfits(self, config):
        evaluation = config.evaluations[self.evaluation]
        found = [evaluation.targets[name] for name in (self.text, self.noise)]
        made = {(config.clones[target.clone].model, target.sweep) for target in found}
        if made != {(evaluation.model, found[0].sweep)}:
            yield (
                "",
                f"found {self.text} and {self.noise}, clones of other models or at different "
                f"sweeps; expected both of {evaluation.model} at one sweep; change one of them in "
                f"evaluations.{self.evaluation}",
            )


class Block(students.StudentBlock, Figure):
    """The generators' quality, their chains' scores, two sweeps compared."""

    evaluation: refers("evaluations") = key("Evaluation of the student of panel c.")
    seeds: list[students.Run] = key(
        "Runs that are read; panel c draws the first.", None, min_length=1
    )
    generators: list[refers("evaluations")] = key(
        "Evaluations of the generators from low to high order."
    )
    wide_generator: refers("evaluations") = key(
        "Evaluation of a low-order generator of high quality.", None
    )
    test: students.Test = key("Target of test text in the generators' evaluations.")
    chains: list[refers("clones")] = key("Clones whose scores panel b draws.")
    twins: list[PairedChains] = key(
        "Clones of one generator from text and from noise, which agree if they are samples of it.",
        [],
    )
    pairs: list[students.Pair] = key(
        "Pairs of targets, the same chains at two sweeps, for panel c."
    )

    def misfits(self, config):
        for number, paired in enumerate(self.twins):
            if paired.evaluation not in self.generators:
                yield (
                    f"twins[{number}].evaluation",
                    f"found {paired.evaluation}; expected one of generators: "
                    f"{', '.join(self.generators)}; take one of them or add it there",
                )


Curve = tuple[pd.DataFrame, dict]  # rows of what is drawn; legend, colour and line


class Tables(NamedTuple):
    """The rows that are drawn, also by panel and curve; statements with comparisons, by claim; a
    sentence on the test losses, and what it names; generators whose loss on test text falls."""

    drawn: pd.DataFrame
    panels: dict[str, list[Curve]]
    scope: str
    statements: dict[str, tuple]
    said: tuple[str, list[str]]
    falling: list[str]


def tables(inputs: Inputs, block: Block) -> Tables:
    """Losses of generators and of a student, scores of chains; of each evaluation one run."""
    runs = [*inputs.runs, *inputs.generators]
    evaluated = students.read_evaluated(runs, inputs.clones, corpus=inputs.corpus)
    found: dict[str, Evaluated] = {}
    for run, tested in zip(runs, evaluated, strict=True):
        found.setdefault(run.evaluation, tested)
    chains = {one.clone: Chains(*files.read_trace(one.file())) for one in inputs.clones}
    return tables_of(found, chains, block)


def tables_of(runs: dict[str, Evaluated], chains: dict[str, Chains], block: Block) -> Tables:
    """runs: by evaluation, the student's among them. chains: by clone."""
    student, shown = runs[block.evaluation], [chains[name] for name in block.chains]
    panels = {
        "a": [*_quality(runs, block)],
        "b": [*map(_score, shown)],
        "c": [*_sweeps(student, block)],
    }
    generators = [runs[name] for name in block.generators]
    last = [(_name(run), files.select(run.losses, block.test)) for run in generators]
    judged = [(one, sweep) for one in shown for sweep in sorted({min(20, one.end), one.end})]
    statements = {  # statement, comparisons, rule, and where the paper has it, if it does
        "quality": (
            "A generator of higher order is better, and BERT is best",
            [*_better(last)],
            "its loss on the same test sequences is lower by three standard errors",
            "figure 3a",
        ),
        "settled": (
            "The chains' scores settle",
            [one.settled(sweep) for one, sweep in judged],
            f"the score moves by less than {students.DRIFT:.0%} of its total change in the last "
            "quarter of the sweeps",
            "figure 3b",
        ),
        "sweeps": (
            "The losses on clones of 20 and of 70 sweeps are the same",
            [*_same_losses(student, block)],
            f"the losses differ by less than {learning.SIMILAR:.0%} at a checkpoint",
            "figure 3c",
        ),
        "samples": (
            "The clones are samples of their models",
            _samples(runs, chains, block, judged),
            f"R-hat is below {RHAT:g}, less than {FORGOTTEN:.0%} of the start is left, chains from "
            "text and from noise do not differ by two standard errors",
        ),
        "new-text": (
            "The test text that chains start from is new to the models",
            _verbatim(chains),
            f"less than {VERBATIM:.0%} of its blocks stand in the training text",
        ),
    }
    return Tables(
        style.gathered([rows for curves in panels.values() for rows, _ in curves]),
        panels,
        labels.scale(student.about, 1),
        statements,
        _apart(last),
        [_name(run) for run in generators if _falls(run, block.test)],
    )


def _name(run: Evaluated) -> str:
    return models.about(run.about["description"]).generator


def _quality(runs: dict[str, Evaluated], block: Block) -> Iterator[Curve]:
    for name in block.of_generators:
        description, label, line = runs[name].about["description"], _name(runs[name]), "-"
        if name == block.wide_generator:
            label, line = f"{label}, rank {description.get('rank') or 'full'}", "--"
        looks = dict(label=label, color=style.generator_colour(description), linestyle=line)
        yield _losses("a", runs[name], block.test, label), looks


def _losses(panel: str, run: Evaluated, target: str, series: str) -> pd.DataFrame:
    """A run's loss on a target by step; step 0 has no place on a log axis."""
    curve = run.curves.query("target == @target and step > 0")
    numbers = (curve[column] for column in ("step", "loss", "loss_se"))
    return style.points(panel, series, run.about["seed"], *numbers)


def _score(one: Chains) -> Curve:
    """Mean score of chains by sweep, and their R-hat."""
    description = one.about["generator"]["description"]
    named = models.about(description).generator, one.about["chain_seed"]
    numbers = one.trace["sweep"], one.trace["score"], one.trace["score_se"]
    mixing = style.points(R_HAT, *named, one.end, rhat_of(one.trace))
    looks = {"label": named[0], "color": style.generator_colour(description)}
    return pd.concat([style.points("b", *named, *numbers), mixing]), looks


def _sweeps(student: Evaluated, block: Block) -> Iterator[Curve]:
    """The student's losses on the same chains after fewer and after more sweeps."""
    for pair in block.pairs:
        for target, line in zip(pair, ("-", ":"), strict=True):
            document = student.targets[target]
            sweeps = f"{document['sweep']} sweeps"
            rows = _losses("c", student, target, f"{labels.target(document)}, {sweeps}")
            yield rows, {"label": sweeps, "color": style.colour(document), "linestyle": line}


def _better(last: list[tuple[str, pd.DataFrame]]) -> Iterator[records.Comparison]:
    """Losses on test text, of each generator less that of the next, paired by sequence."""
    for (worse, one), (better, other) in pairwise(last):
        difference = files.paired_difference(other, one)
        label = f"test loss of {worse} less that of {better}"
        yield records.above(label, *difference, deviations=records.STRICT)


def _apart(last: list[tuple[str, pd.DataFrame]]) -> tuple[str, list[str]]:
    """A sentence on the losses on test text above that of the last generator, and its numbers."""
    *others, (best, least) = last
    apart = [(name, files.paired_difference(least, one)) for name, one in others]
    found = answers.in_words((name, records.above("", *one)) for name, one in apart)
    return f"The test loss above that of {best}, in nats a token, is {{}}.", found


def _falls(run: Evaluated, test: str) -> bool:
    """True if the loss on test text falls by more than its error between the last checkpoints."""
    curve = run.curves[run.curves["target"] == test].sort_values("step").iloc[-2:]
    before, last = curve.iloc[0], curve.iloc[-1]
    fall, error = before["loss"] - last["loss"], math.hypot(before["loss_se"], last["loss_se"])
    return fall > ERRORS * error


def _samples(runs: dict, chains: dict, block: Block, judged: list) -> list[records.Comparison]:
    """R-hat of all chains, what is left of the start, and chains from text against noise."""
    tested, agreements = list(block.chains), []
    for paired in block.twins:
        run, names = runs[paired.evaluation], (paired.text, paired.noise)
        clones = [run.targets[name]["clone"] for name in names]
        tested += clones
        losses = [files.select(run.losses, name) for name in names]
        both, sweep = (chains[name] for name in clones), run.targets[paired.text]["sweep"]
        agreements += students.agreement(*both, losses, sweep)
    mixed = [chains[name].mixed() for name in dict.fromkeys(tested)]
    return [*mixed, *(one.forgotten(sweep) for one, sweep in judged), *agreements]


def _same_losses(student: Evaluated, block: Block) -> Iterator[records.Comparison]:
    for pair in block.pairs:
        fewer, more = (student.targets[target]["sweep"] for target in pair)
        label = f"{student.labels[pair[0]]}, {more} against {fewer} sweeps"
        yield from learning.similar_losses(label, student, *pair, block.control)


def _verbatim(chains: dict[str, Chains]) -> list[records.Comparison]:
    """For the texts that chains start from, the share of test blocks that the training text has."""
    label = "share of the test blocks that stand verbatim in the training text"
    abouts = {one.about["source"]: one.about for one in chains.values() if "overlap" in one.about}
    return [
        records.below(f"{name}: {label}", about["overlap"]["verbatim"], 0.0, VERBATIM)
        for name, about in abouts.items()
    ]


def claims(tables: Tables) -> list[records.Claim]:
    quality, *others = records.all_judged("simplicity/fig3", tables.statements, tables.scope)
    return [quality.says(*tables.said), *others]


@style.in_house_style
def draw(tables: Tables):
    figure, shown = style.new(2, 2.9), {}
    panels = dict(zip(TITLES, figure.subplots(1, 3), strict=True))
    for panel, axes in panels.items():
        for rows, looks in tables.panels[panel]:
            curve, grey = rows[rows["panel"] == panel], {}
            if panel == "c":  # late, where its curves part, by less than the errors of each
                curve, grey = curve[curve["x"] > curve["x"].max() / 30], {"color": "0.3"}
            else:
                style.band(axes, curve, looks["color"])
            axes.plot(curve["x"], curve["y"], **looks)
            shown.setdefault(looks["label"], looks | grey)
        axes.set(xscale="log", xlabel="training step", ylabel="test loss (nats per token)")
        axes.set_title(f"({panel}) {TITLES[panel]}")
    end = dict(marker="v", linestyle="", markersize=5)
    for rows, looks in tables.panels["a"]:
        if looks["label"] in tables.falling:
            panels["a"].plot(*rows[["x", "y"]].iloc[-1], color=looks["color"], **end)
            shown["falls"] = dict(label="generators still falling", color="0.3", **end)
    panels["b"].set(xscale="linear", xlabel="sweep", ylabel=r"score $-E/L$ (nats per position)")
    mixing = [
        (f"$\\hat R$ = {rows['y'].iloc[-1]:.2g}", rows["y"].iloc[-2], looks["color"])
        for rows, looks in tables.panels["b"]
    ]
    style.label_right(panels["b"], mixing, 0.09)
    style.plain_ticks(panels["c"].xaxis, style.STEPS)
    handles = [style.mark(**looks) for looks in shown.values()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "Figure 3: how good the generators are, and whether their chains have settled.\n\n"
        "**(a)** Test loss of each generator by its own step; triangles where it still falls by "
        "more than two standard errors. **(b)** Mean score of chains by sweep, flat where it has "
        "settled, with split R-hat of the second half of the sweeps, 1 where chains have mixed. "
        "**(c)** Late losses of a student on clones after fewer and more sweeps, which coincide if "
        "chains have settled. Bands: one standard error over sequences or chains.\n\n"
        f"{inputs.made()}\n"
    )
