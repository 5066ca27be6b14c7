"""New sequences of a family's pair model, and what they are beside the natural ones.

Statistics of one, two and three sites are compared colour by colour. Those of two and three are the
connected ones, what is left of a frequency beyond those of fewer sites:

    c_ij(a, b) = f_ij(a, b) - f_i(a) f_j(b)
    c_ijk(a, b, c) = f_ijk - f_ij f_k - f_ik f_j - f_jk f_i + 2 f_i f_j f_k
"""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from manybody.data.pair_model import PairModel
from manybody.io.refusal import Refusal
from manybody.sampling.pair_chains import Chains, Tables, frequencies, log_partition, nearest

# Names of the statistics by their number of sites, and how many sets of sites are looked at.
STATISTICS = {1: ("f", 10**5), 2: ("c_2", 20_000), 3: ("c_3", 1000)}
TEMPERATURES, ANNEALED = (500, 2000), 512  # of annealed importance sampling, and its chains
SHOWN = 3000  # values of a statistic, or sequences, that are looked at one by one


def generate(
    model: PairModel, count: int, sweeps: int | None = None, seed: int = 0, threads: int = 1
) -> tuple[np.ndarray, pd.DataFrame]:
    """Tokens (count, L) of chains `sweeps` Gibbs sweeps after uniform colours, by default as many
    as it took when the model was tested, and how they mix.

    The table has points of the panel `mixing`: after x = 1, 2, 4, ... more sweeps, as many at most
    as there were before, the share y of sites at which a chain has the colour that it had before
    (series `own`), or that another chain had (`other`): where the two agree, it is forgotten.
    `Refusal` for a model that has not reached its target of Boltzmann learning.
    """
    if min(count, 1 if sweeps is None else sweeps) < 1:
        raise Refusal(f"found {count} sequences of {sweeps} sweeps; expected 1 or more of each")
    none = {"reason": "there was no Boltzmann learning (`manybody family --boltzmann`)"}
    learned = model.about.get("boltzmann", none)
    if not learned.get("reached"):
        raise Refusal(
            f"the model has not reached the pair correlations of its family: {learned['reason']}; "
            "only a model that has can draw sequences"
        )
    sweeps = sweeps or learned["settled"]
    tables = Tables.of(model.fields, model.couplings)
    chains = Chains.begun(count, model.length, model.vocabulary, np.random.SeedSequence(seed))
    chains.move(tables, sweeps, threads, label="new sequences")
    tokens, parts = chains.tokens.copy(), []
    for after in (2**power for power in range(sweeps.bit_length())):
        chains.move(tables, max(after // 2, 1), threads)  # as many as there were
        parts += [
            _points("mixing", series, [after], [(chains.tokens == before).mean()])
            for series, before in (("own", tokens), ("other", np.roll(tokens, 1, axis=0)))
        ]
    return tokens, pd.concat(parts, ignore_index=True)


def log_likelihood(
    model: PairModel,
    held_out: tuple[np.ndarray, np.ndarray],
    seen: tuple[np.ndarray, np.ndarray],
    threads: int = 1,
) -> str:
    """A sentence on the mean log p of held-out tokens (N, L) with weights (N,), in nats a site,
    that of frequencies of single sites of the sequences that were seen, and whether log Z is the
    same by `TEMPERATURES`, two numbers of temperatures of annealed importance sampling. The
    standard error is that over sequences, as if independent, and that of log Z."""
    (tokens, weights), few = held_out, 1 / seen[1].sum()
    sites = np.log(
        (1 - few) * frequencies(seen[0], model.vocabulary, seen[1])[0] + few / model.vocabulary
    )
    (short, its), (log_z, own) = (
        log_partition(model, ANNEALED, count, 0, threads, sites) for count in TEMPERATURES
    )
    alone = sites[np.arange(model.length), tokens].sum(axis=1)
    logs = model.scores(tokens) - log_z
    mean, single = (np.average(each, weights=weights) for each in (logs, alone))
    spread = math.sqrt((weights**2 * (logs - mean) ** 2).sum()) / weights.sum()
    error, apart = math.hypot(spread, own), abs(log_z - short) / math.hypot(own, its)
    return (
        f"The log-likelihood of {len(tokens)} held-out sequences is {mean / model.length:.3f} ± "
        f"{error / model.length:.3f} nats a site, {single / model.length:.3f} by frequencies of "
        f"single sites; annealing at {' and '.join(map(str, TEMPERATURES))} temperatures gives "
        f"log Z = {short:.2f} ± {its:.2f} and {log_z:.2f} ± {own:.2f}"
        + ("." if apart < 3 else ", which disagree: do not trust it.")
    )


def connected(
    tokens: np.ndarray, weights: np.ndarray, vocabulary: int, sites: Sequence[int]
) -> np.ndarray:
    """f_i, c_ij or c_ijk of one to three sites, (q,) * k, of tokens (N, L) with weights (N,)."""
    number, size = len(sites), (vocabulary,) * len(sites)
    codes = np.ravel_multi_index(tuple(tokens.T[list(sites)]), size)
    found = np.bincount(codes, weights, vocabulary**number).reshape(size) / weights.sum()
    if number == 1:
        return found
    # Centred moments are the connected statistics up to three sites.
    axes = range(number)
    alone = [found.sum(axis=tuple({*axes} - {axis}), keepdims=True) for axis in axes]
    if number == 2:
        return found - alone[0] * alone[1]
    pairs = sum(found.sum(axis=axis, keepdims=True) * alone[axis] for axis in axes)
    return found - pairs + 2 * alone[0] * alone[1] * alone[2]


def compared(
    natural: np.ndarray,
    generated: np.ndarray,
    vocabulary: int,
    weights: np.ndarray | None = None,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Statistics of generated tokens (M, L) beside those of natural ones (N, L) with weights (N,).

    The first table has a row each of `f`, `c_2` and `c_3`: Pearson's `correlation` of the values of
    sites and colours, a seeded draw of these where there are very many; that of two random `halves`
    of the natural ones, for what their number leaves open; the `slope` of the generated on the
    natural ones, and the `number` of values. The second has points: `panel`, `series`, x and y.
    Panels are the statistics (natural, generated), `components`, the projections on the first two
    principal components of the natural sequences, and `distances`, the share of sites in which a
    sequence differs from the nearest other natural one (x) against that of sequences as near (y).
    """
    generator = np.random.default_rng(seed)
    weights = np.ones(len(natural)) if weights is None else weights
    order, rows, points = generator.permutation(len(natural)), [], []
    halves = (order[: len(order) // 2], order[len(order) // 2 :])
    parts = [(natural, weights), (generated, np.ones(len(generated)))]
    parts += [(natural[half], weights[half]) for half in halves]
    for number, (name, most) in STATISTICS.items():
        chosen = _sets(natural.shape[1], number, most, generator)
        x, y, *others = (
            np.concatenate([connected(*part, vocabulary, one).ravel() for one in chosen])
            for part in parts
        )
        slope = np.cov(x, y)[0, 1] / x.var(ddof=1)
        rows.append((name, *(np.corrcoef(*two)[0, 1] for two in ((x, y), others)), slope, len(x)))
        some = generator.permutation(len(x))[:SHOWN]
        points.append(_points(name, "values", x[some], y[some]))
    some = generator.permutation(len(natural))[:SHOWN]
    mean, axes = principal(natural[some], vocabulary, weights[some])
    for series, tokens in (("natural", natural[some]), ("generated", generated[:SHOWN])):
        along = axes[:, np.arange(tokens.shape[1]), tokens].sum(axis=2) - mean[:, None]
        near = np.sort(nearest(tokens, natural, itself=series == "natural"))
        points += [
            _points("components", series, *along),
            _points("distances", series, near, np.arange(1, len(near) + 1) / len(near)),
        ]
    return (
        pd.DataFrame(rows, columns=["statistic", "correlation", "halves", "slope", "number"]),
        pd.concat(points, ignore_index=True),
    )


def _sets(length: int, number: int, most: int, generator: np.random.Generator) -> list:
    """All sets of `number` sites, ascending, or a draw where there are more than `most`."""
    if math.comb(length, number) <= most:
        return list(combinations(range(length), number))
    return [np.sort(generator.choice(length, number, replace=False)) for _ in range(most)]


def _points(panel: str, series: str, x: Sequence[float], y: Sequence[float]) -> pd.DataFrame:
    return pd.DataFrame(dict(panel=panel, series=series, x=x, y=y))


def principal(
    tokens: np.ndarray, vocabulary: int, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first two principal components (2, L, q) of tokens (N, L), a number 0 or 1 for each site
    and colour, with weights (N,), and the projections (2,) of their mean."""
    from scipy.sparse.linalg import svds

    ones = (tokens[..., None] == np.arange(vocabulary)).reshape(len(tokens), -1).astype(np.float32)
    mean = weights @ ones / weights.sum()
    centred = np.sqrt(weights)[:, None] * (ones - mean)
    axes = svds(centred, k=2, v0=np.ones(min(centred.shape)))[2][::-1]  # the largest is the last
    return axes @ mean, axes.reshape(2, -1, vocabulary)
