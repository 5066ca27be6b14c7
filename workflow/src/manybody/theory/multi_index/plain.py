"""Errors of prediction of two-layer attention by plain Monte Carlo (multi-index, section 2).

Slow, and shares no code with what it is to check: samples are independent, every estimate is a mean
over them with nothing taken off, and its error that of a mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manybody.theory.multi_index.samples import Setting, mean_error


@dataclass(frozen=True)
class Value:
    """A mean over independent samples and its standard error."""

    value: float
    error: float


def errors(
    overlaps: Sequence[float], setting: Setting, count: int, seed: int
) -> tuple[Value, Value]:
    """Plug-in error E |y(Z) - y(omega)|^2 and that of the posterior mean, E |y - E[y | omega]|^2,
    half the squared distance of two y of one omega, at Q = diag(overlaps) <= I (section 2)."""
    q = np.asarray(overlaps, dtype=float)[:, None]
    generator = np.random.default_rng(seed)
    found = []
    for start in range(0, count, 2**18):
        size = min(2**18, count - start)
        omega = np.sqrt(q) * generator.standard_normal((size, 2, 2))
        one, two = (
            omega + np.sqrt(1 - q) * generator.standard_normal((size, 2, 2)) for _ in range(2)
        )
        mine, one, two = (_outputs(z, setting) for z in (omega, one, two))
        far, near = ((one - mine) ** 2).sum((1, 2)), ((one - two) ** 2).sum((1, 2)) / 2
        found.append(np.stack([far, near]))
    each = np.concatenate(found, axis=1)
    return tuple(Value(*map(float, mean_error(part))) for part in each)


def _outputs(z: np.ndarray, setting: Setting) -> np.ndarray:
    """y (n, 2, 2) of indices z (n, 2, 2), as section 1 has it."""
    mixing = setting.skip * np.eye(2) + _attention(z[:, 0], setting)
    last = np.einsum("nts,ns->nt", mixing, z[:, 1])
    return _attention(last, setting)


def _attention(h: np.ndarray, setting: Setting) -> np.ndarray:
    scores = h[:, :, None] * h[:, None, :]
    if setting.activation == "linear":
        return scores
    # Token by token: numpy takes several times as long to go along an axis of two.
    weights = np.exp(scores - np.maximum(scores[..., :1], scores[..., 1:]))
    return weights / (weights[..., :1] + weights[..., 1:])
