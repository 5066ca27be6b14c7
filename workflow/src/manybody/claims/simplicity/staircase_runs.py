"""What figure 2 reads: networks and reference lines on samples of a known Hamiltonian.

Losses are nats per token on the validation set, the same for networks and lines, every position
masked in its own copy; times are epochs. (many-body, sections 3 and 6)
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from manybody.claims import training_runs
from manybody.data import hamiltonian
from manybody.io import tables
from manybody.io.sequences import Sequences

ON_LINE = 0.004  # nats per token: a loss this near to a line is on it
REACHED = 0.8  # share of the way from the line below to the true conditionals
MOVED = 0.1  # mean square displacement at which a layer has moved


@dataclass
class Lines:
    """Reference losses: `marginals` of single sites, `fits` by order, `truth` of order `order`.

    Each is (loss, standard error over sequences). `train` has the losses of the fits on the
    training set, by order.
    """

    marginals: tuple[float, float]
    fits: dict[int, tuple[float, float]]
    truth: tuple[float, float]
    order: int
    train: dict[int, float]

    def below(self) -> int:
        """The highest order under that of the data that has a line; 1 is single-site marginals."""
        return max((order for order in self.fits if order < self.order), default=1)

    def loss(self, order: int) -> float:
        """The line of an order below that of the data."""
        return self.marginals[0] if order == 1 else self.fits[order][0]

    def under(self) -> dict[int, float]:
        """The fitted lines below the order of the data, from low to high order."""
        return {order: self.loss(order) for order in sorted(self.fits) if order < self.order}

    def fraction(self, loss: float) -> float:
        """How far `loss` has come from the line below the data's order to the true conditionals.

        NaN where that line is not above the true one: there is no way to go.
        """
        way = self.loss(self.below()) - self.truth[0]
        return (self.loss(self.below()) - loss) / way if way > 0 else math.nan


def classify(end: float, lines: Lines) -> str:
    """Where a run ended: one of `classes(lines)`.

    `reached` has come 80 % of the way from the line below the data's order to the true
    conditionals; `on k` is within 0.004 nats of the k-body line (the nearest one); `above` has
    not come down to the lowest line; `between` is anything else; `diverged` is not finite.
    """
    if not math.isfinite(end):
        return "diverged"
    if lines.fraction(end) >= REACHED:
        return "reached"
    under = lines.under()
    if under:
        order = min(under, key=lambda order: abs(under[order] - end))
        if abs(under[order] - end) <= ON_LINE:
            return f"on {order}"
    top = max(under.values(), default=lines.marginals[0])
    return "above" if end > top else "between"


def classes(lines: Lines) -> list[str]:
    """All classes, from the best to the worst end."""
    resting = [f"on {order}" for order in reversed(lines.under())]
    return ["reached", *resting, "between", "above", "diverged"]


@dataclass
class Trajectory(training_runs.TrainedRun):
    """A run, and how far its layers went: indexed by epoch, a column for each layer."""

    displacement: pd.DataFrame

    @property
    def spacing(self) -> float:
        """Mean time between checkpoints."""
        epochs = self.curve["epoch"]
        return float((epochs.iloc[-1] - epochs.iloc[0]) / max(len(epochs) - 1, 1))

    def dwell(self, line: float) -> float:
        """Epochs within 0.004 nats of `line`; a checkpoint stands for half the way to its
        neighbours. Not one stretch: at constant rate the loss fluctuates by more than that."""
        epochs = self.curve["epoch"].to_numpy(float)
        near = (self.curve["loss"] - line).abs().to_numpy() <= ON_LINE
        return float(_weights(epochs)[near].sum())

    def escapes(self) -> pd.Series:
        """The first checkpoint at which each layer has moved (mean square displacement > 0.1);
        infinite if it has not."""
        moved = self.displacement > MOVED
        return moved.idxmax().where(moved.any(), math.inf).astype(float)


def _weights(epochs: np.ndarray) -> np.ndarray:
    steps = np.diff(epochs)
    return (np.append(steps, 0.0) + np.insert(steps, 0, 0.0)) / 2


@dataclass
class Group:
    """The runs of one network by one recipe, by seed."""

    model: str
    label: str
    runs: dict[int, Trajectory]

    @property
    def layers(self) -> int:
        return next(iter(self.runs.values())).about["description"]["layers"]

    @property
    def ends(self) -> pd.Series:
        return pd.Series({seed: run.end for seed, run in self.runs.items()})

    @property
    def chosen(self) -> int:
        """The seed that is shown (`training_runs.chosen`)."""
        return training_runs.chosen(self.runs)

    def counts(self, lines: Lines) -> dict[str, int]:
        """How many runs ended in each class."""
        found = Counter(classify(end, lines) for end in self.ends)
        return {name: found[name] for name in classes(lines)}


@dataclass
class Part:
    """One source: its config, its lines, its networks by depth and the other protocols.

    shares: f_1 to f_k of its Hamiltonian. self_test: of the samples, as `Sequences` keep it.
    predictions: how many tokens each model's held-out loss is the mean of.
    """

    source: dict
    name: str
    lines: Lines
    networks: list[Group]
    protocols: list[Group]
    shares: list[float]
    self_test: dict
    predictions: dict[str, int]

    @property
    def groups(self) -> list[Group]:
        return [*self.networks, *self.protocols]

    @cached_property
    def deepest(self) -> Group:
        return max(self.networks, key=lambda group: group.layers)

    def of_depth(self, layers: int) -> Group | None:
        return next((group for group in self.networks if group.layers == layers), None)


# --- Reading -------------------------------------------------------------------------------------


def read_exact(files, block: dict, context: dict) -> pd.DataFrame | None:
    """The identities that the block's `exact` names, or None."""
    if "exact" not in block:
        return None
    paths = dict(zip(context["theory"], files["theory"], strict=True))
    return tables.read_theory(paths[block["exact"]])[0]


