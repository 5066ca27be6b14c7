"""What figure 2 reads: networks trained on samples of a Potts model whose couplings are known.

Losses are nats per token on the validation set, every site masked in its own copy, and *excess* is
what they are above those of the true conditionals on the same sequences; times are epochs.
(potts, sections 2 and 6)
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from manybody import models
from manybody.claims import training_runs
from manybody.data import gauge, hamiltonian
from manybody.data.hamiltonian import Hamiltonian
from manybody.io import tables
from manybody.io.sequences import Sequences

FACTORED = ("free", "softmax")  # the kinds of entries that are one layer of factored attention


@dataclass
class PottsRun(training_runs.TrainedRun):
    """A run; each: the final loss of every held-out sequence (N,) where equations give it, or None.

    Of the best recipes only: maps: step -> the map (L, L) that stands for J; values: V (|V|, |V|)
    of the last step, or None.
    """

    maps: dict[int, np.ndarray]
    values: np.ndarray | None = None
    each: np.ndarray | None = None

    @property
    def last_map(self) -> np.ndarray | None:
        return self.maps[max(self.maps)] if self.maps else None


@dataclass
class Candidate:
    """One recipe of an architecture, by seed."""

    model: str
    runs: dict[int, PottsRun]

    @property
    def ends(self) -> np.ndarray:
        return np.array([run.end for run in self.runs.values()])

    @property
    def recipe(self) -> dict:
        return next(iter(self.runs.values())).about["recipe"]

    @property
    def rate(self) -> float:
        """Learning rate; NaN for a fit, which has none."""
        return float(self.recipe.get("learning_rate", math.nan))


@dataclass
class Entry:
    """An architecture, or a value of a, with the recipes that were tried for it; `longer`: one of
    them with more steps, which shows whether the others were enough."""

    label: str
    candidates: list[Candidate]
    a: float = math.nan
    longer: Candidate | None = None

    @cached_property
    def best(self) -> Candidate:
        """The recipe of lowest final held-out loss, averaged over seeds; ties to the first."""
        return min(self.candidates, key=lambda candidate: candidate.ends.mean())

    @property
    def runs(self) -> dict[int, PottsRun]:
        return self.best.runs

    @property
    def each(self) -> np.ndarray | None:
        """Loss of every held-out sequence (N,), averaged over seeds; None if not known of all."""
        known = [run.each for run in self.runs.values()]
        return None if any(each is None for each in known) else np.mean(known, axis=0)

    @property
    def kind(self) -> str:
        """`free` or `softmax` for one layer of factored attention, else the architecture."""
        return models.about(next(iter(self.runs.values())).about["description"]).kind

    @property
    def reading(self) -> tuple[str, str]:
        """Positions and output net of an encoder."""
        description = next(iter(self.runs.values())).about["description"]
        return description.get("positions", "learnt"), description.get("head", "linear")

    @property
    def layers(self) -> int:
        return next(iter(self.runs.values())).about["description"].get("layers", 1)


def of_kind(entries: list[Entry], *kinds: str) -> list[Entry]:
    """Those of some kinds (`Entry.kind`)."""
    return [entry for entry in entries if entry.kind in kinds]


@dataclass
class Data:
    """All that the figure is about. `hamiltonian_about`: what is stored with the Hamiltonian."""

    source: dict
    hamiltonian: Hamiltonian
    hamiltonian_about: dict
    tokens: np.ndarray
    self_test: dict
    optimum: PottsRun
    architectures: list[Entry]
    interpolation: list[Entry]

    @property
    def entries(self) -> list[Entry]:
        return [*self.architectures, *self.interpolation]

    @cached_property
    def frequencies(self) -> np.ndarray:
        return gauge.colour_frequencies(self.tokens, self.hamiltonian.vocabulary)

    def trained_on(self, entry: Entry) -> int:
        """M, sequences that the best recipe was trained on."""
        return entry.best.recipe.get("subset") or self.source["sequences"]["train"]

    def expected_excess(self, sequences: int) -> float:
        """p / (2 M L) of a well-specified fit, p = L (L - 1) + |V| (|V| - 1) - 1."""
        length, vocabulary = self.hamiltonian.length, self.hamiltonian.vocabulary
        parameters = length * (length - 1) + vocabulary * (vocabulary - 1) - 1
        return parameters / (2 * sequences * length)

    def excess(self, entry: Entry) -> np.ndarray:
        """Final excess loss of each seed of the best recipe."""
        return entry.best.ends - self.optimum.end

    def excess_error(self, entry: Entry) -> float:
        """Of the mean excess over seeds: from their spread, if there are several, and from the
        sequences, each paired with the optimum; NaN where neither is known."""
        ends = entry.best.ends
        errors = [self.paired_error(entry, self.optimum.each)]
        if len(ends) > 1:
            errors.append(ends.std(ddof=1) / math.sqrt(len(ends)))
        known = [float(error) for error in errors if math.isfinite(error)]
        return math.hypot(*known) if known else math.nan

    def paired_error(self, entry: Entry, other: np.ndarray | None) -> float:
        """Standard error over sequences of the loss, a mean over seeds, less `other` (N,).

        NaN where the losses of the sequences are not known.
        """
        each = entry.each
        if each is None or other is None or len(each) < 2:
            return math.nan
        return float((each - other).std(ddof=1) / math.sqrt(len(each)))

    def coupling_error(self, found: np.ndarray) -> gauge.CouplingError:
        return gauge.coupling_error(found, self.hamiltonian.couplings)


# --- Reading -------------------------------------------------------------------------------------


def read(files, block: dict, context: dict) -> Data:
    """The runs of a figure's block from the files of its rule.

    files: `models`, the manifests of `context["models"]`, and `maps`, the tables of
    `context["maps"]` (both source, model, seed; a run without maps has no reconstruction error);
    `sequences` and `hamiltonians`, the validation split and the Hamiltonian of the source;
    `equations`, the table of `evaluation.equations`.
    """
    name = block["source"]
    (validation,), (energy,) = files["sequences"], files["hamiltonians"]
    held_out = Sequences.open(validation)
    manifests = dict(zip(map(tuple, context["models"]), files["models"], strict=True))
    mapped = dict(zip(map(tuple, context["maps"]), files["maps"], strict=True))
    losses, _ = tables.read_theory(files["equations"][0])
    each = {key: part["y"].to_numpy() for key, part in losses.groupby(["series", "seed"])}

    def read_run(path, each: np.ndarray | None) -> PottsRun:
        return PottsRun(*training_runs.read(path), {}, each=each)

    def entry(part: dict, label: str, a: float = math.nan) -> Entry:
        def candidate(model: str) -> Candidate:
            runs = {
                seed: read_run(manifests[name, model, seed], each.get((model, seed)))
                for seed in part["seeds"]
            }
            return Candidate(model, runs)

        made = Entry(label, [candidate(model) for model in part["candidates"]], a)
        if "longer" in part:
            made.longer = candidate(part["longer"])
        for seed, run in made.runs.items():
            if (name, made.best.model, seed) in mapped:
                run.maps, run.values = _maps(mapped[name, made.best.model, seed])
        return made

    steps = sorted(block.get("interpolation", []), key=lambda part: part["a"])
    return Data(
        source=context["sources"][name],
        hamiltonian=Hamiltonian.load(energy),
        hamiltonian_about=hamiltonian.read_about(energy),
        tokens=held_out.tokens,
        self_test=held_out.about["self_test"],
        optimum=read_run(manifests[name, block["optimum"], 0], each["", 0]),
        architectures=[entry(part, part["label"]) for part in block["runs"]],
        interpolation=[entry(part, f"a = {part['a']:g}", part["a"]) for part in steps],
    )


def _maps(path) -> tuple[dict[int, np.ndarray], np.ndarray | None]:
    """The map of each step, and V of the last: A of one layer, or averaged attention.

    Of two layers or more it is layer 0, the mean of the last two maps.
    """
    table, _ = tables.read_maps(path)
    table = table.sort_values(["step", "name", "layer", "row", "column"], kind="stable")
    found, values = {}, None
    for (step, name), part in table.groupby(["step", "name"], sort=True):
        layer = part["layer"].min()
        if name == "V":
            values = _matrix(part[part["layer"] == layer])
        elif layer == 0 or part["layer"].nunique() == 1:
            found[int(step)] = _matrix(part[part["layer"] == layer])
    return found, values


def _matrix(part: pd.DataFrame) -> np.ndarray:
    return part["value"].to_numpy().reshape(part["row"].max() + 1, part["column"].max() + 1)
