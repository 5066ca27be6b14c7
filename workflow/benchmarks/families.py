"""Full couplings of a family by `pair_fit` against sixty lines of torch.

The baseline is what a competent user writes: one-hot sequences, one matrix product for all logits,
J symmetrised inside the loss, the same penalty and start, L-BFGS with a strong Wolfe line search.
Seconds are those of the processor, on one core, until the objective is no higher than the
baseline's after its 60 iterations; then those of one pass.
"""

import math
import time

import numpy as np
import torch
from torch.nn import functional

from benchmarks.harness import row, timed
from benchmarks.inverse_potts import dense
from manybody.data.pair_model import PairModel
from manybody.io.devices import torch_threads
from manybody.sampling import pair_chains
from manybody.training import pair_fit
from manybody.training.descent import minimise

ITERATIONS = 60
SEQUENCES, LENGTH, SWEEPS = 1500, 80, 60
# Colours of a protein and of an RNA, with the gap.
VOCABULARIES = {"protein": 21, "RNA": 5}


def measure() -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads` of two planted families."""
    rows = []
    for kind, vocabulary in VOCABULARIES.items():
        tokens = planted(LENGTH, vocabulary, SEQUENCES)
        rows += compare(f"{kind}, L = {LENGTH}, N = {SEQUENCES}", tokens, vocabulary)
    return rows


def planted(length: int, vocabulary: int, sequences: int) -> np.ndarray:
    """Tokens (N, L) of a Potts model with a coupled pair a site and fields that prefer a colour."""
    couplings = dense(length, vocabulary, length, 4)
    fields = 1.5 * np.random.default_rng(4).normal(size=(length, vocabulary))
    return pair_chains.sample(PairModel(fields, couplings, {}), sequences, SWEEPS, 5)


def compare(what: str, tokens: np.ndarray, vocabulary: int, weights=None) -> list[dict]:
    """Rows of sequences (N, L) with weights (N,)."""
    weights = np.ones(len(tokens)) if weights is None else weights
    with torch_threads(1):
        seen = baseline(tokens, vocabulary, weights)
    family = pair_fit.Family(tokens, vocabulary, weights)
    strengths = pair_fit.penalty(family), pair_fit.STRENGTH
    pair_fit.solve(family, strengths, iterations=1)  # compiles
    begin, least = time.process_time(), seen[-1][1]
    form = pair_fit.Pairs(pair_fit.Family(tokens, vocabulary, weights))
    objective, vector = pair_fit.Objective(form, strengths), form.start()
    mine = []

    def reached(value: float) -> None:
        if value <= least and not mine:
            mine.append(time.process_time() - begin)

    scale = form.scale(vector, strengths)
    minimise(objective, vector, scale, ITERATIONS, history=pair_fit.HISTORY, callback=reached)
    passes = [timed(objective, vector, np.empty_like(vector))[2] for _ in range(3)]
    other = np.diff([seconds for seconds, _ in seen])
    took = mine[0] if mine else math.inf
    return [
        row(f"{what}, to the baseline's objective", 1 / took, 1 / seen[-1][0], "fits/s"),
        row(f"{what}, one pass", 1 / np.median(passes), 1 / np.median(other), "passes/s"),
    ]


def baseline(tokens, vocabulary: int, weights) -> list[tuple[float, float]]:
    """Seconds and objective of every pass of the baseline."""
    length, tokens = tokens.shape[1], torch.as_tensor(np.asarray(tokens, np.int64))
    weights = torch.as_tensor(weights, dtype=torch.float32)
    x = functional.one_hot(tokens, vocabulary).float().flatten(1)
    fields = torch.log((weights @ x).view(length, vocabulary) + 1)
    fields = (fields - fields.mean(1, keepdim=True)).requires_grad_()
    couplings = torch.zeros(x.shape[1], x.shape[1], requires_grad=True)
    others = 1 - torch.kron(torch.eye(length), torch.ones(vocabulary, vocabulary))
    strength = pair_fit.STRENGTH * (length - 1) * (vocabulary - 1)
    optimizer = torch.optim.LBFGS(
        [fields, couplings],
        max_iter=ITERATIONS,
        max_eval=10 * ITERATIONS,
        history_size=10,
        tolerance_grad=0,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )
    seen, begin = [], time.process_time()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        symmetric = (couplings + couplings.T) / 2 * others
        logits = (x @ symmetric).view(-1, length, vocabulary) + fields
        losses = functional.cross_entropy(logits.flatten(0, 1), tokens.flatten(), reduction="none")
        objective = weights @ losses.view(-1, length).sum(1)
        objective = objective + strength / 2 * symmetric.square().sum()
        objective = objective + pair_fit.STRENGTH * fields.square().sum()
        objective.backward()
        seen.append((time.process_time() - begin, objective.item()))
        return objective

    optimizer.step(closure)
    # What an L-BFGS keeps is its best; the last pass may be a look ahead.
    return [*seen[:-1], (seen[-1][0], min(value for _, value in seen))]