def read_parts(files, block: dict, context: dict) -> list[Part]:
    """The parts of a figure (the block itself, or its `parts`) from the files of its rule.

    files: `models`, the manifests of `context["models"]` (source, model, seed); `displacements`,
    the tables of `context["displacements"]` (source, model); `sequences` and `hamiltonians`, the
    validation split and the Hamiltonian of each of `context["sources"]`.
    """
    moved = zip(map(tuple, context["displacements"]), files["displacements"], strict=True)
    moved = {run: tables.read_displacements(path) for run, path in moved}
    models = zip(map(tuple, context["models"]), files["models"], strict=True)
    runs = {run: read_trajectory(path, moved.get(run[:2])) for run, path in models}
    held_out = dict(zip(context["sources"], files["sequences"], strict=True))
    hamiltonians = dict(zip(context["sources"], files["hamiltonians"], strict=True))
    return [
        _part(
            part,
            context["sources"][part["source"]],
            {run[1:]: found for run, found in runs.items() if run[0] == part["source"]},
            Sequences.open(held_out[part["source"]]),
            hamiltonian.read_about(hamiltonians[part["source"]])["shares"],
        )
        for part in block.get("parts", [block])
    ]


def _part(part: dict, source: dict, runs: dict, sequences: Sequences, shares: list) -> Part:
    """runs: by model and seed."""
    models = {model: runs[model, 0] for model in [*part["lines"], part["truth"]]}
    truth = models[part["truth"]]
    fits = {models[model].about["description"]["order"]: models[model] for model in part["lines"]}
    lines = Lines(
        marginals=marginal_loss(sequences.tokens, sequences.vocabulary),
        fits={order: _final(fit) for order, fit in fits.items()},
        truth=_final(truth),
        order=source["order"],
        train={
            order: fit.about["final"].get("train_loss", math.nan) for order, fit in fits.items()
        },
    )
    networks = [_group(entry, runs) for entry in part["networks"]]
    networks.sort(key=lambda group: group.layers)
    protocols = [_group(entry, runs, networks[-1].model) for entry in part.get("protocols", [])]
    groups = {group.model: group.runs[group.chosen] for group in [*networks, *protocols]}
    predictions = {
        model: int(run.curve["tokens"].iloc[-1]) for model, run in (models | groups).items()
    }
    return Part(
        source=source,
        name=part["source"],
        lines=lines,
        networks=networks,
        protocols=protocols,
        shares=shares,
        self_test=sequences.about["self_test"],
        predictions=predictions,
    )


def _group(entry: dict, known: dict, base: str = "") -> Group:
    runs = {seed: known[entry["model"], seed] for seed in entry["seeds"]}
    layers = next(iter(runs.values())).about["description"]["layers"]
    own = entry["model"].removeprefix(base).strip("-_.") if base else ""
    return Group(entry["model"], f"n = {layers}{', ' if own else ''}{own}", runs)


def read_trajectory(path, moved: pd.DataFrame | None = None) -> Trajectory:
    """The run with the manifest at `path`; moved: the displacements of its model's runs."""
    about, curve = training_runs.read(path)
    if moved is None:
        return Trajectory(about, curve, pd.DataFrame())
    mine = moved[moved["seed"] == about["seed"]]
    displacement = mine.pivot(index="step", columns="layer", values="value")
    displacement.index = displacement.index.map(curve.set_index("step")["epoch"])
    return Trajectory(about, curve, displacement)


def _final(run: Trajectory) -> tuple[float, float]:
    last = run.curve.iloc[-1]
    return float(last["loss"]), float(last["loss_se"])


def marginal_loss(tokens: np.ndarray, vocabulary: int) -> tuple[float, float]:
    """Loss of the single-site marginals of tokens (N, L) on themselves, and its standard error.

    The mean entropy of a site (nats); the error is over sequences.
    """
    counts = np.stack([np.bincount(site, minlength=vocabulary) for site in tokens.T])
    with np.errstate(divide="ignore"):
        loss = -np.log(counts / len(tokens))  # (L, |V|); infinite only where nothing is
    each = np.take_along_axis(loss, tokens.T.astype(np.int64), axis=1).mean(axis=0)
    error = each.std(ddof=1) / math.sqrt(len(each)) if len(each) > 1 else math.nan
    return float(each.mean()), float(error)
