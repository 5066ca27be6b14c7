"""Energies without the factor k: heat bath against Metropolis-Hastings.

Heat bath and our own compiled Metropolis-Hastings chains draw from the same target, exp(-beta E) of
a two-layer model with random weights; what is compared is effective samples of E a second, each
sampler started where heat bath has forgotten its start. `SPREAD` nats of variation of the logits
and beta make a disordered target in which more than half of the real moves are refused; the log
says how many.
"""

import logging
from functools import partial

import numpy as np
import torch

from benchmarks.clones import realistic, zipf
from benchmarks.harness import row, timed
from manybody.io.devices import torch_threads
from manybody.sampling.backends import open_chains
from manybody.sampling.diagnostics import settled
from manybody.sampling.draws import Draws
from manybody.sampling.metropolis import advance
from manybody.sampling.redraw import redraw

log = logging.getLogger(__name__)
TWO_LAYERS = dict(architecture="factored", vocabulary=400, length=16, layers=2, rank=32)
AGREEMENT = 0.02  # how often two tokens of a text agree; see `clones.zipf`
SPREAD = 1.5
BETA = 0.5
CHAINS, WARM, SWEEPS = 96, 20, 200


def measure(threads: int = 1) -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads`."""
    with torch_threads(threads), torch.no_grad():
        return [heat_bath(energy) | {"threads": threads} for energy in ("raw", "reference")]


def heat_bath(energy: str) -> dict:
    """Effective samples of E a second."""
    model, starts = realistic(TWO_LAYERS, CHAINS, AGREEMENT, SPREAD)
    mu = zipf(model.vocabulary, AGREEMENT)
    betas = np.full(len(starts), BETA)

    def run(sampler, step, tokens, sweeps, first):
        chains = open_chains(model, tokens, energy, sampler=sampler, mu=mu)
        draws = Draws(7, len(tokens), model.length, "permuted")
        visits, uniforms = draws.sweeps(range(first, first + sweeps))
        step(chains, visits[:, :1], uniforms[:, :1], tokens.numpy(), betas=betas)  # compiled
        chains = open_chains(model, tokens, energy, sampler=sampler, mu=mu)
        move = partial(step, chains, visits, uniforms, tokens.numpy(), betas=betas)
        return *timed(move)[:2], chains.tokens

    *_, starts = run("heat-bath", redraw, starts, WARM, 1)
    rates = {}
    for sampler, step in (("heat-bath", redraw), ("mh", advance)):
        record, spent, _ = run(sampler, step, starts, SWEEPS, WARM + 1)
        found = settled(record.energies)
        rates[sampler] = found["effective_samples"] / (spent / 2)
        real = record.same.size * model.length - record.same.sum()
        log.info(
            "%s, %s: %.2f of the real moves accepted, tau %.1f sweeps, R-hat %.3f, %.2f ms a step",
            energy, sampler, record.accepted.sum() / real, found["autocorrelation"],
            found["rhat"], spent * 1e3 / SWEEPS / model.length,
        )  # fmt: skip
    return row(f"heat bath, n=2, {energy}", rates["heat-bath"], rates["mh"], "effective samples/s")
