"""Networks of growing depth on samples of a known Hamiltonian: their runs and reference lines.

Losses are nats per token on the validation set, every position masked in its own copy; times are
epochs (many-body, sections 3 and 6).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables, tensor_files
from manybody.io.options import Block, Seeds, key, refers
from manybody.measure.truths import of_marginals
from manybody.papers import claims as records, inputs as needed, readings
from manybody.papers.figure import Adopting, Figure

ON_LINE = 0.004  # nats per token: a loss this near to a line is on it
CLOSED = (0.7, 0.8, 0.9)  # shares of the last gap at which a run may count as having closed it
MOVED = 0.1  # mean square displacement at which a layer has moved
HALF = 0.5  # of the runs
EXACT = 1.959964  # standard errors of a normal distribution's interval of 95 %, for exact tests


class SeededModel(Block):
    """Runs of one model."""

    model: refers(
        "models",
        wanted="whose depth sets its order (factored)",
        fits=lambda model, _: model.about.depth is not None and model.about.order is not None,
    ) = key("Name of the model.")
    seeds: Seeds = key("Its runs.")


class StaircaseBlock(Figure):
    """Networks of growing depth on samples of a known Hamiltonian."""

    source: refers("sources", "many-body", "potts") = key("A many-body source.")
    networks: list[SeededModel] = key("Factored attention, from low to high depth.")
    protocols: list[SeededModel] = key(
        "The deepest network by other recipes, shown beside the first.", []
    )
    lines: list[
        refers(
            "models",
            wanted="of a set order (energy)",
            fits=lambda model, _: model.about.depth is None and model.about.order is not None,
        )
    ] = key("Energy models, from low to high order.")
    truth: Adopting = key("The energy model with the source's own weights.")


class Runs(Block):
    """Runs of one network by one recipe, and how far their layers moved."""

    runs: list[needed.Trained]
    moved: needed.Displacements
    recipe: str

    @classmethod
    def of(cls, entry: SeededModel, source: str, config: dict) -> "Runs":
        recipe = config["models"][entry.model]["training"]
        named = dict(source=source, model=entry.model)
        return cls(
            runs=[needed.Trained(**named, seed=seed) for seed in entry.seeds],
            moved=needed.Displacements(**named),
            recipe=f"{recipe['optimizer']['name'].upper()}, rate {recipe['learning_rate']:g}",
        )


class Inputs(needed.Inputs):
    source: dict
    networks: list[Runs]
    protocols: list[Runs]
    lines: list[needed.Trained]
    truth: needed.Trained
    held_out: needed.Sequences
    hamiltonian: needed.Hamiltonian

    @classmethod
    def of(cls, block: StaircaseBlock, config: dict) -> "Inputs":
        source = str(block.source)
        return cls(
            source=config["sources"][source],
            networks=[Runs.of(entry, source, config) for entry in block.networks],
            protocols=[Runs.of(entry, source, config) for entry in block.protocols],
            lines=[needed.Trained(source=source, model=name, seed=0) for name in block.lines],
            truth=needed.Trained(source=source, model=block.truth, seed=0),
            held_out=needed.Sequences(source=source),
            hamiltonian=needed.Hamiltonian(source=source),
        )


class Line(NamedTuple):
    """A reference loss, with its standard error over sequences, and that on the training set."""

    name: str
    order: int
    loss: float
    error: float
    train: float = math.nan


class Lines(NamedTuple):
    """The reference losses: single sites, fits of rising order, the true conditionals."""

    all: list[Line]

    @property
    def truth(self) -> Line:
        return self.all[-1]

    @property
    def descending(self) -> list[Line]:
        """The same without fits of the data's order or a higher one."""
        return [line for line in self.all if line.order < self.truth.order] + [self.truth]

    @property
    def under(self) -> list[Line]:
        """The fitted lines below the order of the data, from low to high order."""
        return self.descending[1:-1]

    @property
    def gap(self) -> float:
        """The gap from the line below the data's order to the true one; NaN: there is none."""
        gap = self.descending[-2].loss - self.truth.loss
        return gap if gap > 0 else math.nan

    @property
    def edge(self) -> float:
        """The loss at which most of the last gap is closed; NaN where there is no gap."""
        return self.descending[-2].loss - CLOSED[0] * self.gap

    def fraction(self, loss: float) -> float:
        """The share of the last gap that `loss` has closed; 0 above it, and if it is not finite."""
        share = (self.descending[-2].loss - loss) / self.gap
        return share if share > 0 or math.isnan(self.gap) else 0.0


@dataclass
class Trajectory(readings.TrainedRun):
    """A run, and how far its layers went: indexed by epoch, a column for each layer."""

    displacement: pd.DataFrame

    @property
    def spacing(self) -> float:
        return float(np.ptp(self.curve["epoch"]) / max(len(self.curve) - 1, 1))

    def dwell(self, line: float) -> float:
        """Epochs within 0.004 nats of `line`; a checkpoint stands for half the way to its
        neighbours. Not one stretch: at constant rate the loss fluctuates by more than that."""
        steps = np.diff(self.curve["epoch"], prepend=self.curve["epoch"].iloc[0])
        weights = (np.append(steps[1:], 0.0) + steps) / 2
        return float(weights[(self.curve["loss"] - line).abs() <= ON_LINE].sum())

    def escapes(self) -> pd.Series:
        """The first checkpoint at which each layer has moved; infinite if it has not."""
        moved = self.displacement > MOVED
        return moved.idxmax().where(moved.any(), math.inf).astype(float)


