"""Exact answers under figure 2 of the Potts paper: identities of its model and of its losses.

`compute` returns one number a row, quantities

- `conditional`: largest difference between the conditionals (5) and ratios of full Boltzmann
  weights (1), random J and U;
- `masked loss`: masked prediction with a factored layer, A free or softmax, every site masked in
  its own copy or all of them at once, minus the pseudo-likelihood written on its own;
- `gauge`: change of that loss under (A, V) -> (-2 A, -V / 2) and V -> V + 1 w^T.

(potts, sections 1, 2 and 6)
"""

import math

import numpy as np
import pandas as pd
import torch
from torch.nn import functional

from manybody.data.hamiltonian import Hamiltonian
from manybody.models import build
from manybody.models.base import Model
from manybody.models.objectives import sequence_sums
from manybody.training.batches import spawn, torch_seed
from manybody.training.pseudolikelihood import Heads, losses

LENGTH, VOCABULARY = 20, 20
SEQUENCES = 200
ENERGIES = 8  # sequences of which every single change is weighed


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of all quantities and what was calculated; `entry["seed"]` draws everything."""
    seed = entry["seed"]
    rng = np.random.default_rng(spawn(seed, "potts exact"))
    rows = [("conditional", "random J and U", conditional_error(rng))]
    tokens = rng.integers(0, VOCABULARY, (SEQUENCES, LENGTH))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(torch_seed(seed, "potts exact weights"))
        for attention in ("free", "softmax"):
            model = factored(attention)
            reference = pseudolikelihood(model, tokens)
            for how, loss in masked_losses(model, tokens).items():
                rows.append(("masked loss", f"{attention} A, {how}", abs(loss - reference)))
            maps = model.mixing(0).numpy() * (1 - np.eye(LENGTH))
            heads = Heads(maps[None], model.left[0].numpy()[None], np.zeros((LENGTH, VOCABULARY)))
            compiled = float(losses(heads, tokens).mean())
            rows.append(("masked loss", f"{attention} A, compiled sums", abs(compiled - reference)))
        model = factored("free")
        before = masked_losses(model, tokens)["explicit masks"]
        for name, change in {"scale -2": _rescale, "column shift": _shift}.items():
            changed = factored("free")
            changed.load_state_dict(model.state_dict())
            change(changed, rng)
            after = masked_losses(changed, tokens)["explicit masks"]
            rows.append(("gauge", name, abs(after - before)))
    frame = pd.DataFrame(rows, columns=["quantity", "series", "y"])
    frame = frame.assign(x=float(LENGTH), y_err=0.0, seed=seed)
    sizes = dict(length=LENGTH, vocabulary=VOCABULARY, sequences=SEQUENCES, energies=ENERGIES)
    return frame, dict(**sizes, seed=seed)


def factored(attention: str) -> Model:
    """One factored layer in double precision with random weights of order one."""
    sizes = dict(vocabulary=VOCABULARY, length=LENGTH, layers=1, rank=None, bias=False)
    description = dict(architecture="factored", variant="exact", attention=attention, **sizes)
    model = build(description).double().eval()
    model.attention[0].copy_(torch.randn(LENGTH, LENGTH) / math.sqrt(LENGTH))
    model.left[0].copy_(torch.randn(VOCABULARY, VOCABULARY))
    return model


def conditional_error(rng: np.random.Generator) -> float:
    """Conditionals of a random model and weights exp(-beta H) of every single change of a site."""
    couplings = rng.standard_normal((LENGTH, LENGTH)) / math.sqrt(LENGTH)
    couplings = np.triu(couplings, 1) + np.triu(couplings, 1).T
    colours = rng.standard_normal((VOCABULARY, VOCABULARY))
    colours = (colours + colours.T) / math.sqrt(2)
    beta = 1.7
    tokens = rng.integers(0, VOCABULARY, (ENERGIES, LENGTH))
    found = np.exp(Hamiltonian(couplings, -colours / 2, beta).log_conditionals(tokens))
    worst = 0.0
    for site in range(LENGTH):
        changed = np.repeat(tokens[:, None], VOCABULARY, axis=1)  # (N, |V|, L)
        changed[:, :, site] = np.arange(VOCABULARY)
        pairs = colours[changed[..., :, None], changed[..., None, :]]
        energies = -np.einsum("ij,ncij->nc", couplings, pairs) / 2
        weights = np.exp(-beta * (energies - energies.min(axis=1, keepdims=True)))
        ratios = weights / weights.sum(axis=1, keepdims=True)
        worst = max(worst, float(np.abs(ratios - found[:, site]).max()))
    return worst


def pseudolikelihood(model: Model, tokens: np.ndarray) -> float:
    """-(1/(M L)) sum over sequences and sites of log p(s_k | rest), sums written out."""
    maps, values = model.mixing(0).numpy(), model.left[0].numpy()
    total = 0.0
    for k in range(LENGTH):
        logits = np.zeros((len(tokens), VOCABULARY))
        for j in range(LENGTH):
            if j != k:
                logits += maps[k, j] * values[:, tokens[:, j]].T
        highest = logits.max(axis=1)
        norms = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
        total += float((norms - logits[np.arange(len(tokens)), tokens[:, k]]).sum())
    return total / tokens.size


def masked_losses(model: Model, tokens: np.ndarray) -> dict[str, float]:
    """Masked loss in nats per token: one masked copy for each site, and all sites at once."""
    numbers = torch.from_numpy(tokens)
    copies = numbers.repeat_interleave(LENGTH, dim=0)
    mask = torch.eye(LENGTH, dtype=torch.bool).repeat(len(tokens), 1)
    logits = model(copies, mask)[mask]
    sums = sequence_sums(model, numbers)
    return {
        "explicit masks": float(functional.cross_entropy(logits, numbers.ravel())),
        "all masks at once": float(sums.loss_sum.double().sum() / sums.predictions.sum()),
    }


def _rescale(model: Model, rng: np.random.Generator) -> None:
    model.attention[0].mul_(-2.0)
    model.left[0].div_(-2.0)


def _shift(model: Model, rng: np.random.Generator) -> None:
    model.left[0].add_(torch.from_numpy(rng.standard_normal(VOCABULARY)))
