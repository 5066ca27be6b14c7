"""Deep attention in its plain matrix form, which knows nothing of indices or mixing matrices."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy


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
