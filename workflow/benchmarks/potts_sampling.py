"""Speed of sampling Potts models, against adabmDCA's Gibbs sampler.

adabmDCA 1.0.0 moves all chains at one site at a time in PyTorch, in single precision: a product of
all couplings of the site with one-hot colours, softmax, one draw for each chain. It is used as it
prepares itself (a compiled script), with one thread, on the same J, U and beta and as many chains.
The package is needed here only: `envs/benchmarks.txt` pins it.

Models of families have a random block of couplings for every pair, as many sites and colours as an
RNA and a protein; there adabmDCA's Metropolis sampler, its default, is a second baseline.
"""

from functools import partial

import numpy as np
import torch

from benchmarks.harness import medians, row, seconds, timed
from manybody.data import pair_gibbs
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.pair_model import PairModel, of_pairs
from manybody.data.potts import contact_map, stored_colours
from manybody.io.devices import torch_threads
from manybody.sampling import pair_chains

BETA = 1.707  # Hamming distance 0.3
CHAINS = 5000
BLOCKS = 5
SWEEPS = 200  # of ours in a block, from uniform colours as a source is sampled
PEER_SWEEPS = 10  # of the peer's; what it draws does not change its speed
FAMILIES = {"RNA": (136, 5), "protein": (145, 21)}  # L and |V|
FAMILY_CHAINS, FAMILY_SWEEPS = 2048, 4


def measure() -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads` in updates/s (one site of one chain),
    medians over alternating blocks, one thread each.

    Raises `RuntimeError` if the peer takes more threads than one.
    """
    model = Hamiltonian(contact_map(20), -stored_colours() / 2, BETA)
    sides = [partial(_ours, model), partial(_peer, peer(), peer_parameters(model), BETA)]
    with torch_threads(1):
        ours, other = medians(sides, BLOCKS, warm=1)
    return [
        row("gibbs against adabmDCA", ours, other, "updates/s"),
        *[each for name in FAMILIES for each in family(name)],
    ]


def family(name: str) -> list[dict]:
    """The rows of one model with a block a pair."""
    (length, vocabulary), rng = FAMILIES[name], np.random.default_rng(0)
    pairs = 0.15 * rng.normal(size=(length * (length - 1) // 2, vocabulary, vocabulary))
    model = PairModel(rng.normal(size=(length, vocabulary)), of_pairs(pairs, length), {})
    coupled = torch.from_numpy(model.couplings.transpose(0, 2, 1, 3)).float().contiguous()
    parameters = dict(bias=torch.from_numpy(model.fields).float(), coupling_matrix=coupled)
    tables = pair_chains.Tables.of(model.fields, model.couplings)
    stream = np.random.SeedSequence(1)
    chains = pair_chains.Chains.begun(FAMILY_CHAINS, length, vocabulary, stream)
    made = FAMILY_CHAINS * FAMILY_SWEEPS * length
    sides = [lambda: made / seconds(chains.move, tables, FAMILY_SWEEPS)]
    peers = ("gibbs", "metropolis")
    given = parameters, 1.0, FAMILY_CHAINS, FAMILY_SWEEPS
    sides += [partial(_peer, peer(each), *given) for each in peers]
    with torch_threads(1):
        ours, *others = medians(sides, BLOCKS, warm=1)
    return [
        row(f"{name}, against adabmDCA's {each}", ours, other, "updates/s")
        for each, other in zip(peers, others, strict=True)
    ]


def peer(name: str = "gibbs"):
    """adabmDCA's sampler of that name for a CPU."""
    from adabmDCA.sampling import prepare_sampler

    return prepare_sampler(name, torch.device("cpu"))


def peer_parameters(model: Hamiltonian) -> dict[str, torch.Tensor]:
    """The peer's `bias` (L, q) and `coupling_matrix` (L, q, L, q), without beta, of a pair model;
    P ~ exp(beta (sum_i bias + sum_{i<j} coupling))."""
    coupled = -2.0 * np.einsum("ij,ab->iajb", model.couplings, model.colours)
    return dict(
        bias=torch.zeros(model.length, model.vocabulary),
        coupling_matrix=torch.from_numpy(coupled).float().contiguous(),
    )


def _ours(model: Hamiltonian) -> float:
    given = model, CHAINS, SWEEPS, np.random.SeedSequence(1), 1, "benchmark"
    return CHAINS * SWEEPS * model.length / seconds(pair_gibbs.sample, *given)


def _peer(
    sampler,
    parameters: dict[str, torch.Tensor],
    beta: float,
    count: int = CHAINS,
    sweeps: int = PEER_SWEEPS,
) -> float:
    length, vocabulary = parameters["bias"].shape
    numbers = torch.Generator().manual_seed(1)
    tokens = torch.randint(vocabulary, (count, length), generator=numbers)
    chains = torch.nn.functional.one_hot(tokens, vocabulary).float()
    sampler(chains, parameters, 1, beta)
    _, wall, busy = timed(sampler, chains, parameters, sweeps, beta)
    if busy > 1.2 * wall:
        raise RuntimeError(
            f"adabmDCA took {busy:.2f} s of processors in {wall:.2f} s: more than one thread. Set "
            "OMP_NUM_THREADS=1 and measure again"
        )
    return count * sweeps * length / wall
