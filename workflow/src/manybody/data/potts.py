"""Sequences of a generalised Potts model (docs/science/potts.md, section 1), and its temperature.

    H(s) = -1/2 sum_{i,j} J_ij U_{s_i s_j},   P(s) = exp(-beta H) / Z        (1)
    P(s_i = a | rest) = softmax_a beta sum_j J_ij U_{a s_j}                   (5)

As a `Hamiltonian`: order 2, couplings J, colours -U/2, the same beta. Files have J and U as in (1).

The temperature is given, or found from the mean Hamming distance of two sequences. Chains from
uniform and from ordered starts must agree at it, and forget their energy within a few sweeps. Not
every U has such an equilibrium; for one that has none nothing is written.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from manybody.data import SPLITS, SourceError, pair_gibbs
from manybody.data.equilibrium import hamming
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.many_body import own_tensor, self_test, tested_splits, write_splits
from manybody.io.seeds import streams_of

# Seeds follow from the place of a name: the first keeps its own, though nothing is drawn from it.
STREAMS = ("unused", "search", "refine", "check", "energy", *SPLITS)
STORED = Path(__file__).with_name("potts_colours.json")
SHORTEST = 4  # sites that a contact map needs
SETTLED = 1e-9  # largest deviation of a row sum of J from 1
SEARCHED = 2000  # chains of each start at a step of the search
STEPS = 12  # bisections
REFINED = 10_000  # chains of each start that correct the result of the search
CHECKED = 50_000  # chains of each start that test the equilibrium
COLDEST = 16.0  # beta sigma_h at which the search for a lower temperature ends
AGREEMENT = 0.02  # by which the Hamming distances of the two starts may differ
SHORT = 30  # sweeps that find a temperature roughly
SLOWEST = 10.0  # sweeps in which chains forget their energy
STARTS = ("hot", "cold")


def make(
    source: dict, name: str, hamiltonian: str | Path, out: dict[str, str | Path], threads: int = 1
) -> None:
    """Samples the source (its entry in the config) called `name`: writes its Hamiltonian, and each
    split to `out[split]`. `SourceError` names the key that is wrong, or says by how much chains
    miss equilibrium; nothing is written then."""
    model, about = draw(source, threads)
    streams = streams_of(source["seed"], STREAMS)
    warmer = "choose a higher temperature"
    made = tested_splits(model, source, name, pair_gibbs.sample, streams, threads, warmer)
    about["source"] = name
    model.save(hamiltonian, about)
    write_splits(made, model.vocabulary, about, out)


def trial(source: dict) -> tuple[Hamiltonian, list[tuple[Callable[[int], object], int]]]:
    """As `many_body.trial`. Cold chains are fast: a temperature that is searched for is that of
    short chains, and of the search two doublings of beta are counted."""
    streams, at = streams_of(source["seed"], STREAMS), interactions(source)
    beta = source["temperature"].get("beta")
    searched = 0 if beta else 2 * (SEARCHED * (STEPS + 4) + REFINED)
    model = at(beta or find_beta(at, source["temperature"]["hamming"], SHORT, streams))
    stream, sequences = streams["check"], source["sequences"].values()

    def moved(count: int) -> np.ndarray:
        return pair_gibbs.sample(model, count, source["sweeps"], stream).tokens

    return model, [
        (moved, searched + 2 * CHECKED + SEARCHED + sum(sequences)),
        (lambda count: self_test(model, moved(2)[np.arange(count) % 2]), sum(sequences)),
    ]


def draw(source: dict, threads: int = 1) -> tuple[Hamiltonian, dict]:
    """The Hamiltonian of a source at its temperature, for any `sequences`, and its document, with
    `equilibrium` (see `measure`) and the `hamming` that it gives."""
    streams, at = streams_of(source["seed"], STREAMS), interactions(source)
    if not at(1.0).logit_scale() > 0:
        raise SourceError(
            "couplings, colours: H is the same for all sequences (zero variance), so that no "
            "temperature orders them. Give J and U that are not constant"
        )
    # With null an overlay of the config takes a key back.
    temperature = {key: value for key, value in source["temperature"].items() if value is not None}
    sweeps, beta = source["sweeps"], temperature.get("beta")
    model = at(beta or find_beta(at, temperature["hamming"], sweeps, streams, threads))
    found = measure(model, CHECKED, sweeps, streams["check"], threads)
    stream = streams["energy"]
    run = pair_gibbs.sample(model, SEARCHED, sweeps, stream, threads, "energies", energies=True)
    found["tau"] = autocorrelation_time(run.energies[:, sweeps // 2 :])
    refuse_out_of_equilibrium(found, model.beta, source)
    keys = ("length", "vocabulary", "couplings", "colours")
    about = dict(
        order=2, beta=model.beta, S=model.logit_scale(), sigma_h=model.logit_scale() / model.beta,
        shares=model.shares().tolist(), sweeps=sweeps, seed=source["seed"],
        hamming=(found["hot"] + found["cold"]) / 2, equilibrium=found,
        parameters={key: source[key] for key in keys} | {"temperature": temperature},
    )  # fmt: skip
    return model, about


def interactions(source: dict) -> Callable[[float], Hamiltonian]:
    """The Hamiltonian of a source as a function of beta, with the J and U of its entry."""
    length, given = source["length"], source["couplings"]
    if given == "contact-map":
        couplings = contact_map(length)
    else:
        couplings = own_tensor("couplings", given["file"], (length, length))
    colours = _colours(source)
    return lambda beta: Hamiltonian(couplings, -colours / 2, beta)


def contact_map(length: int) -> np.ndarray:
    """J (L, L), non-negative and symmetric with zero diagonal and all row sums 1.

    A chain with weight 1; a helix, neighbours 3 and 4 along the first 9 of 20 sites with weights
    0.6 and 0.8; a hairpin of sites 10 to 14 of 20 with weight 1; four contacts of long range with
    weight 0.7. For another L all but the chain grow with L/20. `SourceError` for L < 4.
    """
    if length < SHORTEST:
        raise SourceError(
            f"found {length}; expected at least {SHORTEST} sites for a contact map; raise it, or "
            "give couplings: {file: ...}",
            "length",
        )
    weights = np.zeros((length + 1, length + 1))  # sites from 1

    def join(i: int, j: int, weight: float) -> None:
        if i != j and j <= length:  # not so for a hairpin of few sites
            weights[i, j] = weights[j, i] = max(weights[i, j], weight)

    def scaled(site: int) -> int:
        return max(1, round(site * length / 20))

    for i in range(1, length):
        join(i, i + 1, 1.0)
    for step, weight in ((3, 0.6), (4, 0.8)):
        for i in range(1, scaled(9) - step + 1):
            join(i, i + step, weight)
    for i in range(scaled(10), scaled(14) + 1):
        join(i, scaled(30) - i, 1.0)
    for i, j in ((2, 18), (5, 13), (1, 20), (7, 16)):
        join(scaled(i), scaled(j), 0.7)
    return doubly_stochastic(weights[1:, 1:].copy())


def doubly_stochastic(weights: np.ndarray) -> np.ndarray:
    """D W D with row sums 1 for symmetric W (L, L) by Sinkhorn's iteration d <- sqrt(d / (W d))."""
    scales = np.ones(len(weights))
    for step in range(1, 200_001):
        scales = np.sqrt(scales / (weights @ scales))
        if step % 2000 == 0:
            scaled = weights * np.outer(scales, scales)  # symmetric to the last digit
            if np.abs(scaled.sum(axis=1) - 1).max() < SETTLED:
                return scaled
    raise SourceError(
        f"the row sums of a contact map of {len(weights)} sites do not settle at 1; take "
        "another length, or give couplings: {file: ...}",
        "length",
    )


