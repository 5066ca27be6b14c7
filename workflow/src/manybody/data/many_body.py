"""Samples p(s) ~ exp(-beta H) with k-body terms (docs/science/many-body.md, sections 1 to 4).

J comes from P random vectors and U from vectors or as Potts' delta, or both from the user's files.
The scale S of the logits sets the temperature. Every data set is tested before it is written: the
cross entropy of the true conditionals must equal their mean entropy, as it does on exact samples,
and chains that are trapped in valleys of H are refused (`equilibrium`).
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from manybody.data import SPLITS, SourceError, equilibrium, gibbs, overlap
from manybody.data.hamiltonian import Hamiltonian, check_tensor, coincident, field_scale
from manybody.io import sequences
from manybody.io.atomic import ArtifactError
from manybody.io.seeds import streams_of
from manybody.io.tensor_files import read_tensor

STREAMS = ("couplings", "colours", "probe", *SPLITS, "check")
VARIABLES = {"signs": (1.0, -1.0), "bits": (1.0, 0.0)}  # values with `probability` and otherwise
FROZEN = 1e-3  # share of visits that change a colour below which chains count as frozen
MOVING = 1e-2  # the share at the S that the refusal proposes
PROBES = 256  # chains that measure the share
ERRORS = 4.0  # standard errors by which entropy and cross entropy may differ
BLOCK = 1024  # sequences tested at a time


def make(
    source: dict, name: str, hamiltonian: str | Path, out: dict[str, str | Path], threads: int = 1
) -> None:
    """Samples the source (its entry in the config) called `name`: writes its Hamiltonian, whose
    document has what `equilibrium.measure` returned, and each split to `out[split]`. `SourceError`
    names the key that is wrong, or says that chains are frozen, not equilibrated or trapped;
    nothing is written then."""
    model, about = draw(source)
    streams = streams_of(source["seed"], STREAMS)
    sweeps, warmer = source["sweeps"], f"lower logit_scale (S = {source['logit_scale']})"
    _refuse_frozen(model, source, streams["probe"], threads)
    made = tested_splits(model, source, name, gibbs.sample, streams, threads, warmer)
    tokens = np.concatenate([one for one, _ in made.values()])
    found = equilibrium.measure(model, tokens, sweeps, streams["check"], threads)
    equilibrium.refuse_trapped(found, sweeps, warmer)
    model.save(hamiltonian, {**about, "equilibrium": found, "source": name})
    write_splits(made, model.vocabulary, {**about, "source": name}, out)


def trial(source: dict) -> tuple[Hamiltonian, list[tuple[Callable[[int], object], int]]]:
    """The Hamiltonian of a source, and for an estimate of its time what `make` does how often:
    moves chains, of which a call returns the tokens, tests sequences, and what it does once."""
    model, _ = draw(source)
    stream, sequences = streams_of(source["seed"], STREAMS)["probe"], source["sequences"].values()
    chains, once = equilibrium.effort(model)

    def moved(count: int) -> np.ndarray:
        return gibbs.sample(model, count, source["sweeps"], stream)[0]

    return model, [
        (moved, PROBES + chains + sum(sequences)),
        (lambda count: self_test(model, moved(2)[np.arange(count) % 2]), sum(sequences)),
        (lambda _: once(), 1),
    ]


def tested_splits(
    model: Hamiltonian,
    source: dict,
    name: str,
    sample: Callable,
    streams: dict[str, np.random.SeedSequence],
    threads: int,
    warmer: str,
) -> dict[str, tuple[np.ndarray, dict]]:
    """Tokens (N, L) of each split, and what their document says of the test that they passed.
    sample: that of `gibbs` or of `pair_gibbs`; warmer: as in `refuse_unequal`."""
    made = {}
    for split in SPLITS:
        count, label = source["sequences"][split], f"sample {name} {split}"
        tokens, changed, *_ = sample(model, count, source["sweeps"], streams[split], threads, label)
        test = self_test(model, tokens)
        refuse_unequal(test, split, source, warmer)
        made[split] = tokens, dict(self_test=test, changed=float(changed[-1]))
    return made


def write_splits(made: dict, vocabulary: int, about: dict, out: dict[str, str | Path]) -> None:
    """Writes what `tested_splits` made, with the share of held-out sequences that training has too
    (`repeated`): samples of a cold or small system recur."""
    for split, (tokens, found) in made.items():
        if split != "train":
            found["repeated"] = overlap.repeated(made["train"][0], tokens)
        sequences.write(out[split], tokens, vocabulary, {**about, **found, "split": split})


def draw(source: dict) -> tuple[Hamiltonian, dict]:
    """The Hamiltonian of a source, for any `sequences` and `sweeps`, and its document."""
    streams = streams_of(source["seed"], STREAMS)
    order, scale = source["order"], source["logit_scale"]
    couplings = _tensor(source, "couplings", source["length"], streams["couplings"])
    colours = _tensor(source, "colours", source["vocabulary"], streams["colours"])
    sigma = field_scale(couplings, colours)
    if not sigma > 0:
        raise SourceError(
            "couplings, colours: H is the same for all sequences (zero variance), so that no "
            "temperature gives it the logit_scale. Draw them with another seed, more vectors or "
            "another probability"
        )
    hamiltonian = Hamiltonian(couplings, colours, scale / sigma)
    keys = ("order", "length", "vocabulary", "couplings", "colours")
    about = dict(
        order=order, S=float(scale), sigma_h=sigma, beta=hamiltonian.beta, sweeps=source["sweeps"],
        shares=hamiltonian.shares().tolist(), parameters={key: source[key] for key in keys},
        seed=source["seed"],
    )  # fmt: skip
    return hamiltonian, about


def vectors_tensor(vectors: np.ndarray, order: int) -> np.ndarray:
    """(1/P) sum_p v_i^p v_j^p ...: vectors (P, n) -> (n,) * order, eq. 2."""
    count, size = vectors.shape
    powers = [np.ones((count, 1))]
    for _ in range((order + 1) // 2):
        powers.append((powers[-1][:, :, None] * vectors[:, None, :]).reshape(count, -1))
    return (powers[order // 2].T @ powers[order - order // 2]).reshape((size,) * order) / count


def _tensor(source: dict, key: str, size: int, stream: np.random.SeedSequence) -> np.ndarray:
    """J or U, (size,) * order."""
    order, interaction = source["order"], source[key]
    if interaction == "potts":
        tensor = np.zeros((size,) * order)
        tensor[(np.arange(size),) * order] = 1.0
    elif "file" in interaction:
        tensor = own_tensor(key, interaction["file"], (size,) * order)
    else:
        draws = np.random.default_rng(stream).random((interaction["vectors"], size))
        high, low = VARIABLES[interaction["variables"]]
        # Sums of whole numbers are exact, so J does not depend on the order of summation.
        tensor = vectors_tensor(np.where(draws < interaction["probability"], high, low), order)
        if key == "couplings":
            tensor[coincident(size, order)] = 0.0
    return tensor


def own_tensor(key: str, path: str, shape: tuple[int, ...]) -> np.ndarray:
    """J or U, the tensor `key` of the user's safetensors file, in double precision. `SourceError`
    names the key, the file and the entry that `check_tensor` refuses."""
    try:
        tensor = read_tensor(path, key).astype(np.float64)
        if tensor.shape != shape:
            raise ValueError(f"{key}: shape {tensor.shape}, expected {shape} for this source")
        check_tensor(key, tensor, distinct=key == "couplings")
    except (ArtifactError, ValueError) as error:
        raise SourceError(f"{path}: {error}", f"{key}.file") from error
    return tensor


def self_test(hamiltonian: Hamiltonian, tokens: np.ndarray) -> dict[str, float]:
    """Cross entropy of the true conditionals on tokens (N, L), their mean entropy, the difference
    and its standard error over sequences, all in nats per site."""
    cross, entropy = np.empty((2, len(tokens)))
    for start in range(0, len(tokens), BLOCK):
        part = slice(start, start + BLOCK)
        logs = hamiltonian.log_conditionals(tokens[part])
        cross[part] = -np.take_along_axis(logs, tokens[part, :, None], axis=2).mean(axis=(1, 2))
        entropy[part] = -(np.exp(logs) * logs).sum(axis=2).mean(axis=1)
    difference = cross - entropy
    return dict(
        cross_entropy=float(cross.mean()),
        entropy=float(entropy.mean()),
        difference=float(difference.mean()),
        standard_error=float(difference.std(ddof=1) / math.sqrt(len(tokens))),
    )


def refuse_unequal(test: dict[str, float], split: str, source: dict, warmer: str) -> None:
    """`SourceError` if cross entropy and entropy differ by more than `ERRORS` standard errors.
    `warmer` says, as part of a sentence, which key gives a higher temperature."""
    difference, sites = test["difference"], source["sequences"][split] * source["length"]
    # A colour so rare that it is expected at none of the sites adds to the entropy only.
    error = math.hypot(test["standard_error"], math.log(sites) / sites)
    if abs(difference) > ERRORS * error:
        raise SourceError(
            f"after {source['sweeps']} sweeps the {split} split is not a sample of the "
            f"Boltzmann distribution: the cross entropy of the true conditionals is "
            f"{test['cross_entropy']:.5f} nats a site, their mean entropy {test['entropy']:.5f}; "
            f"they differ by {difference:.5f}, expected 0 within {ERRORS:.0f} x the standard error "
            f"{error:.5f}. Give the chains more sweeps, or {warmer}",
            "sweeps",
        )


def _refuse_frozen(
    hamiltonian: Hamiltonian, source: dict, stream: np.random.SeedSequence, threads: int
) -> None:
    """`SourceError` with an S that would do, if chains at this temperature do not move."""
    sweeps = max(2, source["sweeps"])

    def moved(scale: float) -> float:
        """Share of visits in the second half of a short run that change a colour."""
        beta = hamiltonian.beta * scale / source["logit_scale"]
        hotter = Hamiltonian(hamiltonian.couplings, hamiltonian.colours, beta)
        _, changed = gibbs.sample(hotter, PROBES, sweeps, stream, threads, f"probe S = {scale:.3g}")
        return float(changed[sweeps // 2 :].mean())

    frozen = source["logit_scale"]
    share = moved(frozen)
    if share >= FROZEN:
        return
    moving = frozen / 2
    while moved(moving) < MOVING:
        frozen, moving = moving, moving / 2
    for _ in range(5):
        middle = math.sqrt(frozen * moving)
        frozen, moving = (frozen, middle) if moved(middle) >= MOVING else (middle, moving)
    raise SourceError(
        f"at S = {source['logit_scale']} the chains are frozen: {share:.2%} of the "
        f"visits change a colour, expected at least {FROZEN:.1%}. S = {moving:.2g} would do",
        "logit_scale",
    )
