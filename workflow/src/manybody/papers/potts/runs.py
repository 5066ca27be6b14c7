"""Architectures on samples of a Potts model: runs, recipes, couplings, and how they compare."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np
import pandas as pd

from manybody import models
from manybody.data.gauge import CouplingError, coupling_error
from manybody.data.hamiltonian import Hamiltonian
from manybody.io import tables
from manybody.measure import intervals, saturation
from manybody.papers import claims as records, readings, style

FIRST = ("learnt", "linear")  # the reading of an encoder that needs no words
FACTORED = ("free", "softmax")  # the kinds of entries that are one layer of factored attention


@dataclass
class PottsRun(readings.TrainedRun):
    """A run. each: the final loss of every held-out sequence (N,), NaN where no equation gives it.
    map_file: of its maps, if they are asked for."""

    each: np.ndarray
    map_file: str | None = None

    @cached_property
    def maps(self) -> dict[int, np.ndarray]:
        """step -> the map (L, L) that stands for J: A of one layer, or averaged attention: of two
        layers or more it is layer 0, the mean of the last two maps."""
        if not self.map_file:
            return {}
        frame, _ = tables.MAPS.read(self.map_file)
        frame = frame[frame["name"] != "V"]
        layers = sorted(frame["layer"].unique())
        if layers[0] > 0 and len(layers) > 1:
            return {}
        return {
            int(step): part.pivot(index="row", columns="column", values="value").to_numpy()
            for step, part in frame[frame["layer"] == layers[0]].groupby("step")
        }

    @property
    def last_map(self) -> np.ndarray:
        return self.maps[max(self.maps)]


Runs = dict[int, PottsRun]  # of one recipe, by seed


def ends(runs: Runs) -> np.ndarray:
    return np.array([run.end for run in runs.values()])


@dataclass
class Entry:
    """An architecture, or a value of a, with the runs of each recipe that was tried, by model."""

    label: str
    tried: dict[str, Runs]
    a: float = math.nan

    @cached_property
    def runs(self) -> Runs:
        """Those of the recipe of lowest mean of final held-out losses; ties to the first."""
        return min(self.tried.values(), key=lambda runs: ends(runs).mean())

    @property
    def about(self) -> dict:
        return next(iter(self.runs.values())).about

    @property
    def kind(self) -> str:
        """`free` or `softmax` for one layer of factored attention, else the architecture."""
        return models.about(self.about["description"]).kind

    @property
    def reading(self) -> tuple[str, str]:
        """Positions and output net of an encoder."""
        described = self.about["description"]
        return described.get("positions", "learnt"), described.get("head", "linear")

    @property
    def layers(self) -> int:
        return self.about["description"].get("layers", 1)


@dataclass
class Data:
    """The source as in the config, the share of its held-out sequences that are training sequences,
    too, and all runs on it."""

    source: dict
    hamiltonian: Hamiltonian
    repeated: float
    optimum: PottsRun
    architectures: list[Entry]
    interpolation: list[Entry]

    @property
    def entries(self) -> list[Entry]:
        return [*self.architectures, *self.interpolation]

    def of_kind(self, *kinds: str) -> list[Entry]:
        """The architectures of some kinds (`Entry.kind`)."""
        return [entry for entry in self.architectures if entry.kind in kinds]

    def coupling_error(self, found: np.ndarray) -> CouplingError:
        """Errors of a map (L, L) against J, in its gauge."""
        return coupling_error(found, self.hamiltonian.couplings)

    def excess_error(self, entry: Entry) -> float:
        """Error of the mean excess over seeds: from their spread, if there are several, and from
        the sequences, each paired with the optimum; NaN where neither is known."""
        paired = np.mean([run.each for run in entry.runs.values()], axis=0) - self.optimum.each
        errors = [intervals.mean(sample).error for sample in (paired, ends(entry.runs))]
        known = [float(error) for error in errors if math.isfinite(error)]
        return math.hypot(*known) if known else math.nan


def numbers(data: Data) -> Iterator[pd.DataFrame]:
    """Every recipe that was tried, and errors of the last maps, as panels of their own."""
    for entry in data.entries:
        for model, runs in entry.tried.items():
            excess = ends(runs) - data.optimum.end
            spread = excess.std(ddof=1) if len(excess) > 1 else math.nan
            # a fit has no rate
            rate = next(iter(runs.values())).about["recipe"].get("learning_rate", math.nan)
            given = rate, excess.mean(), spread
            yield style.points("candidates", f"{entry.label}: {model}", "mean", *given)
        mapped = {seed: run.last_map for seed, run in entry.runs.items() if run.maps}
        errors = [data.coupling_error(found) for found in mapped.values()]
        errors = pd.DataFrame(errors, list(mapped), CouplingError._fields)
        for panel, name in (("c end", "error"), ("pearson", "pearson")):
            last = errors[name].dropna()
            yield style.points(panel, entry.label, last.index, [math.nan] * len(last), last)


def _difference(label: str, lower: Entry, upper: Entry) -> records.Comparison:
    """Final losses, upper less lower, over the seeds that both have."""
    differences = [
        upper.runs[seed].end - run.end for seed, run in lower.runs.items() if seed in upper.runs
    ]
    return records.over_seeds(label, differences, deviations=records.STRICT)


def encoders_above(data: Data) -> list[records.Comparison]:
    """Encoders less the best factored attention; fewer layers less more within one reading."""
    encoders = sorted(data.of_kind("encoder"), key=lambda entry: (entry.reading, entry.layers))
    best = min(data.of_kind(*FACTORED), key=lambda entry: ends(entry.runs).mean(), default=None)
    pairs = [(best, entry) for entry in encoders if best is not None]
    pairs += [(many, few) for few, many in pairwise(encoders) if few.reading == many.reading]
    return [
        _difference(f"{_encoder(upper)} less {lower.label}", lower, upper) for lower, upper in pairs
    ]


def _encoder(entry: Entry) -> str:
    positions, head = entry.reading
    words = f" ({positions} positions, {head} head)" if entry.reading != FIRST else ""
    return f"encoder of {records.counted(entry.layers, 'layer')}{words}"


def faster(data: Data) -> Iterator[records.Comparison]:
    """Epochs in which encoders make their drop of the loss, less those of factored attention."""
    share = saturation.SATURATION[0]
    for encoder, entry in product(data.of_kind("encoder"), data.of_kind(*FACTORED)):
        epochs, resolution = saturation.later(_times(entry), _times(encoder))
        label = f"epochs with {share:.0%} of the drop left, {encoder.label} less {entry.label}"
        rule = dict(resolution=resolution, deviations=records.STRICT)
        yield records.over_seeds(label, epochs, **rule)


def _times(entry: Entry) -> pd.DataFrame:
    curves = ((seed, run.curve) for seed, run in entry.runs.items())
    return saturation.saturations(curves, saturation.SATURATION[0], "epoch")


def along_interpolation(data: Data) -> list[records.Comparison]:
    """Each value of a less the one before, and the lowest other than 0 less a = 0."""
    entries = data.interpolation
    pairs = {f"{high.label} less {low.label}": (low, high) for low, high in pairwise(entries)}
    if len(entries) > 1 and entries[0].a == 0:
        nearest = min(entries[1:], key=lambda entry: ends(entry.runs).mean())
        pairs[f"a = 0 against the nearest, {nearest.label}"] = entries[0], nearest
    return [_difference(label, *pair) for label, pair in pairs.items()]


def read(inputs, block) -> Data:
    from manybody.io import sequences

    manifests = {(run.model, run.seed): run.file() for run in inputs.models}
    mapped = {(run.model, run.seed): run.file() for run in inputs.maps}
    losses, _ = tables.THEORY.read(inputs.equations.file())
    each = {key: part["y"].to_numpy() for key, part in losses.groupby(["series", "seed"])}
    optimum = each["", 0]

    def run(model: str, seed: int) -> PottsRun:
        own = each.get((model, seed), np.full_like(optimum, math.nan))
        return PottsRun(*readings.read_run(manifests[model, seed]), own, mapped.get((model, seed)))

    def entry(part, label: str, a: float = math.nan) -> Entry:
        tried = {
            model: {seed: run(model, seed) for seed in part.seeds} for model in part.candidates
        }
        return Entry(label, tried, a)

    steps = sorted(block.interpolation, key=lambda part: part.a)
    return Data(
        source=inputs.source,
        hamiltonian=Hamiltonian.load(inputs.hamiltonian.file()),
        repeated=sequences.Sequences.open(inputs.sequences.file()).about["repeated"],
        optimum=PottsRun(*readings.read_run(manifests[block.optimum, 0]), optimum),
        architectures=[entry(part, part.label) for part in block.runs],
        interpolation=[entry(part, f"a = {part.a:g}", part.a) for part in steps],
    )
