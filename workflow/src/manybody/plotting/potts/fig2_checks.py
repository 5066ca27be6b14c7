"""What figure 2 says: the rows of potts, section 6, that are about it.

Exact rows are identities. Statistical rows are about the samples, and, at the default setting of
the specification, about how well factored attention does: these are gates. How encoders and the
interpolation compare is a claim of the paper, decided over seeds. Rows that ask for the default
setting are not run, and say so, on any other source.
"""

import math
from itertools import pairwise

import numpy as np
import pandas as pd

from manybody import checks
from manybody.plotting.potts.fig2_runs import Data, Entry

# potts, section 1: the setting at which the numbers below were measured.
DEFAULT = {"length": 20, "vocabulary": 20, "couplings": "contact-map", "colours": "stored"}
BETAS = (1.65, 1.75)  # of the default setting
MEASURED_BETA, BETA_TOLERANCE = 1.707, 0.005
BETA_SLOPE = 1.8  # by which the Hamming distance falls per unit of beta
DEFAULT_HAMMING = 0.3

FACTORED = ("free", "softmax")
M = 3000  # training sequences at which the bounds below are meant; others are scaled by M
FEWEST = 1000  # below, 1/M is no longer the law
EXCESS = (0.004, 0.009)  # nats per token
ERRORS = {"free": 0.06, "softmax": 0.03}  # of J, at most
CORRELATIONS = {"free": 0.96, "softmax": 0.985}  # at least
HAMMING = 0.005
SELF_TEST = 3.0  # standard errors
SLOWEST = 10.0  # sweeps
FLAT = 1e-3  # nats per token, over the last LATE of the steps: our criterion
LATE = 0.1
ENOUGH = 2e-3  # nats per token, by which more steps may lower the end
SAME = 2e-5  # nats per token, between a sum in single and one in double precision
IDENTITY = 1e-12
IDENTITIES = {
    "conditional": "conditionals (5) against ratios of full Boltzmann weights",
    "masked loss": "masked loss minus pseudo-likelihood",
    "gauge": "change of the masked loss in its gauge",
}


def all_rows(data: Data, theory: pd.DataFrame | None, figure: str) -> list[dict]:
    """Every row of the figure."""
    return [
        *exact_rows(theory, figure),
        *sample_rows(data, figure),
        *same_rows(data, figure),
        *factored_rows(data, figure),
        *search_rows(data, figure),
        *flat_rows(data, figure),
        *longer_rows(data, figure),
        *vanilla_rows(data, figure),
        *interpolation_rows(data, figure),
    ]


def departure(data: Data) -> str:
    """Why the data are not the specification's default setting; empty if they are."""
    source = data.source
    reasons = [f"{key} = {source[key]}" for key in DEFAULT if source[key] != DEFAULT[key]]
    if source.get("fields") is not None:
        reasons.append("fields")
    if not BETAS[0] <= data.law.beta <= BETAS[1]:
        reasons.append(f"beta = {data.law.beta:.4g}")
    return f"not the default setting: {', '.join(reasons)}" if reasons else ""


# --- Identities ----------------------------------------------------------------------------------


def exact_rows(theory: pd.DataFrame | None, figure: str) -> list[dict]:
    """The identities of `manybody.theory.potts_exact`; not run where the figure has none."""
    rows = []
    for quantity, words in IDENTITIES.items():
        found = [] if theory is None else theory[theory["quantity"] == quantity]
        if not len(found):
            rows.append(checks.not_run(f"{figure}: {words}", "no such row in `exact`", "exact"))
            continue
        for series, value in zip(found["series"], found["y"], strict=True):
            rows.append(checks.identity(f"{figure}: {words}, {series}", value, 0.0, IDENTITY))
    return rows


def same_rows(data: Data, figure: str) -> list[dict]:
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
    rows = [checks.row(claim, "exact", "yes" if same else "no", odd, 0.0, expected, 0.0)]
    claim = f"{figure}: losses of the models are those of their equations (largest difference)"
    runs = [run for entry in data.entries for run in entry.runs.values()]
    apart = [
        run.each.mean() - run.end for run in [data.optimum, *runs] if run.each is not None and same
    ]
    if apart:
        rows.append(checks.identity(claim, max(apart, key=abs), 0.0, SAME))
    else:
        rows.append(checks.not_run(claim, "losses are not on the same tokens", "exact"))
    return rows


# --- Samples -------------------------------------------------------------------------------------


