"""What figure 2 says: the rows of potts, section 6, that are about it.

Exact rows are identities. Statistical rows are about the samples, and, at the default setting of
the specification, about how well factored attention does: these are gates. How encoders and the
interpolation compare is a claim of the paper, decided over seeds by Student's t. A gate that does
not apply to the source, or that runs of its size cannot confirm, is not there.
"""

import math
from itertools import pairwise

import numpy as np
import pandas as pd

from manybody.claims import verdicts
from manybody.claims.potts import fig2_runs, setting
from manybody.claims.potts.fig2_runs import FACTORED, Data, Entry, of_kind
from manybody.claims.reading import mean
from manybody.claims.saturation import SATURATION, saturation
from manybody.io import tables

MEASURED_BETA, BETA_TOLERANCE = 1.707, 0.005  # of the default setting
BETA_SLOPE = 1.8  # by which the Hamming distance falls per unit of beta
DEFAULT_HAMMING = 0.3

FIRST = ("learnt", "linear")  # the reading of an encoder that needs no words
SIZES = (setting.M / 3, 3 * setting.M)  # between which bounds scale as 1 / M
EXCESS = (0.004, 0.009)  # nats per token
# sd over sequences of a loss less the optimum, for each root of nats of its mean
SEQUENCE_SPREAD = 0.45
# Over samples of M sequences: bound, value and sd of err_J, then of r; measured at M = 3000.
ERRORS = {"free": (0.06, 0.0546, 4.2e-3), "softmax": (0.03, 0.0186, 1.5e-3)}
CORRELATIONS = {"free": (0.96, 0.9666, 2.7e-3), "softmax": (0.985, 0.989, 9e-4)}
HAMMING = 0.005
ENOUGH = 2e-3  # nats per token, by which more steps may lower the end
IDENTITY = 1e-12
IDENTITIES = {
    "conditional": "conditionals (5) against ratios of full Boltzmann weights",
    "masked loss": "masked loss minus pseudo-likelihood",
    "gauge": "change of the masked loss in its gauge",
}


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from the files of the figure's rule."""
    data, figure = fig2_runs.read(files, block, context), "potts fig. 2"
    exact = [tables.read_theory(path)[0] for path in files["theory"]]
    return verdicts.table(
        [
            *(claim for theory in exact for claim in exact_claims(theory, figure)),
            *sample_claims(data, figure),
            *same_claims(data, figure),
            *factored_claims(data, figure),
            *search_claims(data, figure),
            *longer_claims(data, figure),
            *vanilla_claims(data, figure),
            *faster_claims(data, figure),
            *interpolation_claims(data, figure),
        ]
    )


def departure(data: Data) -> str:
    """Why the data are not the specification's default setting; empty if they are."""
    return setting.departure(data.source, data.hamiltonian.beta)


# --- Identities ----------------------------------------------------------------------------------


def exact_claims(theory: pd.DataFrame, figure: str) -> list[dict]:
    """The identities in a table of `claims.identities.potts`."""
    rows = []
    for quantity, words in IDENTITIES.items():
        claim, found = f"{figure}: {words}", theory[theory["quantity"] == quantity]
        if not len(found):
            rows.append(verdicts.failed(claim, "exact", "no such row in `exact`", 0, IDENTITY))
        for series, value in zip(found["series"], found["y"], strict=True):
            rows.append(verdicts.identity(f"{claim}, {series}", value, 0.0, IDENTITY))
    return rows


def same_claims(data: Data, figure: str) -> list[dict]:
    """All losses are on the same tokens, and those that equations give are what models report."""
    claim = f"{figure}: all models are tested on equally many held-out tokens as the optimum"
    counts = {
        int(run.curve["tokens"].iloc[-1])
        for entry in data.entries
        for candidate in entry.candidates
        for run in candidate.runs.values()
    }
    expected = int(data.optimum.curve["tokens"].iloc[-1])
    same = counts == {expected}
    odd = next(iter(sorted(counts - {expected})), expected)
    rows = [verdicts.row(claim, "exact", "yes" if same else "no", odd, 0.0, expected, 0.0)]
    claim = f"{figure}: losses of the models are those of their equations (largest difference)"
    runs = [run for entry in data.entries for run in entry.runs.values()]
    apart = [
        run.each.mean() - run.end for run in [data.optimum, *runs] if run.each is not None and same
    ]
    if apart:
        rows.append(verdicts.identity(claim, max(apart, key=abs), 0.0, verdicts.SAME))
    else:
        rows.append(verdicts.failed(claim, "exact", "not on the same tokens", 0, verdicts.SAME))
    return rows


# --- Samples -------------------------------------------------------------------------------------


