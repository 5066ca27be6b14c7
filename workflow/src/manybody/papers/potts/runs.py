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
from manybody.papers import claims as records
from manybody.papers import readings
from manybody.papers.readings import mean
from manybody.papers.saturation import SATURATION, saturation
from manybody.papers.style import points

FIRST = ("learnt", "linear")  # the reading of an encoder that needs no words
ENOUGH = 2e-3  # nats per token, by which more steps may lower the end
FACTORED = ("free", "softmax")  # the kinds of entries that are one layer of factored attention


@dataclass
class PottsRun(readings.TrainedRun):
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

    def same_recipe(self, other: Candidate) -> bool:
        """True where another recipe differs from the best in nothing but its length."""
        one, two, length = self.best.recipe, other.recipe, ("steps", "checkpoints", "validation")
        return all(one.get(key) == two.get(key) for key in {*one, *two} if key not in length)

    def of_last_maps(self, number) -> pd.Series:
        """A number of every seed's last map, by seed."""
        known = {seed: run.last_map for seed, run in self.runs.items()}
        return pd.Series(
            {seed: number(last) for seed, last in known.items() if last is not None}, dtype=float
        )

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
    """The source as in the config, its Hamiltonian and held-out sequences, and all runs on it."""

    source: dict
    hamiltonian: Hamiltonian
    tokens: np.ndarray
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
        """Error of the mean excess over seeds: from their spread, if there are several, and from
        the sequences, each paired with the optimum; NaN where neither is known."""
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
        """Errors of a map (L, L) against J, in its gauge."""
        return gauge.coupling_error(found, self.hamiltonian.couplings)

    def error_curve(self, run: PottsRun) -> pd.Series:
        """The relative error of J by epoch, at the steps whose maps were kept."""
        epochs = dict(zip(run.curve["step"], run.curve["epoch"], strict=True))
        found = {
            epochs[step]: self.coupling_error(matrix).error
            for step, matrix in sorted(run.maps.items())
            if step in epochs
        }
        return pd.Series(found, dtype=float)

    def value_error(self, run: PottsRun) -> float:
        """The error of V against beta U, colours weighted by their frequency; NaN without V."""
        # U of the Hamiltonian is -1/2 of that of the paper's H, so that beta U is this.
        truth = -2 * self.hamiltonian.beta * self.hamiltonian.colours
        if run.values is None or run.values.shape != truth.shape or run.last_map is None:
            return math.nan
        scale = self.coupling_error(run.last_map).scale
        return gauge.value_error(run.values, truth, self.frequencies, scale)


def numbers(data: Data) -> list[pd.DataFrame]:
    """Every recipe that was tried, and errors of the last maps, as panels of their own."""
    found = []
    for entry in data.entries:
        for candidate in entry.candidates:
            ends = candidate.ends - data.optimum.end
            spread = ends.std(ddof=1) if len(ends) > 1 else math.nan
            series = f"{entry.label}: {candidate.model}"
            found.append(
                points("candidates", series, "mean", [candidate.rate], [ends.mean()], spread)
            )
        known = {
            "pearson": entry.of_last_maps(lambda last: data.coupling_error(last).pearson),
            "mean square": entry.of_last_maps(lambda last: data.coupling_error(last).mean_square),
            "values": pd.Series({s: data.value_error(run) for s, run in entry.runs.items()}),
        }
        for panel, ends in known.items():
            ends = ends[np.isfinite(ends)]
            found.append(points(panel, entry.label, ends.index, [math.nan] * len(ends), ends))
    return found


def encoders_above(data: Data) -> list[records.Comparison]:
    """Encoders less the best factored attention; fewer layers less more within one reading."""
    encoders = sorted(
        of_kind(data.architectures, "encoder"), key=lambda entry: (entry.reading, entry.layers)
    )
    factored = of_kind(data.architectures, *FACTORED)
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


