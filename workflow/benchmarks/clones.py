"""Gain of the exact savings in a Metropolis-Hastings step: clones against naive chains.

Both samplers make the same moves: the same model, start, positions and uniform numbers. Weights
are random, scaled so that the logits vary by `SPREAD` nats with the context; the output bias is
Zipf's law with the exponent at which two independent draws agree with probability `AGREEMENT`, and
starts are drawn from it. So about as many proposals equal the current token as on text, which
costs neither sampler an energy, and some of the others are refused.
"""

import statistics
import time
from itertools import chain

import numpy as np
import torch
from scipy.optimize import brentq

from benchmarks.harness import peak_flops, row
from benchmarks.naive import NaiveSampler
from manybody import models
from manybody.io.devices import torch_threads
from manybody.sampling.backends import open_chains
from manybody.sampling.draws import Draws
from manybody.sampling.metropolis import advance

AGREEMENT = 0.5
SPREAD = 0.5

# what -> model, chains, steps of all chains in a block, blocks
CASES = {
    "n=2": (
        dict(architecture="factored", vocabulary=500, length=64, layers=2, rank=100), 8, 64, 2,
    ),
    "n=3": (
        dict(architecture="factored", vocabulary=500, length=32, layers=3, rank=32), 4, 32, 5,
    ),
    "n=4": (
        dict(architecture="factored", vocabulary=2000, length=32, layers=4, rank=32), 4, 16, 5,
    ),
    "n=6": (
        dict(architecture="factored", vocabulary=500, length=36, layers=6, rank=64), 8, 18, 5,
    ),
    "bert small": (
        dict(
            architecture="bert", vocabulary=400, length=16, layers=2, heads=4, width=64, mlp=128
        ), 8, 32, 5,
    ),
    "bert large": (
        dict(
            architecture="bert", vocabulary=10_000, length=128, layers=4, heads=16, width=768,
            mlp=1536,
        ), 8, 1, 1,
    ),
}  # fmt: skip


def measure(
    what: list[str] | None = None, energies: tuple[str, ...] = ("raw", "norm"), threads: int = 1
) -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads` in chain-steps/s, medians over blocks.

    `what` names cases (default: all); the norm score's rows end in " norm". Where the operations of
    a proposal are counted, a row more has those done a second and the core's peak.
    """
    with torch_threads(threads), torch.no_grad():
        rows = [_rows(name, energy, threads) for name in what or CASES for energy in energies]
    return list(chain.from_iterable(rows))


def operations(sizes: dict, energy: str) -> int:
    """Operations of the matrix products of one proposal: the least number that the form of
    `sampling.factored` needs for the norm score of two or three layers, and of six; else 0."""
    layers, norm = sizes["layers"], energy == "norm"
    if sizes["architecture"] != "factored" or not (layers == 6 or (norm and layers < 4)):
        return 0
    length, rank = sizes["length"], sizes["rank"]
    pairs, wide = length**2 * rank, length * sizes["vocabulary"] * rank
    if layers == 6:  # all copies but one, whose four inner layers go through all channels and back
        changed = (length - 1) * (4 * (2 * wide + pairs) + wide // length)
    elif layers == 3:  # tables with the step, with all tokens; `along`; the last square's sums
        changed = 2 * (rank**3 + length * rank**2 + pairs) + pairs * rank + length * rank**3
    else:  # `along` alone, as pairs of tokens are tabled
        changed = pairs
    return 2 * (changed + norm * wide)


def _rows(name: str, energy: str, threads: int) -> list[dict]:
    description, count, steps, blocks = CASES[name]
    model, initial = realistic(description, count)
    rates, alike = ([], []), []
    # Block 0 warms both up, but where a single step takes a minute. Each block starts anew: chains
    # that move for long get colder than text.
    warm = steps > 1
    for block in range(blocks + warm):
        naive = NaiveSampler(model, initial, energy)
        chains = open_chains(model, initial, energy)
        visits, uniforms = _numbers(block, count, model.length, steps)
        begin = time.perf_counter()
        for step in range(steps):
            naive.step(int(visits[0, step]), uniforms[:, step])
        middle = time.perf_counter()
        record = advance(chains, visits[:, None], uniforms[:, None], initial.numpy())
        end = time.perf_counter()
        if not torch.equal(chains.tokens, naive.tokens):
            raise RuntimeError(f"{name}, {energy}: the samplers made different moves")
        if block >= warm:
            rates[0].append(count * steps / (end - middle))
            rates[1].append(count * steps / (middle - begin))
            alike.append(record.same.sum() / record.same.size / steps)
    ours, baseline = (statistics.median(rate) for rate in rates)
    what = name if energy == "raw" else f"{name} {energy}"
    rows = [row(what, ours, baseline, "chain-steps/s", threads)]
    if counted := operations(description, energy):
        done = float(ours * (1 - statistics.mean(alike)) * counted)
        rows.append(row(f"{what}, of the peak", done, peak_flops(), "operations/s", threads))
    return rows


def realistic(
    description: dict, count: int, agreement: float = AGREEMENT, spread: float = SPREAD
) -> tuple[models.base.Model, torch.Tensor]:
    """A model with seeded random weights and Zipf's law in its bias, and `count` starts from
    it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = models.build(description).eval()
    probabilities = zipf(description["vocabulary"], agreement)
    generator = np.random.default_rng(7)
    initial = generator.choice(len(probabilities), (count, description["length"]), p=probabilities)
    initial = torch.from_numpy(initial)
    bert = description["architecture"] == "bert"
    weight, bias = (
        (model.output.weight, model.output.bias) if bert else (model.left[-1], model.bias)
    )
    with torch.no_grad():
        rows = torch.arange(count)
        logits = model.masked_logits(initial, rows, torch.zeros_like(rows))
        weight.mul_(spread / logits.std(dim=0).mean())
        bias.copy_(torch.from_numpy(np.log(probabilities)))
    return model, initial


def zipf(vocabulary: int, agreement: float) -> np.ndarray:
    """Probabilities (|V|,) of Zipf's law under which two draws agree with that probability."""
    ranks = np.arange(1, vocabulary + 1, dtype=np.float64)

    def law(exponent: float) -> np.ndarray:
        return ranks**-exponent / (ranks**-exponent).sum()

    return law(brentq(lambda exponent: (law(exponent) ** 2).sum() - agreement, 0, 10))


def _numbers(block: int, count: int, length: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions (C, steps) and uniforms (C, steps, 2) of a block that goes on left to right."""
    first = block * steps
    sweeps = range(first // length + 1, (first + steps - 1) // length + 2)
    visits, uniforms = Draws(7, count, length, "left-to-right").sweeps(sweeps)
    chosen = slice(first % length, first % length + steps)
    return visits.reshape(count, -1)[:, chosen], uniforms.reshape(count, -1, 2)[:, chosen]
