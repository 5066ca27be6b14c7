"""Energies without the factor k: heat bath against Metropolis-Hastings, paths against all terms.

Heat bath and our own compiled Metropolis-Hastings chains draw from the same target, exp(-beta E) of
a two-layer model with random weights; what is compared is effective samples of E a second, each
sampler started where heat bath has forgotten its start. `SPREAD` nats of variation of the logits
and beta make a disordered target in which more than half of the real moves are refused; the log
says how many. Chains of frozen paths are compared with chains that compute all L terms of each path
for a proposal, and make the same moves.
"""

import logging
import statistics
from functools import partial

import numpy as np
import torch

from benchmarks.clones import CASES, realistic, zipf
from benchmarks.harness import row, seconds, timed
from manybody.io.devices import torch_threads
from manybody.sampling.backends import open_chains
from manybody.sampling.diagnostics import settled
from manybody.sampling.draws import Draws
from manybody.sampling.metropolis import advance
from manybody.sampling.redraw import redraw
from manybody.sampling.reference import PathChains, Reference, draw_paths

log = logging.getLogger(__name__)
TWO_LAYERS = dict(architecture="factored", vocabulary=400, length=16, layers=2, rank=32)
BERT = CASES["bert small"][0]
AGREEMENT = 0.02  # how often two tokens of a text agree; see `clones.zipf`
SPREAD = 1.5
BETA = 0.5
CHAINS, WARM, SWEEPS = 96, 20, 200
PATHS, STEPS, BLOCKS = 4, 16, 5


def measure(threads: int = 1) -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads`."""
    with torch_threads(threads), torch.no_grad():
        rows = [*map(heat_bath, ("raw", "reference")), paths()]
    return [found | {"threads": threads} for found in rows]


def heat_bath(energy: str) -> dict:
    """Effective samples of E a second."""
    model, starts = realistic(TWO_LAYERS, CHAINS, AGREEMENT, SPREAD)
    reference = Reference(mu=zipf(model.vocabulary, AGREEMENT))
    betas = np.full(len(starts), BETA)

    def run(sampler, step, tokens, sweeps, first):
        chains = open_chains(model, tokens, energy, sampler=sampler, reference=reference)
        draws = Draws(7, len(tokens), model.length, "permuted")
        visits, uniforms = draws.sweeps(range(first, first + sweeps))
        step(chains, visits[:, :1], uniforms[:, :1], tokens.numpy(), betas=betas)  # compiled
        chains = open_chains(model, tokens, energy, sampler=sampler, reference=reference)
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


def paths() -> dict:
    """Steps a second of chains of BERT under the mean of frozen paths, medians over blocks."""
    model, starts = realistic(BERT, 8, AGREEMENT, spread=None)
    frozen = draw_paths(model.length, PATHS, 7, zipf(model.vocabulary, AGREEMENT))
    rates: dict[type, list[float]] = {PathChains: [], AllTerms: []}
    draws = Draws(7, 8, model.length, "permuted")
    for block in range(BLOCKS + 1):
        visits, uniforms = draws.sweeps(range(block + 1, block + 2))
        states = []
        for kind, found in rates.items():
            chains = kind(model, starts, frozen)
            given = visits[..., :STEPS], uniforms[:, :, :STEPS], starts.numpy()
            found.append(8 * STEPS / seconds(advance, chains, *given))
            states.append(chains.tokens)
        if not torch.equal(*states):
            raise RuntimeError("paths: the samplers made different moves")
    ours, baseline = (statistics.median(found[1:]) for found in rates.values())
    return row("paths, bert small", ours, baseline, "chain-steps/s")


class AllTerms(PathChains):
    """The same moves with every term of every path computed anew for a proposal."""

    def log_ratio(self, chains, positions, proposals):
        tokens = self.tokens[chains]
        current = tokens.gather(1, positions[:, None])[:, 0]
        tokens.scatter_(1, positions[:, None], proposals[:, None])
        shape = (len(chains), *self.orders.shape)
        each = torch.arange(np.prod(shape))
        of, rest = each // self.orders.numel(), each % self.orders.numel()
        _, scores = self._terms(tokens[of], rest // shape[2], rest % shape[2])
        rise = (scores.view(shape) - self.scores[chains]).sum((1, 2)) / shape[1]
        here = self._copy(chains, positions)[:, None].expand(-1, 2, -1)
        drawn = self.model.head_rows(here, torch.stack([current, proposals], 1)).double()
        return rise + drawn[:, 0] - drawn[:, 1], (chains, tokens, scores.view(shape))

    def accept(self, handle, accepted):
        chains, tokens, scores = (part[accepted] for part in handle)
        self.tokens[chains], self.scores[chains], self.asked[chains] = tokens, scores, -1
