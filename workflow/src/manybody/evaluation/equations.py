"""Loss of each held-out sequence by the equations themselves, so that models can be paired.

Histories hold means over sequences only. What factored attention (potts, eq. 4) and the
interpolation (eq. 2) lose on one sequence follows from a few matrices; numpy only, double
precision. Losses are nats per token, every site masked in turn. N sequences, L sites.
"""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from manybody.evaluation.contacts import factors
from manybody.files.manifest import Manifest
from manybody.files.sequences import Sequences
from manybody.sources.hamiltonian import Hamiltonian, read_tensor

BLOCK = 2**22  # logits held at a time
# One layer and one head of factored attention without bias: the loss is that of A and V.
PLAIN = {"architecture": "factored", "layers": 1, "heads": 1, "bias": False}


def evaluate(
    manifests: Iterable[str | Path], validation: str | Path, energy: str | Path
) -> pd.DataFrame:
    """Loss of each sequence of a validation split, in the columns of a table of theory.

    manifests: of runs on one source; a run that diverged, or that no equation here is about, has no
    rows. energy: the source's Hamiltonian. A row a sequence, its number in x, its loss in y:
    quantity `optimum`, the true conditionals; `loss`, the last checkpoint of the model that the
    series names.
    """
    tokens = Sequences.open(validation).tokens
    frames = [rows("optimum", "", 0, of_truth(Hamiltonian.load(energy), tokens))]
    for path in manifests:
        run = Manifest.read(path, "model")
        each = None if "diverged" in run.about else _of_run(run, tokens)
        if each is not None:
            frames.append(rows("loss", run.about["model"], run.about["seed"], each))
    return pd.concat(frames, ignore_index=True)


def rows(quantity: str, series: str, seed: int, each: np.ndarray) -> pd.DataFrame:
    about = {"quantity": quantity, "series": series, "seed": seed}
    return pd.DataFrame({**about, "x": np.arange(len(each)), "y": each, "y_err": math.nan})


def _of_run(run: Manifest, tokens: np.ndarray) -> np.ndarray | None:
    """Losses (N,) of a run's last checkpoint; None where no equation here gives them."""
    description = {"heads": 1, **run.about["description"]}
    if all(description.get(key) == value for key, value in PLAIN.items()):
        (attention,), (values,) = factors(run)
        return of_factored(attention, values, tokens)
    if description["architecture"] != "interpolated":
        return None
    weights, a = run.file(f"step-{run.about['steps'][-1]}.safetensors"), description["a"]
    names = ("scores", "values", "mask") if a else ("scores", "values")
    scores, values, *mask = (read_tensor(weights, name).astype(np.float64) for name in names)
    return of_interpolation(a, scores, values, mask[0] if a else None, tokens)


def of_truth(law: Hamiltonian, tokens: np.ndarray) -> np.ndarray:
    """Loss of the true conditionals (5) on each of tokens (N, L): (N,)."""
    return _in_blocks(tokens, law.vocabulary, law.log_conditionals)


def of_factored(attention: np.ndarray, values: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Loss of logits_k = sum_{j != k} A_kj V s_j (4) on each of tokens (N, L): (N,).

    attention: A (L, L), of which the diagonal is not looked at. values: V (|V|, |V|).
    """
    others = np.where(np.eye(len(attention), dtype=bool), 0.0, attention)
    return _in_blocks(tokens, len(values), lambda part: _log_softmax(others @ values.T[part]))


def of_interpolation(
    a: float, scores: np.ndarray, values: np.ndarray, mask: np.ndarray | None, tokens: np.ndarray
) -> np.ndarray:
    """Loss of eq. 2 with parameter a on each of tokens (N, L): (N,).

    scores: W (d, d). values: V (|V|, d). mask: (d,), what stands for the masked token's one-hot;
    None at a = 0, where that is zero. Position and token share the first entries of R^d.
    """
    length = tokens.shape[1]
    hidden = np.zeros(len(scores)) if mask is None else mask

    def logs(part: np.ndarray) -> np.ndarray:
        found = np.empty((*part.shape, len(values)))
        for k in range(length):
            asked = a * hidden
            asked[k] += 1.0
            keys = asked @ scores  # u_k^T W
            match = keys[:length] + a * keys[part]
            match[:, k] = keys[k] + a * (keys @ hidden)
            maps = np.exp(_log_softmax(match))
            sent = values.T[part]  # V e_j
            sent[:, k] = values @ hidden
            found[:, k] = np.einsum("nj,njc->nc", maps, sent) + a * maps @ values[:, :length].T
        return _log_softmax(found)

    return _in_blocks(tokens, len(values), logs)


def _in_blocks(tokens: np.ndarray, vocabulary: int, logs) -> np.ndarray:
    """Mean over sites of -log p of the tokens; logs(part) is (n, L, |V|)."""
    tokens = np.asarray(tokens, np.int64)
    step = max(1, BLOCK // (tokens.shape[1] * vocabulary))
    found = np.empty(len(tokens))
    for start in range(0, len(tokens), step):
        part = tokens[start : start + step]
        own = np.take_along_axis(logs(part), part[:, :, None], axis=2)
        found[start : start + step] = -own[:, :, 0].mean(axis=1)
    return found


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
