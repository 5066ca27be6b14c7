"""Architectures on samples of a Potts model: runs, recipes, couplings, and how they compare."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd

from manybody import models
from manybody.data import gauge
from manybody.data.hamiltonian import Hamiltonian
from manybody.io import tables
from manybody.papers import claims as records, readings
from manybody.papers.claims import Comparison
from manybody.papers.readings import mean
from manybody.papers.saturation import SATURATION, saturation
from manybody.papers.style import points

FIRST = ("learnt", "linear")  # the reading of an encoder that needs no words
FACTORED = ("free", "softmax")  # the kinds of entries that are one layer of factored attention


@dataclass
class PottsRun(readings.TrainedRun):
    """A run. maps: of the best recipes only, step -> the map (L, L) that stands for J. each: the
    final loss of every held-out sequence (N,) where equations give it, or None."""

    maps: dict[int, np.ndarray]
    each: np.ndarray | None = None

    @property
    def last_map(self) -> np.ndarray:
        return self.maps[max(self.maps)]


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


@dataclass
class Entry:
    """An architecture, or a value of a, with the recipes that were tried for it."""

    label: str
    candidates: list[Candidate]
    a: float = math.nan

    @cached_property
    def best(self) -> Candidate:
        """The recipe of lowest final held-out loss, averaged over seeds; ties to the first."""
        return min(self.candidates, key=lambda candidate: candidate.ends.mean())

    @property
    def runs(self) -> dict[int, PottsRun]:
        return self.best.runs

    @property
    def description(self) -> dict:
        return next(iter(self.runs.values())).about["description"]

    @property
    def kind(self) -> str:
        """`free` or `softmax` for one layer of factored attention, else the architecture."""
        return models.about(self.description).kind

    @property
    def reading(self) -> tuple[str, str]:
        """Positions and output net of an encoder."""
        return self.description.get("positions", "learnt"), self.description.get("head", "linear")

    @property
    def layers(self) -> int:
        return self.description.get("layers", 1)


@dataclass
class Data:
    """The source as in the config, its Hamiltonian, the share of held-out sequences that are
    training sequences, too, and all runs on it."""

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

    def excess(self, entry: Entry) -> np.ndarray:
        """Final excess loss of each seed of the best recipe."""
        return entry.best.ends - self.optimum.end

    def excess_error(self, entry: Entry) -> float:
        """Error of the mean excess over seeds: from their spread, if there are several, and from
        the sequences, each paired with the optimum; NaN where neither is known."""
        samples = [entry.best.ends]
        losses = [run.each for run in entry.runs.values()]
        if all(each is not None for each in losses):
            samples.insert(0, np.mean(losses, axis=0) - self.optimum.each)
        errors = [mean(sample).error for sample in samples]
        known = [float(error) for error in errors if math.isfinite(error)]
        return math.hypot(*known) if known else math.nan

    def coupling_error(self, found: np.ndarray) -> gauge.CouplingError:
        """Errors of a map (L, L) against J, in its gauge."""
        return gauge.coupling_error(found, self.hamiltonian.couplings)

    def error_curve(self, run: PottsRun) -> pd.Series:
        """The relative error of J by epoch, at the steps whose maps were kept."""
        epochs = run.curve.set_index("step")["epoch"]
        steps = [step for step in sorted(run.maps) if step in epochs]
        errors = [self.coupling_error(run.maps[step]).error for step in steps]
        return pd.Series(errors, index=epochs[steps].to_numpy(), dtype=float)


def numbers(data: Data) -> list[pd.DataFrame]:
    """Every recipe that was tried, and errors of the last maps, as panels of their own."""
    found = []
    for entry in data.entries:
        for candidate in entry.candidates:
            ends = candidate.ends - data.optimum.end
            spread = ends.std(ddof=1) if len(ends) > 1 else math.nan
            rate = candidate.recipe.get("learning_rate", math.nan)  # a fit has none
            series = f"{entry.label}: {candidate.model}"
            found.append(points("candidates", series, "mean", [rate], [ends.mean()], spread))
        mapped = {seed: run.last_map for seed, run in entry.runs.items() if run.maps}
        errors = {seed: data.coupling_error(matrix) for seed, matrix in mapped.items()}
        for panel, name in (("c end", "error"), ("pearson", "pearson")):
            ends = pd.Series({seed: getattr(errors[seed], name) for seed in errors}, dtype=float)
            ends = ends.dropna()
            found.append(points(panel, entry.label, ends.index, [math.nan] * len(ends), ends))
    return found


def above_zero(label: str, differences: np.ndarray, resolution: float = 0.0) -> Comparison:
    """A mean over seeds above zero by three standard errors; `resolution`: an error that it has
    besides."""
    value, error, count = mean(differences)
    if not count:
        return Comparison(label, math.nan, unusable="no seed in common")
    error = math.hypot(error, resolution)
    return records.above(label, value, error, runs=count, deviations=records.STRICT)


def _difference(label: str, lower: Entry, upper: Entry) -> Comparison:
    """Final losses, upper less lower, over the seeds that both have, which one does not decide."""
    common = [seed for seed in lower.runs if seed in upper.runs]
    differences = np.array([upper.runs[seed].end - lower.runs[seed].end for seed in common])
    if not np.isfinite(differences).all():
        return Comparison(label, math.nan, unusable="a run diverged")
    return above_zero(label, differences)


def encoders_above(data: Data) -> list[Comparison]:
    """Encoders less the best factored attention; fewer layers less more within one reading."""
    encoders = sorted(data.of_kind("encoder"), key=lambda entry: (entry.reading, entry.layers))
    factored = data.of_kind(*FACTORED)
    best = min(factored, key=lambda entry: data.excess(entry).mean(), default=None)
    pairs = [(best, entry) for entry in encoders if best is not None]
    pairs += [(many, few) for few, many in pairwise(encoders) if few.reading == many.reading]
    return [
        _difference(f"{_encoder(upper)} less {lower.label}", lower, upper) for lower, upper in pairs
    ]


def _encoder(entry: Entry) -> str:
    positions, head = entry.reading
    words = f" ({positions} positions, {head} head)" if entry.reading != FIRST else ""
    return f"encoder of {entry.layers} layer{'s' if entry.layers > 1 else ''}{words}"


def faster(data: Data) -> list[Comparison]:
    """Epochs in which encoders make their drop of the loss, less those of factored attention."""
    found, share = [], SATURATION[0]
    pairs = [(one, two) for one in data.of_kind("encoder") for two in data.of_kind(*FACTORED)]
    for encoder, entry in pairs:
        label = f"epochs with {share:.0%} of the drop left, {encoder.label} less {entry.label}"
        curves = [
            [run.curve for run in (encoder.runs[seed], entry.runs[seed])]
            for seed in entry.runs
            if seed in encoder.runs
        ]
        times = np.array(
            [
                [saturation(curve["epoch"], curve["loss"], share) for curve in pair]
                for pair in curves
            ]
        )
        if not len(times) or np.isnan(times).any():
            found.append(Comparison(label, math.nan, unusable="no such curves of one seed"))
            continue
        ends, widths = np.moveaxis(times, 2, 0)  # (seeds, 2) each
        # A time known to lie in an interval of width w has the sd w / sqrt(12).
        resolution = math.sqrt((widths**2).sum(axis=1).mean() / 12)
        found.append(above_zero(label, ends[:, 0] - ends[:, 1], resolution))
    return found


def along_interpolation(data: Data) -> list[Comparison]:
    """Each value of a less the one before, and the lowest other than 0 less a = 0."""
    entries = data.interpolation
    pairs = {f"{high.label} less {low.label}": (low, high) for low, high in pairwise(entries)}
    if len(entries) > 1 and entries[0].a == 0:
        nearest = min(entries[1:], key=lambda entry: entry.best.ends.mean())
        pairs[f"a = 0 against the nearest, {nearest.label}"] = entries[0], nearest
    return [_difference(label, *pair) for label, pair in pairs.items()]


def read(inputs, block) -> Data:
    """The runs that the block of a figure names, of the files of its inputs."""
    from manybody.io import sequences

    manifests = {(run.model, run.seed): run.file() for run in inputs.models}
    mapped = {(run.model, run.seed): run.file() for run in inputs.maps}
    losses, _ = tables.THEORY.read(inputs.equations.file())
    each = {key: part["y"].to_numpy() for key, part in losses.groupby(["series", "seed"])}

    def run(model: str, seed: int, named: str) -> PottsRun:
        found = readings.read_run(manifests[model, seed])
        return PottsRun(*found, {}, each=each.get((named, seed)))

    def candidate(model: str, seeds: list[int]) -> Candidate:
        return Candidate(model, {seed: run(model, seed, model) for seed in seeds})

    def entry(part, label: str, a: float = math.nan) -> Entry:
        made = Entry(label, [candidate(model, part.seeds) for model in part.candidates], a)
        for seed, found in made.runs.items():
            if (made.best.model, seed) in mapped:
                found.maps = read_maps(mapped[made.best.model, seed])
        return made

    steps = sorted(block.interpolation, key=lambda part: part.a)
    return Data(
        source=inputs.source,
        hamiltonian=Hamiltonian.load(inputs.hamiltonian.file()),
        repeated=sequences.Sequences.open(inputs.sequences.file()).about["repeated"],
        optimum=run(block.optimum, 0, ""),
        architectures=[entry(part, part.label) for part in block.runs],
        interpolation=[entry(part, f"a = {part.a:g}", part.a) for part in steps],
    )


def read_maps(path) -> dict[int, np.ndarray]:
    """Reads the map of each step: A of one layer, or averaged attention.

    Of two layers or more it is layer 0, the mean of the last two maps.
    """
    frame, _ = tables.MAPS.read(path)
    found = {}
    for step, part in frame[frame["name"] != "V"].groupby("step", sort=True):
        layers = sorted(part["layer"].unique())
        if layers[0] == 0 or len(layers) == 1:
            first = part[part["layer"] == layers[0]]
            matrix = first.pivot(index="row", columns="column", values="value")
            found[int(step)] = matrix.to_numpy()
    return found
