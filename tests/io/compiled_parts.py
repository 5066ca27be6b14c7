"""Numbers from every family of compiled loops, in a process of its own: a digest each.

`python compiled_parts.py PART ...` prints {part: sha256 of its numbers} for those named.
"""

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow" / "src"))

import numpy as np


def energy_model() -> list:
    """Losses of the energy model and their gradients (models.energy)."""
    import torch

    from manybody.models import build

    found = []
    for order in (2, 3):
        torch.manual_seed(order)
        model = build({"architecture": "energy", "vocabulary": 5, "length": 9, "order": order})
        tokens = torch.randint(5, (70, 9))
        loss, _ = model.all_masked_loss(tokens)
        loss.sum().backward()
        found += [loss, model.couplings.grad, model.colours.grad]
    return found


def factored_model() -> list:
    """Losses of factored attention and their gradients (models.factored.loss)."""
    import torch

    from manybody.models.factored.loss import all_masked_loss, set_gradients

    found = []
    for layers in (1, 2, 3):
        torch.manual_seed(layers)
        attention = [torch.nn.Parameter(torch.randn(9, 9) / 3) for _ in range(layers)]
        values = [torch.nn.Parameter(torch.randn(7, 7) / 3) for _ in range(layers)]
        bias = torch.nn.Parameter(torch.randn(7))
        tokens = torch.randint(7, (70, 9))
        found.append(all_masked_loss(tokens, attention, values, bias)[0])
        found.append(set_gradients(tokens, 0.3, attention, values, bias)[0])
        found += [weight.grad for weight in (*attention, *values, bias)]
    return found


def factored_chains() -> list:
    """Ratios, logits and energies of chains (sampling.factored)."""
    import torch

    from manybody.models.factored.network import Factored
    from manybody.sampling.backends import open_chains

    found = []
    for layers, rank, dtype in [
        (1, 3, torch.float32),
        (2, 3, torch.float32),
        (2, None, torch.float64),
        (3, 3, torch.float32),
        (3, None, torch.float64),
        (4, 2, torch.float32),
    ]:
        for energy, gauge in [("raw", "none"), ("raw", "mean"), ("norm", "none")]:
            draw = torch.Generator().manual_seed(layers)
            model = Factored(19, 11, layers, rank=rank, bias=True).eval().to(dtype)
            with torch.no_grad():
                for weight in model.parameters():
                    weight.copy_(torch.randn(weight.shape, generator=draw) / 3)
            chains = open_chains(model, torch.randint(19, (13, 11), generator=draw), energy, gauge)
            every = torch.arange(13)
            for _ in range(8):
                sites = torch.randint(11, (13,), generator=draw)
                found.append(chains.logits(every, sites).clone())
                proposals = torch.randint(19, (13,), generator=draw)
                ratios, handle = chains.log_ratio(every, sites, proposals)
                chains.accept(handle, ratios > 0)
                found += [ratios.clone(), chains.tokens.clone(), chains.energy().clone()]
    return found


def heat_bath() -> list:
    """Conditionals and energies of chains by order (sampling.factored.by_order)."""
    import torch

    from manybody.models.factored.network import Factored
    from manybody.sampling.backends import open_chains
    from manybody.sampling.reference import Reference

    found, law = [], np.arange(1, 20) / 190
    for layers, rank, dtype in [(1, 3, torch.float32), (2, 3, torch.float32), (2, None, None)]:
        draw = torch.Generator().manual_seed(layers)
        model = Factored(19, 11, layers, rank=rank, bias=True).eval().to(dtype or torch.float64)
        with torch.no_grad():
            for weight in model.parameters():
                weight.copy_(torch.randn(weight.shape, generator=draw) / 3)
        tokens, every = torch.randint(19, (13, 11), generator=draw), torch.arange(13)
        chains = open_chains(model, tokens, "reference", reference=Reference(mu=law))
        for _ in range(8):
            sites = torch.randint(11, (13,), generator=draw)
            found += [chains.logits(every, sites), chains.conditionals(every, sites)]
            chains.replace(every, sites, torch.randint(19, (13,), generator=draw))
            found.append(chains.energy())
    return found