def sample_rows(data: Data, figure: str) -> list[dict]:
    """The samples are in equilibrium, at the temperature that was asked for."""
    found, asked = data.law_about["equilibrium"], data.source["temperature"].get("hamming")
    rows = []
    for start in ("hot", "cold"):
        words = {"hot": "uniform (hot)", "cold": "ordered (cold)"}[start]
        claim = f"{figure}: mean Hamming distance of {found['chains']} chains from {words} starts"
        if asked is None:
            reason = "the temperature is given by beta"
            rows.append(checks.not_run(claim, reason, "statistical"))
        else:
            value, error = found[start], found[f"{start}_se"]
            rows.append(checks.within(claim, value, error, asked, HAMMING, "statistical"))
    claim = f"{figure}: hot minus cold Hamming distance"
    error = math.hypot(found["hot_se"], found["cold_se"])
    difference = found["hot"] - found["cold"]
    rows.append(checks.within(claim, difference, error, 0.0, HAMMING, "statistical"))
    claim = f"{figure}: chains forget their energy within {SLOWEST:g} sweeps"
    holds = "yes" if found["tau"] < SLOWEST else "no"
    rows.append(checks.row(claim, "statistical", holds, found["tau"], expected=f"< {SLOWEST:g}"))
    claim = f"{figure}: beta of Hamming distance {DEFAULT_HAMMING} at the default setting"
    elsewhere = departure(data)
    if elsewhere or asked != DEFAULT_HAMMING:
        reason = elsewhere or "the temperature is not that of this distance"
        rows.append(checks.not_run(claim, reason, "statistical"))
    else:
        error = error / 2 / BETA_SLOPE  # of the mean of hot and cold, as a beta
        given = (data.law.beta, error, MEASURED_BETA, BETA_TOLERANCE)
        rows.append(checks.within(claim, *given, "statistical"))
    test, sites = data.self_test, data.tokens.size
    # Colours too unlikely to be seen at any site add to the entropy only.
    error = math.hypot(test["standard_error"], math.log(sites) / sites)
    difference = test["difference"]
    claim = f"{figure}: cross-entropy of the true conditionals less their mean entropy"
    holds = "yes" if abs(difference) <= SELF_TEST * error else "no"
    rows.append(checks.row(claim, "statistical", holds, difference, error, 0, SELF_TEST * error))
    claim = f"{figure}: the optimum is the sampler's own cross-entropy"
    rows.append(checks.identity(claim, data.optimum.end, test["cross_entropy"], SAME))
    return rows


# --- Factored attention --------------------------------------------------------------------------


def factored_rows(data: Data, figure: str) -> list[dict]:
    """Factored attention reaches the optimum and finds J, as well as M sequences allow."""
    rows = []
    for kind in FACTORED:
        entries = [entry for entry in data.architectures if entry.kind == kind]
        for entry in entries:
            rows += _factored(data, entry, figure)
        if not entries:
            claim = f"{figure}: factored attention, {kind} A, reaches the optimum and finds J"
            rows.append(checks.not_run(claim, "not among the runs", "statistical"))
    return rows


def _factored(data: Data, entry: Entry, figure: str) -> list[dict]:
    size = data.trained_on(entry)
    scale = M / size
    elsewhere = departure(data)
    if not elsewhere and size < FEWEST:
        elsewhere = f"M = {size}, too few for what is scaled from M = {M}"
    low, high = (scale * bound for bound in EXCESS)
    expected = data.expected_excess(size)
    reaches = (
        f"{figure}: {entry.label}: excess over the optimum is {low:.2g} to {high:.2g}, "
        f"M = {size} (p/(2ML) = {expected:.2g})"
    )
    error = f"{figure}: {entry.label}: error of J, M = {size} (worst seed)"
    alike = f"{figure}: {entry.label}: Pearson r of the map and J, M = {size} (worst seed)"
    if elsewhere:
        claims = (reaches, error, alike)
        return [checks.not_run(claim, elsewhere, "statistical") for claim in claims]
    given = (data.excess(entry).mean(), data.excess_error(entry))
    centre, reach = (low + high) / 2, (high - low) / 2
    rows = [checks.within(reaches, *given, centre, reach, "statistical")]
    maps = [run.last_map for run in entry.runs.values() if run.last_map is not None]
    found = [data.coupling_error(matrix) for matrix in maps]
    if not found:
        claims = (error, alike)
        return rows + [checks.not_run(claim, "no maps", "statistical") for claim in claims]
    worst = max(each.error for each in found)
    bound = scale * ERRORS[entry.kind]
    holds = "yes" if worst < bound else "no"
    rows.append(checks.row(error, "statistical", holds, worst, expected=f"< {bound:g}"))
    # r of a map with error e is about sqrt(1 - e), so 1 - r goes like 1/M as well.
    least = 1 - scale * (1 - CORRELATIONS[entry.kind])
    worst = min(each.pearson for each in found)
    holds = "yes" if worst > least else "no"
    return [*rows, checks.row(alike, "statistical", holds, worst, expected=f"> {least:g}")]


# --- Searches and convergence --------------------------------------------------------------------


def search_rows(data: Data, figure: str) -> list[dict]:
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
        count = len(entry.candidates)
        claim = f"{figure}: {entry.label}: best of {count} rates, {entry.best.model}, is not at"
        claim += " the end of the range"
        if len(rates) < 2:
            rows.append(checks.not_run(claim, "one rate only"))
        else:
            inside = rates[0] < entry.best.rate < rates[-1]
            span = f"{rates[0]:g} to {rates[-1]:g}"
            holds = "yes" if inside else "no"
            rows.append(checks.row(claim, "paper", holds, entry.best.rate, expected=span))
    return rows