def sample_claims(data: Data, figure: str) -> list[dict]:
    """The samples are in equilibrium, at the temperature that was asked for."""
    found, asked = data.hamiltonian_about["equilibrium"], data.source["temperature"].get("hamming")
    rows = []
    starts = {"hot": "uniform (hot)", "cold": "ordered (cold)"}
    for start, words in starts.items() if asked is not None else ():
        claim = f"{figure}: mean Hamming distance of {found['chains']} chains from {words} starts"
        value, error = found[start], found[f"{start}_se"]
        rows.append(verdicts.within(claim, value, error, asked, HAMMING, "statistical"))
    claim = f"{figure}: hot minus cold Hamming distance"
    error = math.hypot(found["hot_se"], found["cold_se"])
    difference = found["hot"] - found["cold"]
    rows.append(verdicts.within(claim, difference, error, 0.0, HAMMING, "statistical"))
    if asked == DEFAULT_HAMMING and not departure(data):
        claim = f"{figure}: beta of Hamming distance {DEFAULT_HAMMING} at the default setting"
        error = error / 2 / BETA_SLOPE  # of the mean of hot and cold, as a beta
        beta = data.hamiltonian.beta, error
        rows.append(verdicts.within(claim, *beta, MEASURED_BETA, BETA_TOLERANCE, "statistical"))
    test = data.self_test
    claim = f"{figure}: the optimum is the sampler's own cross-entropy"
    return [
        *rows,
        verdicts.self_test(figure, test, data.tokens.size),
        verdicts.identity(claim, data.optimum.end, test["cross_entropy"], verdicts.SAME),
    ]


# --- Factored attention --------------------------------------------------------------------------


def factored_claims(data: Data, figure: str) -> list[dict]:
    """Factored attention reaches the optimum and finds J, as well as M sequences allow."""
    if departure(data):
        return []
    return [
        row
        for entry in of_kind(data.architectures, *FACTORED)
        for row in _factored(data, entry, figure)
    ]


def _factored(data: Data, entry: Entry, figure: str) -> list[dict]:
    size = data.trained_on(entry)
    if not SIZES[0] <= size <= SIZES[1]:
        return []
    rows, scale = [], setting.M / size
    low, high = (scale * bound for bound in EXCESS)
    expected, reach = data.expected_excess(size), (high - low) / 2
    predicted = SEQUENCE_SPREAD * math.sqrt(expected / len(data.tokens))
    if verdicts.margin(predicted) < reach:
        claim = (
            f"{figure}: {entry.label}: excess over the optimum is {low:.2g} to {high:.2g}, "
            f"M = {size} (p/(2ML) = {expected:.2g})"
        )
        given = (data.excess(entry).mean(), data.paired_error(entry, data.optimum.each))
        rows.append(verdicts.within(claim, *given, (low + high) / 2, reach, "statistical"))
    maps = [run.last_map for run in entry.runs.values()]
    found = [data.coupling_error(matrix) for matrix in maps if matrix is not None]
    # Seeds share their sequences, so that the spread over samples is not seen, but known.
    bound, measured, spread = (scale * number for number in ERRORS[entry.kind])
    if measured + verdicts.margin(spread) < bound:
        claim = f"{figure}: {entry.label}: error of J < {bound:g}, M = {size} (worst seed)"
        worst = max((each.error for each in found), default=math.nan)
        rows.append(verdicts.bounded(claim, "<", worst, spread, bound, "statistical"))
    # r of a map with error e is about sqrt(1 - e), so 1 - r goes like 1/M as well.
    bound, measured, spread = CORRELATIONS[entry.kind]
    bound, measured, spread = 1 - scale * (1 - bound), 1 - scale * (1 - measured), scale * spread
    if measured - verdicts.margin(spread) > bound:
        claim = (
            f"{figure}: {entry.label}: Pearson r of the map and J > {bound:g}, M = {size} "
            "(worst seed)"
        )
        worst = min((each.pearson for each in found), default=math.nan)
        rows.append(verdicts.bounded(claim, ">", worst, spread, bound, "statistical"))
    return rows


# --- Searches and convergence --------------------------------------------------------------------


def search_claims(data: Data, figure: str) -> list[dict]:
    """How each recipe was found: the best of several rates, which is none of the outermost."""
    rows = []
    for entry in data.entries:
        mine = entry.best.recipe["optimizer"]["name"]
        rates = sorted(
            {
                candidate.rate
                for candidate in entry.candidates
                if candidate.recipe["optimizer"]["name"] == mine
            }
        )
        if len(rates) < 2:
            continue  # nothing was searched
        claim = (
            f"{figure}: {entry.label}: best of {len(entry.candidates)} rates, "
            f"{entry.best.model}, is not at the end of the range"
        )
        inside = rates[0] < entry.best.rate < rates[-1]
        span = f"{rates[0]:g} to {rates[-1]:g}"
        holds = "yes" if inside else "no"
        rows.append(verdicts.row(claim, "paper", holds, entry.best.rate, expected=span))
    return rows