class Group(NamedTuple):
    """Runs of one network by one recipe, by seed; the seed shown."""

    model: str
    label: str
    layers: int
    runs: dict[int, Trajectory]
    chosen: int


class Staircase(NamedTuple):
    """One source: its lines, its networks by depth and the other recipes of the deepest.

    shares: f_1 to f_k of its Hamiltonian. predictions: of how many tokens held-out losses are the
    means, one number if all are of the same.
    """

    name: str
    sizes: str
    lines: Lines
    networks: list[Group]
    protocols: list[Group]
    shares: list[float]
    predictions: list[int]

    @property
    def groups(self) -> list[Group]:
        return [*self.networks, *self.protocols]

    @property
    def deepest(self) -> Group:
        return self.networks[-1]

    @property
    def scope(self) -> str:
        runs = ", ".join(f"{group.label}: {len(group.runs)} seeds" for group in self.groups)
        return f"{self.name}, order {self.lines.truth.order}, {self.sizes}; {runs}"


def read(inputs: Inputs) -> Staircase:
    from manybody.io.sequences import Sequences

    held_out = Sequences.open(inputs.held_out.file())
    runs = [readings.read_run(run.file()) for run in [*inputs.lines, inputs.truth]]
    *fits, truth = (_line(*run) for run in runs)
    marginals = Line("single sites", 1, *of_marginals(held_out.tokens, held_out.vocabulary))
    truth = truth._replace(name=f"true {truth.order}-body")
    networks = sorted(map(_group, inputs.networks), key=lambda group: group.layers)
    protocols = [_group(given, networks[-1].model) for given in inputs.protocols]
    curves = [curve for _, curve in runs]
    curves += [group.runs[group.chosen].curve for group in [*networks, *protocols]]
    return Staircase(
        name=inputs.truth.source,
        sizes=f"L = {held_out.length}, |V| = {held_out.vocabulary}",
        lines=Lines([marginals, *sorted(fits, key=lambda line: line.order), truth]),
        networks=networks,
        protocols=protocols,
        shares=tensor_files.read_about(inputs.hamiltonian.file())["shares"],
        predictions=sorted({int(curve["tokens"].iloc[-1]) for curve in curves}),
    )


def _group(given: Runs, base: str = "") -> Group:
    """The runs of one network, named by what its model's name adds to that of `base`."""
    displacements = tables.DISPLACEMENTS.read(given.moved.file())[0]
    runs = {}
    for run in given.runs:
        about, curve = readings.read_run(run.file())
        moved = displacements[displacements["seed"] == about["seed"]]
        moved = moved.pivot(index="step", columns="layer", values="value")
        moved.index = moved.index.map(curve.set_index("step")["epoch"])
        runs[run.seed] = Trajectory(about, curve, moved)
    layers = about["description"]["layers"]
    model = given.runs[0].model
    own = model.removeprefix(base).strip("-_.") if base else ""
    label = f"n = {layers}, {own}" if own else f"n = {layers}"
    return Group(model, label, layers, runs, readings.chosen(runs))


def _line(about: dict, curve: pd.DataFrame) -> Line:
    order, last = about["description"]["order"], curve.iloc[-1]
    train = about["final"].get("train_loss", math.nan)
    return Line(f"{order}-body fit", order, float(last["loss"]), float(last["loss_se"]), train)


# A statement, the comparisons for it, the rule of one of them, and where the paper has it.
Statement = tuple[str, Callable[[Staircase], Iterable[records.Comparison]], str, str]


@dataclass(frozen=True)
class Closed(records.Comparison):
    """The median over runs of the share of the last gap that each has closed, `each`. Its interval,
    from one run's share to another's, is exact: it lies above a threshold where that of the share
    of runs above the threshold lies above one half, and so below."""

    each: tuple[float, ...] = ()
    deviations: float = EXACT

    def interval(self, deviations=None):
        from scipy.stats import binom

        beyond = NormalDist().cdf(-(deviations or self.deviations))
        outside = int(binom.ppf(beyond, len(self.each), HALF))
        ranked = [0.0, *sorted(self.each), math.inf]
        return ranked[outside], ranked[-1 - outside]

    def verdict(self, deviations=None):
        low, high = self.interval(deviations)
        return "yes" if low >= CLOSED[-1] else "no" if high < CLOSED[0] else "undecided"


def closed(group: Group, lines: Lines) -> Closed:
    each = tuple(lines.fraction(run.end) for run in group.runs.values())
    done = ", ".join(f"{sum(one >= least for one in each)} close {least:.0%}" for least in CLOSED)
    label = f"{group.label}: share of the gap closed, median (of {len(each)} runs {done})"
    unusable = "the lines leave no gap" if math.isnan(each[0]) else ""
    given = dict(region=(CLOSED[-1], math.inf), unusable=unusable, each=each)
    return Closed(label, float(np.median(each)), **given)


def claims_of(
    figure: str, statements: Mapping[str, Statement], sources: Sequence[Staircase]
) -> list[records.Claim]:
    """Records of statements about all sources; not run where losses are not of the same tokens."""
    mixed = [one for one in sources if len(one.predictions) > 1]
    reason = ""
    if mixed:
        tested = " and ".join(map(str, mixed[0].predictions))
        reason = f"runs and lines of {mixed[0].name} are tested on {tested} held-out tokens"
    given = {
        name: (text, reason or chain.from_iterable(map(compare, sources)), rule, reference)
        for name, (text, compare, rule, reference) in statements.items()
    }
    return records.all_judged(
        f"simplicity/{figure}", given, "; ".join(one.scope for one in sources)
    )
