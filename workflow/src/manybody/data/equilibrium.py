"""Tests that chains have reached the Boltzmann distribution, not stayed near where they started.

Trapped chains can obey every conditional: each is in equilibrium within its valley of H, and only
the weights of the valleys are wrong. The cross entropy of the true conditionals, which looks at one
site at a time, cannot show that. A comparison with the distribution itself can, where all states
can be counted; otherwise, one of chains from uniform colours and from the deepest valley.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from manybody.data import STATES, SourceError, enumeration, gibbs
from manybody.data.hamiltonian import Hamiltonian

CHECKED = 10_000  # chains of each start
PROBES = 256  # chains that are cooled, to find the deepest valley
COOLINGS = 6  # each of them doubles beta
ERRORS = 4.0  # standard errors between two starts; the exact test has the same chance


def measure(
    model: Hamiltonian,
    tokens: np.ndarray,
    sweeps: int,
    stream: np.random.SeedSequence,
    threads: int = 1,
) -> dict:
    """Compares samples `tokens` (N, L), chains of `sweeps` sweeps from uniform colours, to `model`.

    If all states can be counted: `method` exact and `enumeration.chi_square` of the samples and
    `CHECKED` more chains. Else `method` starts, `hot` and `cold`: means and standard errors of beta
    H and Hamming distance of `CHECKED` chains from uniform colours and the lowest energy found.
    """
    hot, cooled, cold, colours = stream.spawn(4)
    chains, _ = gibbs.sample(model, CHECKED, sweeps, hot, threads, "hot starts")
    if model.vocabulary**model.length <= STATES:
        found = enumeration.numbers(np.concatenate([tokens, chains]), model.vocabulary)
        probabilities = enumeration.probabilities(model)
        return dict(
            method="exact", chains=len(found), **enumeration.chi_square(probabilities, found)
        )
    initial = _lowest(model, sweeps, cooled, colours, threads)
    others, _ = gibbs.sample(model, CHECKED, sweeps, cold, threads, "cold starts", initial=initial)
    return dict(
        method="starts", chains=CHECKED, hot=_means(model, chains), cold=_means(model, others)
    )


def effort(model: Hamiltonian) -> tuple[int, Callable[[], object]]:
    """The chains that `measure` moves, and what takes it time beside them."""
    if model.vocabulary**model.length <= STATES:
        return CHECKED, lambda: enumeration.probabilities(model)
    return 2 * CHECKED + COOLINGS * PROBES, lambda: None


def refuse_trapped(found: dict, sweeps: int, warmer: str) -> None:
    """`SourceError` if what `measure` found is not that of the Boltzmann distribution; `warmer` as
    of `many_body.refuse_unequal`."""
    if found["method"] == "exact":
        if found["chance"] >= 2 * ndtr(-ERRORS):
            return
        apart = (
            f"of {found['chains']} samples chi^2 is {found['chi_square']:.0f} against the "
            f"distribution of all states, expected about {found['freedom']} (by chance so large in "
            f"{found['chance']:.1g} of all cases); their total variation is {found['distance']:.3f}"
        )
    else:
        hot, cold = found["hot"], found["cold"]
        names = {"energy": "beta H", "hamming": "the Hamming distance of two samples"}
        far = []
        for key, words in names.items():
            error = math.hypot(hot[f"{key}_se"], cold[f"{key}_se"])
            if abs(hot[key] - cold[key]) > ERRORS * error:
                far.append(
                    f"{words} is {hot[key]:.4f} from uniform starts and {cold[key]:.4f} from the "
                    f"lowest energy that cooling found (standard error {error:.2g})"
                )
        if not far:
            return
        apart = f"the mean of {' and of '.join(far)}, expected equal within {ERRORS:.0f} of these"
    raise SourceError(
        f"after {sweeps} sweeps the chains are not samples of the Boltzmann distribution, "
        f"but trapped near their start: {apart}. Between deep valleys more sweeps help little: "
        f"{warmer}, or draw other couplings or colours",
        "sweeps",
    )


def hamming(tokens: np.ndarray, vocabulary: int) -> tuple[float, float]:
    """Share of sites at which two of the sequences (N, L) differ, averaged over all pairs, and its
    standard error: that of a U-statistic, by each sequence's mean distance to the others."""
    count, length = tokens.shape
    shown = tokens + vocabulary * np.arange(length)  # a number for each colour at each site
    equal = (np.bincount(shown.ravel())[shown] - 1).sum(axis=1) / (length * (count - 1))
    return float(1 - equal.mean()), float(2 * equal.std(ddof=1) / math.sqrt(count))


def _means(model: Hamiltonian, tokens: np.ndarray) -> dict[str, float]:
    energies = model.beta * model.energies(tokens)
    distance, error = hamming(tokens, model.vocabulary)
    return dict(
        energy=float(energies.mean()),
        energy_se=float(energies.std(ddof=1) / math.sqrt(len(tokens))),
        hamming=distance,
        hamming_se=error,
    )


def _lowest(
    model: Hamiltonian,
    sweeps: int,
    stream: np.random.SeedSequence,
    colours: np.random.SeedSequence,
    threads: int,
) -> np.ndarray:
    """Tokens (CHECKED, L): for each chain the state of lowest energy that cooling finds. Where U
    treats all colours equally they are renamed at random for each chain, as starts that break this
    symmetry would favour one of several equal valleys."""
    tokens = None
    for step, numbers in enumerate(stream.spawn(COOLINGS)):
        colder = Hamiltonian(model.couplings, model.colours, model.beta * 2.0**step)
        tokens, _ = gibbs.sample(colder, PROBES, sweeps, numbers, threads, "cool", initial=tokens)
    best = tokens[model.energies(tokens).argmin()]
    names = np.tile(np.arange(model.vocabulary), (CHECKED, 1))
    if _colours_are_equal(model.colours):
        names = np.random.default_rng(colours).permuted(names, axis=1)
    return names[:, best]


def _colours_are_equal(colours: np.ndarray) -> bool:
    """True if U (|V|,) * k stays the same under every renaming of the colours: those are generated
    by an exchange of two and a cycle of all."""
    own = range(len(colours))
    renamings = [1, 0, *own[2:]], np.roll(own, 1)
    return all(
        np.array_equal(colours[np.ix_(*[names] * colours.ndim)], colours) for names in renamings
    )