def flat_rows(data: Data, figure: str) -> list[dict]:
    """Training has ended: the held-out loss no longer changes."""
    rows = []
    for entry in data.entries:
        claim = (
            f"{figure}: {entry.label}: held-out loss changes by less than {FLAT:g} over the last "
            f"{LATE:.0%} of the steps (worst seed)"
        )
        if entry.best.recipe["optimizer"]["name"] == "lbfgs":
            rows.append(checks.not_run(claim, "fitted until flat: no curve"))
            continue
        changes = [run.late_change(LATE) for run in entry.runs.values()]
        worst = max(changes, key=lambda change: math.inf if math.isnan(change) else abs(change))
        holds = "undecided" if math.isnan(worst) else "yes" if abs(worst) < FLAT else "no"
        rows.append(checks.row(claim, "paper", holds, worst, math.nan, 0, FLAT))
    return rows


def longer_rows(data: Data, figure: str) -> list[dict]:
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
            rows.append(checks.not_run(claim, reason))
            continue
        drops = entry.best.ends - entry.longer.ends
        error = drops.std(ddof=1) / math.sqrt(len(drops)) if len(drops) > 1 else math.nan
        drop, margin = float(drops.mean()), checks.ERRORS * float(error)
        holds = "undecided"
        if drop + margin < ENOUGH:
            holds = "yes"
        elif drop - margin > ENOUGH:
            holds = "no"
        rows.append(checks.row(claim, "paper", holds, drop, error, f"< {ENOUGH:g}"))
    return rows


def _same_but_steps(one: dict, other: dict) -> bool:
    length = ("steps", "checkpoints", "validation")
    return all(one.get(key) == other.get(key) for key in {*one, *other} if key not in length)


# --- Encoders and the interpolation --------------------------------------------------------------


def vanilla_rows(data: Data, figure: str) -> list[dict]:
    """Factored attention is below the encoder of three layers, and that below one of one layer."""
    encoders = {entry.layers: entry for entry in data.architectures if entry.kind == "encoder"}
    factored = [entry for entry in data.architectures if entry.kind in FACTORED]
    best = min(factored, key=lambda entry: data.excess(entry).mean(), default=None)
    rows = []
    if best is None or not encoders:
        claim = f"{figure}: encoders stay above factored attention"
        rows.append(checks.not_run(claim, "no such runs to compare"))
    for layers in sorted(encoders) if best is not None else []:
        claim = f"{figure}: excess of the encoder of {_layers(layers)} above {best.label}"
        rows.append(_difference(claim, best, encoders[layers]))
    if len(encoders) < 2:
        claim = f"{figure}: more layers bring the encoder closer to the optimum"
        rows.append(checks.not_run(claim, "encoders of one depth only"))
    for few, many in pairwise(sorted(encoders)):
        claim = f"{figure}: excess of the encoder of {_layers(few)} above that of {_layers(many)}"
        rows.append(_difference(claim, encoders[many], encoders[few]))
    return rows


def _layers(count: int) -> str:
    return f"{count} layer{'s' if count > 1 else ''}"


def _difference(claim: str, lower: Entry, upper: Entry) -> dict:
    """upper minus lower over the seeds that both have; a single seed is set against all others."""
    common = [seed for seed in lower.runs if seed in upper.runs]
    if min(len(lower.runs), len(upper.runs)) == 1:
        # Seeds of different architectures have nothing in common that pairs them.
        differences = np.subtract.outer(upper.best.ends, lower.best.ends).ravel()
    else:
        differences = np.array([upper.runs[s].end - lower.runs[s].end for s in common])
    if not np.isfinite(differences).all():
        return checks.row(f"{claim} [a run diverged]", "paper", "undecided", expected="> 0")
    return checks.positive(f"{claim} ({_seeds(len(differences))})", differences)


def interpolation_rows(data: Data, figure: str) -> list[dict]:
    """The loss rises with a, and is lowest at a = 0."""
    entries = data.interpolation
    lowest = f"{figure}: a = 0 has the lowest loss (the nearest other a)"
    if len(entries) < 2:
        claim = f"{figure}: the loss rises with a"
        return [checks.not_run(name, "fewer than two values of a") for name in (claim, lowest)]
    rows = [
        _rise(f"{figure}: excess at {high.label} above {low.label}", low, high, data)
        for low, high in pairwise(entries)
    ]
    first, *others = entries
    if first.a != 0:
        return [*rows, checks.not_run(lowest, "a = 0 is not among the runs")]
    nearest = min(others, key=lambda entry: entry.best.ends.mean())
    return [*rows, _rise(lowest, first, nearest, data)]


def _rise(claim: str, low: Entry, high: Entry, data: Data) -> dict:
    """Over seeds; of one seed each, over the test sequences of these two runs."""
    if min(len(low.runs), len(high.runs)) > 1:
        return _difference(claim, low, high)
    difference = float(high.best.ends[0] - low.best.ends[0])
    error = data.paired_error(high, low.each)
    return checks.gap(f"{claim} (one seed: error over its sequences)", difference, error)


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count > 1 else ''}"
