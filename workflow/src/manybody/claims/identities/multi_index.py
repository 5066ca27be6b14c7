"""Exact answers under the multi-index figures: what must hold, and how far off it is.

`compute` returns one identity a row, quantity `identity`: series its text, x the tolerance, y the
largest error found. Link functions are compared with the plain matrix form on D-dimensional tokens,
the channel of two layers with adaptive quadrature, finite differences and its symmetries, and the
thresholds at Q = 0 with their bounds and limits (multi-index, sections 1 to 4).
"""

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy
from scipy.integrate import IntegrationWarning

from manybody.theory.multi_index import channel, links, untied
from manybody.theory.multi_index.quadrature import draw, quadrature

SKIPS = (0.25, 0.5, 1.0, 2.0, 4.0)
CASES = 24  # of the denoiser; the tests take 200
SAMPLES, FEATURES = 4, 40  # of the link functions
SAME = 1e-7  # of g, relative: grids of mirrored samples lie differently
STEP = 1e-4  # of finite differences
FLOOR = 1e-6  # what quadrature may be off beyond its own estimate: tails that are left out
REACH, SPACING = 6.5, 0.25  # of the grid of x, in units of 1 + c
LARGE = 1e4  # a c that stands for infinity


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of identities; `entry["seed"]` draws all cases, `entry["threads"]` run them."""
    generator = np.random.default_rng(entry["seed"])
    rows = [*_links(generator), *_channel(generator, entry["threads"]), *_thresholds(entry)]
    frame = pd.DataFrame(rows, columns=["series", "x", "y"])
    frame = frame.assign(quantity="identity", seed=entry["seed"], y_err=np.nan)
    about = {"entry": {key: value for key, value in entry.items() if key != "threads"}}
    return frame[["quantity", "series", "seed", "x", "y", "y_err"]], about


# --- Link functions ------------------------------------------------------------------------------


def _links(generator) -> list[tuple]:
    errors: dict[str, list] = {}

    def compare(name, found, expected):
        errors.setdefault(name, []).append(np.abs(found - expected).max())

    for layers, tokens, rank, skip in (
        (1, 2, 1, 0.0), (2, 2, 1, 1.0), (3, 2, 1, 0.5), (2, 4, 3, 1.0), (4, 3, 2, 0.3),
    ):  # fmt: skip
        given = Plain.draw(generator, SAMPLES, FEATURES, layers, tokens, rank, skip)
        same = given.tied()
        q, k = given.indices()
        z, _ = same.indices()
        compare("tied", links.tied(z, skip), same.outputs())
        compare("untied", links.untied(q, k, skip), given.outputs())
        sequences = given.tokens @ np.swapaxes(links.mixing(q, k, skip), -1, -2)
        compare("sequence-to-sequence", sequences, given.sequences())
        heads = Plain.draw(generator, SAMPLES, FEATURES, layers, tokens, rank, skip, heads=4)
        readouts = generator.standard_normal(4)
        found = links.multi_head(*heads.indices(), skip, readouts)
        compare("multi-head", found, heads.outputs(readouts))
    name = "link function against the plain matrix form, L = 1..4, T = 2..4, r = 1..3"
    rows = [(f"{kind}: {name}", 1e-12, max(found)) for kind, found in errors.items()]
    given = Plain.draw(generator, 200, FEATURES, 4, 3, 1, 1.0).tied()
    z, _ = given.indices()
    gaps = [
        np.abs(links.large_depth(z, skip) - given.outputs(share=1 / skip)).mean()
        for skip in (200.0, 400.0)
    ]
    text = "large depth: what the first order in 1/c leaves falls by 4 where c doubles"
    return [*rows, (text, 0.1, abs(gaps[0] / gaps[1] - 4))]


# --- The channel of two layers -------------------------------------------------------------------


def _channel(generator, threads: int) -> list[tuple]:
    gaps, uncovered, jacobians, flips = [], [], [], []
    for case in range(CASES):
        skip = SKIPS[case % len(SKIPS)]
        first = (0.0, 0.0, 0.3, 0.8)[case % 4]
        overlap = np.diag([first, generator.uniform(0.5, 0.999)])
        x, omega, variance = draw(1, overlap, skip, int(generator.integers(2**32)))
        g, finer = (_denoise(x, omega, variance, skip, extra=extra) for extra in (0, 2))
        with warnings.catch_warnings():  # it says so where it reaches rounding
            warnings.simplefilter("ignore", IntegrationWarning)
            exact, _, error = quadrature(
                x[0], omega[0], variance, skip, tolerance=1e-12, relative=1e-7
            )
        gap = np.abs(g[0] - exact).max()
        gaps.append(gap)
        uncovered.append(max(0.0, gap - np.abs(g - finer).max() - error))
        jacobians.append(jacobian_error(x, omega, variance, skip))
        flips.append(flip_error(x, omega, variance, skip))
    overlaps = np.diag([0.3, 0.6])
    gain = max(off_diagonal(overlaps, skip, threads) for skip in SKIPS)
    text = f"two layers, {CASES} random cases, Q22 in 0.5..0.999, c in 0.25..4: "
    return [
        (text + "g_out against dblquad over the same box", 1e-4, max(gaps)),
        (text + "g_out is off by no more than step halving and dblquad say", FLOOR, max(uncovered)),
        (text + "Jacobian against central differences, relative", 1e-5, max(jacobians)),
        (text + "g_1 is odd and g_2 even in omega_1, and the reverse in omega_2", SAME, max(flips)),
        ("two layers: G_12 over sqrt(G_11 G_22), averaged over flips of z_1", 1e-9, gain),
    ]


def _denoise(x, omega, variance, skip, **options):
    return channel.denoiser(channel.posterior(x, omega, variance, skip, **options), variance)


def jacobian_error(x, omega, variance, skip) -> float:
    """Largest gap between the Jacobian and central differences of g, over its largest entry."""
    given = channel.posterior(x, omega, variance, skip, extra=1)
    found = channel.jacobian(given, variance)[0]
    scale = STEP * math.sqrt(variance.diagonal().min())
    moved = np.array([omega[0] + sign * step for step in np.eye(4).reshape(4, 2, 2) * scale
                      for sign in (1, -1)])  # fmt: skip
    g = _denoise(np.repeat(x, 8, axis=0), moved, variance, skip, extra=1)
    differences = (g[::2] - g[1::2]) / (2 * scale)
    expected = np.moveaxis(differences.reshape(2, 2, 2, 2), (2, 3), (0, 1))
    return float(np.abs(found - expected).max() / np.abs(found).max())


def flip_error(x, omega, variance, skip) -> float:
    """How far g is from changing sign with the omega of its own layer only, relative."""
    g = _denoise(x, omega, variance, skip)
    worst = 0.0
    for signs in ((-1, 1), (1, -1)):
        factor = np.array(signs, float)[:, None]
        flipped = _denoise(x, omega * factor, variance, skip)
        worst = max(worst, np.abs(flipped - factor * g).max())
    return float(worst / np.abs(g).max())


def off_diagonal(overlap, skip, threads) -> float:
    """|G_12| over sqrt(G_11 G_22), with every sample counted for both signs of z_1."""
    x, omega, variance = draw(256, overlap, skip, 1)
    both = np.concatenate([omega, omega * np.array([[-1.0], [1.0]])])
    g = _denoise(np.concatenate([x, x]), both, variance, skip, threads=threads)
    gain = np.einsum("nkt,nlt->kl", g, g)
    return float(abs(gain[0, 1]) / math.sqrt(gain[0, 0] * gain[1, 1]))


# --- Thresholds at Q = 0 -------------------------------------------------------------------------


def last_threshold(skip: float, threads: int = 1) -> float:
    """alpha_2 = 1 / lambda_2(0) of tied weights, by the trapezoid rule over x."""
    side = np.arange(-REACH, REACH, SPACING) + SPACING / 3  # off the line x_1 = x_2
    x = (1 + skip) * np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    found = channel.posterior(x, np.zeros((len(x), 2, 2)), np.eye(2), skip, threads=threads)
    weight = np.exp(found.log_z - found.log_z.max())
    mean, covariance = found.mean[:, 1], found.covariance[:, 1, :, 1]
    G = covariance + mean[:, :, None] * mean[:, None, :] - np.eye(2)
    return float(weight.sum() / (weight @ (G**2).sum(axis=(1, 2))))


def _thresholds(entry: dict) -> list[tuple]:
    threads = entry["threads"]
    tied = {skip: last_threshold(skip, threads) for skip in (*SKIPS[1:], LARGE)}
    zero = {skip: untied.at_zero(skip, threads=threads) for skip in (*SKIPS[1:], LARGE)}
    thresholds = {skip: 1 / untied.eigenvalue(found.last) for skip, found in zero.items()}
    below = max(0.0, *(1 / 6 - alpha for alpha in tied.values()))
    below_untied = max(0.0, *(untied.bound(2) - alpha for alpha in thresholds.values()))
    mass = max(abs(found.mass - 1) for found in zero.values())
    return [
        ("tied: alpha_2 is not below 1/6, c = 0.5..4 and large", 1e-9, below),
        ("tied: alpha_2 tends to 1/6 for large c", 1e-6, abs(tied[LARGE] - 1 / 6)),
        ("tied: alpha_2 = 0.18548 at c = 1", 1e-4, abs(tied[1.0] - 0.18548)),
        ("untied: thresholds at Q = 0 are not below 1/10", 1e-9, below_untied),
        (
            "untied: the last layer's threshold tends to sqrt 5 - 2, that of one layer",
            1e-5,
            abs(thresholds[LARGE] - untied.SINGLE_LAYER),
        ),
        ("untied: the law of the output has total mass 1", 1e-3, mass),
    ]


# --- The plain matrix form -----------------------------------------------------------------------


@dataclass(frozen=True)
class Plain:
    """Deep attention on D-dimensional tokens, without indices or mixing matrices.

    tokens: (n, D, T). queries, keys: (H, L, r, D), of which head h sees its block of D / H
    features and is zero elsewhere; blocks do not mix between layers.
    """

    tokens: np.ndarray
    queries: np.ndarray
    keys: np.ndarray
    skip: float

    @classmethod
    def draw(cls, generator, samples, features, layers, tokens, rank, skip, heads=1) -> "Plain":
        """Standard normal tokens and weights."""
        block = features // heads
        weights = np.zeros((2, heads, layers, rank, features))
        for head in range(heads):
            own = slice(head * block, (head + 1) * block)
            weights[:, head, ..., own] = generator.standard_normal((2, layers, rank, block))
        return cls(generator.standard_normal((samples, features, tokens)), *weights, skip)

    def tied(self) -> "Plain":
        """The same with its queries as keys."""
        return replace(self, keys=self.queries)

    def indices(self) -> tuple[np.ndarray, np.ndarray]:
        """q, k (n, H, L, r, T); without H where there is one head."""
        root = np.sqrt(self.tokens.shape[1])
        found = [
            np.einsum("hlrd,ndt->nhlrt", w, self.tokens) / root for w in (self.queries, self.keys)
        ]
        q, k = (part[:, 0] if len(self.queries) == 1 else part for part in found)
        return q, k

    def sequences(self, kind: str = "softmax") -> np.ndarray:
        """X_L (n, D, T)."""
        layers = self.queries.shape[1]
        return np.array([self._run(X, layers, 1.0, kind) for X in self.tokens])

    def outputs(
        self, readouts: Sequence[float] = (1.0,), share: float = 1.0, kind: str = "softmax"
    ) -> np.ndarray:
        """y (n, T, T), the heads' attentions times their readouts; share = 1/c with skip 1 divides
        the layers by c."""
        last = self.queries.shape[1] - 1
        found = []
        for X in self.tokens:
            X = self._run(X, last, share, kind)
            heads = [self._weights(X, head, last, kind) for head in range(len(readouts))]
            found.append(sum(r * y for r, y in zip(readouts, heads, strict=True)))
        return np.array(found)

    def _run(self, X, layers, share, kind):
        for layer in range(layers):
            parts = []
            for head, block in enumerate(np.split(X, len(self.queries))):
                weights = self._weights(X, head, layer, kind)
                parts.append(self.skip * block + share * block @ weights.T)
            X = np.concatenate(parts)
        return X

    def _weights(self, X, head, layer, kind):
        """A row for each token that attends."""
        features, tokens = X.shape
        product = self.queries[head, layer].T @ self.keys[head, layer] / features  # (D, D)
        pairs = itertools.product(range(tokens), repeat=2)
        scores = np.reshape([X[:, t] @ product @ X[:, s] for t, s in pairs], (tokens, tokens))
        return scores if kind == "linear" else scipy.special.softmax(scores, axis=1)