def stored_colours() -> np.ndarray:
    """U (20, 20), the default draw: (G + G^T) / sqrt(2) of one normal matrix, kept as data."""
    return np.array(json.loads(STORED.read_text(encoding="utf-8"))["colours"])


def _colours(source: dict) -> np.ndarray:
    """U (|V|, |V|): the identity, the stored draw, (G + G^T) / sqrt(2), or the user's."""
    interaction, vocabulary = source["colours"], source["vocabulary"]
    if interaction == "standard":
        return np.eye(vocabulary)
    if interaction == "stored":
        found = stored_colours()
        if len(found) != vocabulary:
            raise SourceError(
                f"the stored U is that of {len(found)} colours, but vocabulary is "
                f"{vocabulary}; take vocabulary: {len(found)} or colours: {{gaussian: SEED}}",
                "colours",
            )
        return found
    if "gaussian" in interaction:
        draws = np.random.default_rng(interaction["gaussian"]).standard_normal((vocabulary,) * 2)
        return (draws + draws.T) / math.sqrt(2)
    return own_tensor("colours", interaction["file"], (vocabulary, vocabulary))


def ordered(model: Hamiltonian, chains: int) -> np.ndarray:
    """Tokens (chains, L) with one colour at all sites: the one with the largest U_aa. Where several
    are equally good, each has its share of the chains."""
    own = -np.diag(model.colours)
    best = np.flatnonzero(own == own.max())
    return np.tile(best[np.arange(chains) % len(best), None], model.length)