def _difference(label: str, lower: Entry, upper: Entry) -> records.Comparison:
    """Final losses, upper less lower, over the seeds that both have, which one does not decide."""
    common = [seed for seed in lower.runs if seed in upper.runs]
    differences = np.array([upper.runs[seed].end - lower.runs[seed].end for seed in common])
    if not np.isfinite(differences).all():
        return records.Comparison(label, math.nan, unusable="a run diverged")
    return _above_zero(label, differences, 0.0)


def _above_zero(label: str, differences: np.ndarray, resolution: float) -> records.Comparison:
    """Mean over seeds above zero; `resolution`: an error that it has besides."""
    if not len(differences):
        return records.Comparison(label, math.nan, unusable="no seed in common")
    value, error, count = mean(differences)
    error = math.hypot(error, resolution)
    return records.above(label, value, error, runs=count, deviations=records.STRICT)


def faster(data: Data) -> list[records.Comparison]:
    """Epochs in which encoders make their drop of the loss, less those of factored attention."""
    found, share = [], SATURATION[0]
    for encoder in of_kind(data.architectures, "encoder"):
        for entry in of_kind(data.architectures, *FACTORED):
            label = f"epochs with {share:.0%} of the drop left, {encoder.label} less {entry.label}"
            common = [seed for seed in entry.runs if seed in encoder.runs]
            times = [
                [saturation(run.curve["epoch"], run.curve["loss"], share) for run in pair]
                for pair in ((encoder.runs[seed], entry.runs[seed]) for seed in common)
            ]
            if not common or np.isnan(times).any():
                reason = "no such curves of one seed"
                found.append(records.Comparison(label, math.nan, unusable=reason))
                continue
            ends, widths = np.moveaxis(np.array(times), 2, 0)  # (seeds, 2) each
            # A time known to lie in an interval of width w has the sd w / sqrt(12).
            resolution = math.sqrt((widths**2).sum(axis=1).mean() / 12)
            found.append(_above_zero(label, ends[:, 0] - ends[:, 1], resolution))
    return found


def along_interpolation(data: Data) -> list[records.Comparison]:
    """Each value of a less the one before, and the lowest other than 0 less a = 0."""
    entries = data.interpolation
    found = [
        _difference(f"{high.label} less {low.label}", low, high) for low, high in pairwise(entries)
    ]
    if len(entries) > 1 and entries[0].a == 0:
        nearest = min(entries[1:], key=lambda entry: entry.best.ends.mean())
        found.append(
            _difference(f"a = 0 against the nearest, {nearest.label}", entries[0], nearest)
        )
    return found


def searched(data: Data) -> list[records.Comparison]:
    """The best learning rate of each architecture against the ends of the range that was tried."""
    found = []
    for entry in data.entries:
        name = entry.best.recipe["optimizer"]["name"]
        rates = {one.rate for one in entry.candidates if one.recipe["optimizer"]["name"] == name}
        if len(rates) > 1:
            label = f"{entry.label}: best rate of {len(rates)}"
            # The outermost rates themselves lie outside.
            region = math.nextafter(min(rates), math.inf), math.nextafter(max(rates), -math.inf)
            found.append(records.Comparison(label, entry.best.rate, 0.0, region))
    return found


def longer(data: Data) -> list[records.Comparison]:
    """Drops of the loss by more steps: a cosine is flat at its end, arrived or not."""
    found = []
    for entry in data.architectures:
        if entry.longer is not None and entry.same_recipe(entry.longer):
            drop = mean(entry.best.ends - entry.longer.ends)
            label = f"{entry.label}: drop of the loss by {entry.longer.recipe['steps']} steps"
            found.append(records.below(label, *drop[:2], ENOUGH, runs=drop.runs))
    return found


def read_maps(path) -> tuple[dict[int, np.ndarray], np.ndarray | None]:
    """Reads the map of each step, and V of the last: A of one layer, or averaged attention.

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