def longer_claims(data: Data, figure: str) -> list[dict]:
    """More steps do not help: a cosine is flat at its end whether or not it has arrived."""
    rows = []
    for entry in data.architectures:
        if entry.longer is None:
            continue
        factor = entry.longer.recipe["steps"] / entry.best.recipe["steps"]
        claim = (
            f"{figure}: {entry.label}: {factor:g} x the steps ({entry.longer.model}) lower the "
            f"held-out loss of {entry.best.model} by less than {ENOUGH:g}"
        )
        if not _same_but_steps(entry.longer.recipe, entry.best.recipe):
            reason = "the longer run is of another recipe than the best"
            rows.append(verdicts.not_run(claim, reason))
            continue
        drops = entry.best.ends - entry.longer.ends
        rows.append(verdicts.bounded(claim, "<", *mean(drops)[:2], ENOUGH, "paper", len(drops)))
    return rows


def _same_but_steps(one: dict, other: dict) -> bool:
    length = ("steps", "checkpoints", "validation")
    return all(one.get(key) == other.get(key) for key in {*one, *other} if key not in length)


# --- Encoders and the interpolation --------------------------------------------------------------


def vanilla_claims(data: Data, figure: str) -> list[dict]:
    """Factored attention is below the encoder of three layers, and that below one of one layer;
    depths are compared within one reading of the encoder."""
    encoders = sorted(
        of_kind(data.architectures, "encoder"), key=lambda entry: (entry.reading, entry.layers)
    )
    best = min(
        of_kind(data.architectures, *FACTORED),
        key=lambda entry: data.excess(entry).mean(),
        default=None,
    )
    rows = []
    for entry in encoders if best is not None else []:
        claim = f"{figure}: excess of the {_encoder(entry)} above {best.label}"
        rows.append(_difference(claim, best, entry))
    pairs = [(few, many) for few, many in pairwise(encoders) if few.reading == many.reading]
    for few, many in pairs:
        claim = f"{figure}: excess of the {_encoder(few)} above that of {_layers(many.layers)}"
        rows.append(_difference(claim, many, few))
    return rows


def _encoder(entry: Entry) -> str:
    positions, head = entry.reading
    words = f" ({positions} positions, {head} head)" if entry.reading != FIRST else ""
    return f"encoder of {_layers(entry.layers)}{words}"


def _layers(count: int) -> str:
    return f"{count} layer{'s' if count > 1 else ''}"


def _difference(claim: str, lower: Entry, upper: Entry) -> dict:
    """upper minus lower over the seeds that both have, which one seed does not decide."""
    common = [seed for seed in lower.runs if seed in upper.runs]
    differences = np.array([upper.runs[seed].end - lower.runs[seed].end for seed in common])
    claim = f"{claim} ({_seeds(len(common))})"
    if not np.isfinite(differences).all():
        return verdicts.row(f"{claim} [a run diverged]", "paper", "undecided", expected="> 0")
    return _above_zero(claim, differences, 0.0)


def _above_zero(claim: str, differences: np.ndarray, resolution: float) -> dict:
    """Mean over seeds above zero; `resolution`: an error that it has besides."""
    if not len(differences):
        return verdicts.not_run(claim, "no seed in common")
    value, error, runs = mean(differences)
    return verdicts.gap(claim, value, math.hypot(error, resolution), runs=runs)


def faster_claims(data: Data, figure: str) -> list[dict]:
    """Factored attention makes its drop of the loss in fewer epochs than the encoders."""
    rows, share = [], SATURATION[0]
    for encoder in of_kind(data.architectures, "encoder"):
        for entry in of_kind(data.architectures, *FACTORED):
            claim = (
                f"{figure}: {entry.label} converges faster: epochs after which {share:.0%} of the "
                f"drop are left, {encoder.label} less {entry.label}"
            )
            common = [seed for seed in entry.runs if seed in encoder.runs]
            times = [
                [saturation(run.curve["epoch"], run.curve["loss"], share) for run in pair]
                for pair in ((encoder.runs[seed], entry.runs[seed]) for seed in common)
            ]
            if not common or np.isnan(times).any():
                rows.append(verdicts.not_run(claim, "no such curves of one seed"))
                continue
            ends, widths = np.moveaxis(np.array(times), 2, 0)  # (seeds, 2) each
            # A time known to lie in an interval of width w has the sd w / sqrt(12).
            resolution = math.sqrt((widths**2).sum(axis=1).mean() / 12)
            text = f"{claim} ({_seeds(len(common))})"
            rows.append(_above_zero(text, ends[:, 0] - ends[:, 1], resolution))
    return rows


def interpolation_claims(data: Data, figure: str) -> list[dict]:
    """The loss rises with a, and is lowest at a = 0."""
    entries = data.interpolation
    rows = [
        _difference(f"{figure}: excess at {high.label} above {low.label}", low, high)
        for low, high in pairwise(entries)
    ]
    if len(entries) > 1 and entries[0].a == 0:
        first, *others = entries
        nearest = min(others, key=lambda entry: entry.best.ends.mean())
        claim = f"{figure}: a = 0 has the lowest loss (the nearest other a)"
        rows.append(_difference(claim, first, nearest))
    return rows


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count > 1 else ''}"