def measure(
    model: Hamiltonian, chains: int, sweeps: int, stream: np.random.SeedSequence, threads: int = 1
) -> dict:
    """Mean Hamming distance after `sweeps` sweeps from uniform (`hot`) and ordered (`cold`) starts
    of so many `chains` each, with standard errors `hot_se` and `cold_se`."""
    found = dict(chains=chains)
    # The same random numbers in each call, so that small changes of beta can be compared.
    seeds = stream.generate_state(4)
    for k, start in enumerate(STARTS):
        tokens = ordered(model, chains) if start == "cold" else None
        numbers = np.random.SeedSequence([k, *seeds])
        run = pair_gibbs.sample(
            model, chains, sweeps, numbers, threads, f"{start} beta = {model.beta:.4g}",
            initial=tokens,
        )  # fmt: skip
        found[start], found[f"{start}_se"] = hamming(run.tokens, model.vocabulary)
    return found


def autocorrelation_time(values: np.ndarray) -> float:
    """1/2 + sum_t rho(t) of stationary series (chains, times) with one common mean, up to the first
    t that is at least 6 times the result (Sokal's window); infinite if nothing varies."""
    centred = values - values.mean()
    variance = (centred**2).mean()
    if variance <= 1e-12 * (values**2).mean():
        return math.inf
    total = 0.5
    for lag in range(1, values.shape[1]):
        total += (centred[:, lag:] * centred[:, :-lag]).mean() / variance
        if lag >= 6 * total:
            break
    return float(total)


def find_beta(
    at: Callable[[float], Hamiltonian],
    target: float,
    sweeps: int,
    streams: dict[str, np.random.SeedSequence],
    threads: int = 1,
) -> float:
    """The beta at which the mean Hamming distance, averaged over hot and cold starts, is `target`,
    by bisection with the same random numbers at each step, then a step of Newton's method with more
    chains. `SourceError` says how far the distance falls, if it does not reach the target."""

    def distance(beta: float, chains: int = SEARCHED, stream: str = "search") -> float:
        found = measure(at(beta), chains, sweeps, streams[stream], threads)
        return (found["hot"] + found["cold"]) / 2

    hamiltonian = at(1.0)
    unit = 1.0 / hamiltonian.logit_scale()
    low, high = 0.0, unit
    reached = [(1 - 1 / hamiltonian.vocabulary, 0.0), (distance(high), high)]
    while reached[-1][0] > target:
        low, high = high, 2 * high
        if high > COLDEST * unit:
            (least, beta), most = min(reached), reached[0][0]
            raise SourceError(
                f"no beta gives a mean Hamming distance of {target}: it falls "
                f"from {most:.3f} at beta = 0 to {least:.3f} at beta = {beta:.3g} and not lower up "
                f"to beta = {low:.3g}. Choose a distance between these, or another draw of U",
                "temperature.hamming",
            )
        reached.append((distance(high), high))
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if distance(middle) > target else (low, middle)
    beta = (low + high) / 2
    near = 0.02 * beta
    slope = (distance(beta + near) - distance(beta - near)) / (2 * near)
    if slope < 0:
        beta += min(max((target - distance(beta, REFINED, "refine")) / slope, -near), near)
    return beta


def refuse_out_of_equilibrium(found: dict, beta: float, source: dict) -> None:
    """`SourceError` unless hot and cold chains agree and forget their energy (section 1)."""
    if abs(found["hot"] - found["cold"]) <= AGREEMENT and found["tau"] < SLOWEST:
        return
    raise SourceError(
        f"couplings, colours: J = {source['couplings']} and U = {source['colours']} have no "
        f"equilibrium that chains find at beta = {beta:.4g}: after {source['sweeps']} sweeps the "
        f"mean Hamming distance is {found['hot']:.4f} from uniform starts and {found['cold']:.4f} "
        f"from ordered ones, expected equal within {AGREEMENT}, and the energy's autocorrelation "
        f"time is {found['tau']:.3g} sweeps, expected below {SLOWEST:.0f}. Take another draw of U "
        "(colours: {gaussian: SEED}; about half of those led by a diagonal entry will do), "
        "colours: stored with couplings: contact-map, a higher temperature, or more sweeps"
    )