def gibbs() -> list:
    """Gibbs samples of orders 2 to 4 (sampling.gibbs_loops)."""
    from manybody.data import gibbs
    from manybody.data.many_body import draw

    found = []
    vectors = {"vectors": 20, "variables": "signs", "probability": 0.8}
    for order in (2, 3, 4):
        source = dict(
            order=order, length=9, vocabulary=7, couplings=vectors, colours=vectors,
            logit_scale=2.0, sweeps=10, seed=order,
        )  # fmt: skip
        found += gibbs.sample(draw(source)[0], 300, 5, np.random.SeedSequence(order))
    return found


def potts() -> list:
    """Samples and energies of Potts models, narrow and wide (data.pair_gibbs_loops)."""
    from manybody.data import pair_gibbs
    from manybody.data.hamiltonian import Hamiltonian

    found = []
    for length, vocabulary in ((12, 20), (70, 5)):
        draw = np.random.default_rng(length)
        couplings = np.triu(draw.standard_normal((length, length)), 1)
        colours = draw.standard_normal((vocabulary, vocabulary))
        hamiltonian = Hamiltonian(couplings + couplings.T, colours + colours.T, 0.3)
        run = pair_gibbs.sample(hamiltonian, 300, 5, np.random.SeedSequence(1), energies=True)
        found += [run.tokens, run.changed, run.energies]
    return found


def pseudolikelihood() -> list:
    """Fits of couplings to all masks (inference.site_loops)."""
    from manybody.training import pseudolikelihood as pl

    tokens = np.random.default_rng(1).integers(0, 6, (90, 8))
    counted = pl.Counted(tokens, 6)
    fit = pl.fit_heads(counted, iterations=12, fields=True)
    return [np.float64(fit.loss), fit.model.attention, fit.model.values, fit.model.fields]


def channels() -> list:
    """Posteriors of two and three layers (channel, channel_three)."""
    from benchmarks.quadrature import draw
    from manybody.theory.multi_index import channel, channel_three

    found = []
    for skip, activation in [(0.25, "softmax"), (1.0, "softmax"), (2.0, "linear")]:
        given = draw(6, np.array([[0.3, 0.15], [0.15, 0.7]]), skip, 3, activation)
        posterior = channel.posterior(*given, skip, activation)
        found += [posterior.log_z, posterior.mean, posterior.covariance]
    z = np.random.default_rng(2).normal(size=(2, 6, 3, 2))
    nodes = channel_three.points(6, 256, np.random.SeedSequence(3))
    variance = np.array([0.4, 0.5, 0.6])
    x = channel_three.index(z[0] / 2 + z[1] * np.sqrt(variance)[:, None], 1.0)
    posterior = channel_three.posterior(x, z[0] / 2, variance, 1.0, nodes)
    return [*found, posterior.log_z, posterior.mean]


def descent() -> list:
    """Stochastic gradient descent on two-layer attention (theory.multi_index.sgd)."""
    from manybody.theory.multi_index import sgd

    entry = dict(
        skip=1.0, dimension=37, alpha=3.3, batch=25, repeats=3, learning_rate=15.0,
        weight_decay=0.07, init_scale=0.9, epochs=7, runs=2, same_teacher=False, seed=0, threads=1,
    )  # fmt: skip
    frame, _ = sgd.compute(entry)
    return [frame["y"].to_numpy()]


PARTS = {
    part.__name__: part
    for part in (
        energy_model, factored_model, factored_chains, heat_bath, gibbs, potts, pseudolikelihood,
        channels, descent,
    )
}  # fmt: skip


def digest(numbers: list) -> str:
    total = hashlib.sha256()
    for array in numbers:
        array = np.ascontiguousarray(getattr(array, "detach", lambda array=array: array)())
        assert array.size
        assert np.isfinite(array).all()
        total.update(f"{array.dtype} {array.shape}\n".encode() + array.tobytes())
    return total.hexdigest()


if __name__ == "__main__":
    print(json.dumps({part: digest(PARTS[part]()) for part in sys.argv[1:]}))
