"""Exact answers under figure 2: identities of factored attention and of many-body sampling.

`compute` returns one number a row, quantities

- `degree above`, `degree top`: the logits of n layers are polynomials of degree 2^(n-1) in the
  other tokens: the largest coefficient above it, and of it, over the largest logit;
- `masking single`, `masking double`: largest difference between the logits of all L masks at once
  and those of explicit masking, over the largest logit, in single and in double precision;
- `gibbs`: total variation between the states of many chains after x sweeps and the enumerated
  Boltzmann law of order k, over what independent exact samples would have on average.

(many-body, sections 1, 4 and 6)
"""

import itertools
import math

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from manybody.data import gibbs, many_body
from manybody.data.hamiltonian import Hamiltonian
from manybody.models import build
from manybody.models.base import Model
from manybody.training.batches import spawn, torch_seed

DEPTHS = (1, 2, 3)
CONTEXT = 8  # other sites that take two colours each, in all 2^8 ways
LENGTH, VOCABULARY = 10, 5
INIT_SCALE = 1.0  # g of weights that make every degree visible
SEQUENCES = 64
SWEEPS = 10
CHAINS = 200_000
ENUMERATED = {  # 729 states
    "length": 6,
    "vocabulary": 3,
    "couplings": {"vectors": 1000, "variables": "signs", "probability": 0.8},
    "colours": "potts",
    "logit_scale": 2.0,
    "sweeps": SWEEPS,
}


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of all quantities and what was calculated; `entry["seed"]` draws everything."""
    seed = entry["seed"]
    rows = []
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        for layers in DEPTHS:
            torch.manual_seed(torch_seed(seed, "many-body exact weights", layers))
            description = {
                "architecture": "factored",
                "vocabulary": VOCABULARY,
                "length": LENGTH,
                "layers": layers,
                "rank": None,
                "bias": False,
                "variant": "exact",
                "init_scale": INIT_SCALE,
            }
            model = build(description).eval()
            series = f"n = {layers}"
            sequences = torch.randint(VOCABULARY, (SEQUENCES, LENGTH))
            rows.append(("masking single", series, LENGTH, masking_error(model, sequences)))
            model.double()
            rows.append(("masking double", series, LENGTH, masking_error(model, sequences)))
            sizes = coefficient_sizes(model, *two_colours(), position=0)
            degree = 2 ** (layers - 1)
            rows.append(("degree above", series, degree, sizes[degree + 1 :].max()))
            rows.append(("degree top", series, degree, sizes[degree]))
    for order in (2, 3, 4):
        hamiltonian, _ = many_body.draw({**ENUMERATED, "order": order, "seed": seed})
        stream = spawn(seed, "many-body exact chains", order)
        tokens, _ = gibbs.sample(hamiltonian, CHAINS, SWEEPS, stream)
        rows.append(("gibbs", f"k = {order}", SWEEPS, *total_variation(hamiltonian, tokens)))
    columns = ["quantity", "series", "x", "y", "y_err"]
    rows = [(*row, 0.0)[: len(columns)] for row in rows]
    frame = pd.DataFrame(rows, columns=columns).assign(seed=seed)
    sizes = dict(length=LENGTH, vocabulary=VOCABULARY, context=CONTEXT, sequences=SEQUENCES)
    return frame, dict(factored=sizes, enumerated={**ENUMERATED, "chains": CHAINS}, seed=seed)


def two_colours() -> tuple[Tensor, Tensor]:
    """Two sequences (L,) that differ at every site, and the sites (m,) at which both are tried."""
    first = torch.randint(VOCABULARY, (LENGTH,))
    second = (first + torch.randint(1, VOCABULARY, (LENGTH,))) % VOCABULARY
    return torch.stack([first, second]), 1 + torch.randperm(LENGTH - 1)[:CONTEXT]


def coefficient_sizes(model: Model, pair: Tensor, sites: Tensor, position: int) -> np.ndarray:
    """Largest coefficient of the logits that couples s of the `sites`, over the largest logit.

    The logits at `position`, masked, as a polynomial in m bits, each of which says which of the
    two sequences `pair` (2, L) a site takes its token from: the Moebius expansion over all 2^m
    assignments. Returns (m + 1,), for s = 0..m.
    """
    count = len(sites)
    bits = torch.tensor(list(itertools.product((0, 1), repeat=count)))
    tokens = pair[0].repeat(len(bits), 1)
    tokens[:, sites] = torch.where(bits == 1, pair[1, sites], pair[0, sites])
    rows = torch.arange(len(bits))
    logits = model.masked_logits(tokens, rows, torch.full_like(rows, position))
    coefficients = logits.detach().numpy().reshape(*(2,) * count, -1).copy()
    for axis in range(count):
        along = np.moveaxis(coefficients, axis, 0)
        along[1] -= along[0]
    largest = np.abs(coefficients.reshape(len(bits), -1)).max(axis=1)
    sizes = bits.sum(dim=1).numpy()
    found = np.array([largest[sizes == size].max() for size in range(count + 1)])
    return found / float(logits.abs().max())


def masking_error(model: Model, tokens: Tensor) -> float:
    """All L masked predictions of tokens (B, L) at once against one masked copy for each."""
    batch, length = tokens.shape
    together = model.head(model.all_masked_features(tokens))
    copies = tokens.repeat_interleave(length, dim=0)
    mask = torch.eye(length, dtype=torch.bool).repeat(batch, 1)
    explicit = model(copies, mask)[mask].view_as(together)
    return float((together - explicit).abs().max() / explicit.abs().max())


def total_variation(hamiltonian: Hamiltonian, tokens: np.ndarray) -> tuple[float, float]:
    """Total variation of sampled states (N, L) from the Boltzmann law, over its sampling floor.

    The floor is the mean for N independent exact samples, sum_s sqrt(p (1 - p) / (2 pi N)) in the
    Gaussian limit of the counts; the second number is their standard deviation over it.
    """
    length, vocabulary = hamiltonian.length, hamiltonian.vocabulary
    states = np.array(list(itertools.product(range(vocabulary), repeat=length)))
    logs = -hamiltonian.beta * hamiltonian.energies(states)
    probabilities = np.exp(logs - logs.max())
    probabilities /= probabilities.sum()
    numbers = tokens @ vocabulary ** np.arange(length - 1, -1, -1)
    counts = np.bincount(numbers, minlength=len(states))
    found = np.abs(counts / len(tokens) - probabilities).sum() / 2
    variance = probabilities * (1 - probabilities) / len(tokens)
    floor = np.sqrt(2 / math.pi * variance).sum() / 2
    spread = math.sqrt((1 - 2 / math.pi) * variance.sum()) / 2
    return float(found / floor), float(spread / floor)
