"""Chains of one or two factored layers whose energy weighs the orders of interaction.

docs/science/controls.md, sections 2 and 3. With a reference distribution mu (or 0), R_a = V2[a, :],
G_a = V1[:, a], rho and g the same less their means under mu, Gm that mean of G, v that of g^2:

    -E = w1 F1 + w2 F2 + w3 F3     w = (1, 1, 1): raw (mu = 0)     w = (1, 1/2, 1/3): E*_mu

    F1 = sum_i f_i[s_i]     F2 = sum_{i != j} rho_i . M_ij(s_j),
    M_ij(b) = A2_ij (e_b - mu) + B1_ij Gm * g_b + B2_ij (g_b^2 - v)
    F3 = sum_k S_k . W_k^2 - sum_ij B2_ij rho_i . g_j^2 - 2 sum_ij K_ij g_i . (rho_j * g_j)
         + 2 sum_i c_i rho_i . g_i^2
    W = A1 g    S = A2^T rho    alpha_k = sum_j A1_kj    c_i = sum_k A2_ik A1_ki^2
    B1_ij = 2 sum_k A2_ik (alpha_k - A1_ki) A1_kj    B2_ij = sum_k A2_ik A1_kj^2
    K_ij = sum_k A1_ki A2_jk A1_kj

where rho_i, g_i are the rows of token s_i. All |V| values b of position i have, up to a constant,

    -E(b) = base_i[b] + rho_b . o + c0[b] + c1 . g_b,

o, c0 and c1 sums of O(L |V|) over the other tokens and the caches W and S with i taken out. So the
conditional of the target is drawn at once (heat bath); the model's own masked logits are base and
o with w = (1, 1, 1). A layer that is missing is one with A1 = 0.
"""

import numpy as np
import torch
from torch import Tensor

from manybody.data.vector_loops import SUMS
from manybody.io.compiled import njit
from manybody.sampling.factored.copies import BATCH, Parameters
from manybody.sampling.factored.two_layers import seen

WEIGHTS = {"raw": (1.0, 1.0, 1.0), "reference": (1.0, 1 / 2, 1 / 3)}  # of F1, F2 and F3


class OrderChains:
    """C chains on a CPU under "raw", or "reference" with `mu` (|V|,); see `backends.Chains`.
    Caches, tables and sums are of the model's own precision, energies are double."""

    full_batches = False
    targeted = True  # `conditionals` are those of the energy

    def __init__(
        self, parameters: Parameters, tokens: Tensor, energy: str, mu: np.ndarray | None = None
    ):
        self.tokens = tokens.clone()
        self.weights = WEIGHTS[energy]
        vocabulary, precision = parameters.vocabulary, parameters.precision
        mu = torch.from_numpy(mu / mu.sum() if energy == "reference" else np.zeros(vocabulary))
        mixing2 = parameters.mixing[-1]
        mixing1, sent = torch.zeros_like(mixing2), mixing2.new_zeros(vocabulary, vocabulary)
        if parameters.layers > 1:
            mixing1, sent = parameters.mixing[0], parameters.value_rows(0)
        read = parameters.score_rows()
        rho, g, mean = read - mu @ read, sent - mu @ sent, mu @ sent
        spread, bias = mu @ g.square(), parameters.score_bias - mu @ parameters.score_bias
        alpha, squared = mixing1.sum(1), mixing1.square()
        off = 1.0 - torch.eye(parameters.length, dtype=torch.float64)
        direct = mixing2 * off
        linear = 2.0 * (mixing2 * (alpha[:, None] - mixing1).T) @ mixing1 * off
        every = mixing2 @ squared
        loop = mixing1.T @ (mixing2.T * mixing1)
        alone = (mixing2 * squared.T).sum(1)
        seen = (mixing2 * (alpha[:, None] - mixing1).T.square()).sum(1)
        single = direct.sum(1)[:, None] * (rho @ mu)
        self.fields = (
            bias
            + single
            + seen[:, None] * (rho @ mean.square())
            + (every.sum(1) - every.diagonal())[:, None] * (rho @ spread)
        )
        square = every * off
        self._exact = (rho, g, mixing1, mixing2, mean, spread, mu, direct, linear, square)
        self._corrections = (every, loop, alone)
        # For the loops: the weights in the coefficients, what is constant in the base.
        fixed = single + square.sum(1)[:, None] * (rho @ spread)

        def given(tensor: Tensor) -> np.ndarray:
            return tensor.to(precision).contiguous().numpy()

        # `linear` multiplies the mean of G alone.
        with_mean = linear * mean.any()

        def coefficients(first, second, third):
            base = (first * self.fields - second * fixed).to(precision)
            parts = (second * direct, second * with_mean, (second - third) * every, third * mixing2)
            return base, tuple(map(given, parts))

        self._target, self._model = coefficients(*self.weights), coefficients(*WEIGHTS["raw"])
        _, second, third = self.weights
        self._inward = tuple(map(given, (second * with_mean, second * every, 2 * third * loop)))
        self._mean, self._mixing = given(mean), (given(mixing1), given(mixing2))
        self._g, self._rho = given(g), given(rho)
        self._inner_weights = tuple(map(self._g.dtype.type, (second, 2 * third)))
        self._tables = (self._g, self._rho, given(rho * g), given(rho @ g.square().T))
        # rho_b . o and c1 . g_b for all b, through the ranks where there are any.
        self._read, self._sent = [rho.to(precision).T], [g.to(precision).T]
        if not parameters.full:
            left = parameters.score_left - mu @ parameters.score_left
            self._read = [parameters.right[-1].to(precision), left.to(precision).T]
            if parameters.layers > 1:
                right = parameters.right[0] - mu @ parameters.right[0]
                self._sent = [parameters.left[0].to(precision), right.to(precision).T]
        self.rebuild()

    def rebuild(self) -> None:
        rho, g, mixing1, mixing2, *_ = self._exact
        shape = (*self.tokens.shape, len(rho))
        w, s = (np.empty(shape, self._g.dtype) for _ in range(2))
        for part in self._parts():
            tokens = self.tokens[part]
            w[part], s[part] = (mixing1 @ g[tokens]).numpy(), (mixing2.T @ rho[tokens]).numpy()
        self._w, self._s, self._tokens = w, s, self.tokens.numpy()

    def _parts(self) -> list[slice]:
        """Chains whose rows of all tables fit into the cache of a processor."""
        (count, length), vocabulary = self.tokens.shape, len(self._g)
        step = max(1, BATCH["cpu"] // (8 * length * vocabulary))
        return [slice(start, start + step) for start in range(0, count, step)]

    def orders(self) -> Tensor:
        """F1, F2 and F3 (C, 3) float64 of every chain, from its tokens."""
        rho, g, mixing1, mixing2, mean, spread, mu, direct, linear, square = self._exact
        every, loop, alone = self._corrections
        found = torch.empty(len(self.tokens), 3, dtype=torch.float64)
        places = torch.arange(self.tokens.shape[1])
        for part in self._parts():
            tokens = self.tokens[part]
            r, h = rho[tokens], g[tokens]
            squares = h.square()
            others = mean * (linear @ h) + square @ (squares - spread)
            at = tokens[:, None, :].expand(-1, len(places), -1)
            pairs = direct * (r.gather(2, at) - (r @ mu)[..., None])
            triples = (mixing2.T @ r) * (mixing1 @ h).square() - r * (every @ squares)
            triples += 2 * (alone[:, None] * r * squares - h * (loop @ (r * h)))
            found[part, 0] = self.fields[places, tokens].sum(1)
            found[part, 1] = pairs.sum((1, 2)) + (r * others).sum((1, 2))
            found[part, 2] = triples.sum((1, 2))
        return found

    def energy(self) -> Tensor:
        return -self.orders() @ torch.tensor(self.weights, dtype=torch.float64)

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        """The model's masked logits (n, |V|), less their mean under mu."""
        base, outward = self._model
        return self._through(self._read, self._outer(chains, positions, outward), base[positions])

    def conditionals(self, chains: Tensor, positions: Tensor) -> Tensor:
        """-E (n, |V|), up to a constant a row, of all values of one position of each chain."""
        single, outer, sent = self._weigh(chains, positions)
        found = self._through(self._read, outer, single)
        return self._through(self._sent, sent, found)

    def log_ratio(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        """As `Chains.log_ratio`: E(s) - E(s') + h_i[a] - h_i[b]."""
        single, outer, sent = self._weigh(chains, positions)
        plain, own = self._model
        single -= plain[positions]
        outer -= self._outer(chains, positions, own)
        rows, current = torch.arange(len(chains)), self.tokens[chains, positions]
        rise = (single[rows, proposals] - single[rows, current]).double()
        for table, values in ((self._rho, outer), (self._g, sent)):
            table = torch.from_numpy(table)
            rise += ((table[proposals] - table[current]) * values).sum(1).double()
        return rise, (chains, positions, proposals)

    def accept(self, handle, accepted: Tensor) -> None:
        self.replace(*(part[accepted] for part in handle))

    def replace(self, chains: Tensor, positions: Tensor, tokens: Tensor) -> None:
        """Sets one token of each named chain."""
        moves = (chains.numpy(), positions.numpy(), tokens.numpy())
        replace(*moves, self._tokens, self._w, self._s, *self._mixing, self._g, self._rho)

    def _outer(self, chains: Tensor, positions: Tensor, coefficients) -> Tensor:
        (out,) = self._rows(chains, 1)
        given = (chains.numpy(), positions.numpy(), self._tokens, self._w, self._mixing[0])
        seen(*given, *coefficients, self._mean, self._g, out)
        return torch.from_numpy(out)

    def _weigh(self, chains: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        """base_i + c0, o and c1 (n, |V|) under the target."""
        base, outward = self._target
        found = self._rows(chains, 3)
        weigh(
            chains.numpy(), positions.numpy(), self._tokens, self._w, self._s, *self._mixing,
            self._inner_weights, base.numpy(), outward, self._inward, self._mean, *self._tables,
            *found,
        )  # fmt: skip
        return tuple(map(torch.from_numpy, found))

    def _rows(self, chains: Tensor, count: int) -> list[np.ndarray]:
        """Arrays (n, |V|) to be filled."""
        return [np.empty((len(chains), len(self._g)), self._g.dtype) for _ in range(count)]

    @staticmethod
    def _through(matrices: list[Tensor], vectors: Tensor, rest: Tensor) -> Tensor:
        """rest + the vectors through all matrices."""
        *first, last = matrices
        for matrix in first:
            vectors = vectors @ matrix
        return torch.addmm(rest, vectors, last)


class GibbsChains(OrderChains):
    """The same drawn from the model's own masked conditionals; the energy is recorded."""

    targeted = False
    conditionals = OrderChains.logits


# --- The compiled loops


@njit(fastmath=SUMS, nogil=True, cache=True)
def weigh(
    chains, positions, tokens, w, s, mixing1, mixing2, weights, base, outward, inward, mean, g,
    rho, products, pairs, single, out, sent,
):  # fmt: skip
    """All that value b of positions[m] (n,) in chains[m] (n,) is weighed by: single, out and sent
    (n, |V|), which are base_i + c0, o as of `seen`, and c1.

    As `seen`; s (C, L, |V|), base (L, |V|), rho, products = rho * g and pairs (|V|, |V|); the
    coefficients (L, L) in `outward` and `inward`, of which those that are 0 cost nothing.
    """
    length, vocabulary = w.shape[1], w.shape[2]
    direct, linear, square, triple = outward
    second, third = weights
    for m in range(len(chains)):
        c, i = chains[m], positions[m]
        g_own, r_own, s_own, read = g[tokens[c, i]], rho[tokens[c, i]], s[c, i], mixing2[i, i]
        alone, seen_by, shown = single[m], out[m], sent[m]
        for v in range(vocabulary):
            alone[v] = base[i, v] + second * (s_own[v] - read * r_own[v])
        seen_by[:] = 0.0
        shown[:] = 0.0
        for j in range(length):
            if j == i:
                continue
            t = tokens[c, j]
            x, y = linear[i, j], square[i, j]
            if x != 0.0 or y != 0.0:
                row = g[t]
                for v in range(vocabulary):
                    seen_by[v] += (x * mean[v] + y * row[v]) * row[v]
            x, y, z = inward[0][j, i], inward[1][j, i], inward[2][i, j]
            if y != 0.0 or z != 0.0:
                row, pair = products[t], pairs[t]
                for v in range(vocabulary):
                    alone[v] += y * pair[v]
                for v in range(vocabulary):
                    shown[v] -= z * row[v]
            if x != 0.0:
                row = rho[t]
                for v in range(vocabulary):
                    shown[v] += x * mean[v] * row[v]
        for k in range(length):
            w_row, s_row = w[c, k], s[c, k]
            back, read, weight = mixing1[k, i], mixing2[i, k], triple[i, k]
            cross = third * back
            for v in range(vocabulary):
                value = w_row[v] - back * g_own[v]
                seen_by[v] += weight * value * value
                shown[v] += cross * (s_row[v] - read * r_own[v]) * value
        for j in range(length):
            if j != i:
                seen_by[tokens[c, j]] += direct[i, j]


@njit(fastmath=SUMS, nogil=True, cache=True)
def replace(chains, positions, values, tokens, w, s, mixing1, mixing2, g, rho):
    """positions[m] (n,) of chains[m] (n,) takes the token values[m] (n,)."""
    length, vocabulary = w.shape[1], w.shape[2]
    for m in range(len(chains)):
        c, i, b = chains[m], positions[m], values[m]
        a = tokens[c, i]
        if a == b:
            continue
        g_old, g_new, r_old, r_new = g[a], g[b], rho[a], rho[b]
        for k in range(length):
            w_row, s_row, own, weight = w[c, k], s[c, k], mixing1[k, i], mixing2[i, k]
            for v in range(vocabulary):
                w_row[v] += own * (g_new[v] - g_old[v])
            for v in range(vocabulary):
                s_row[v] += weight * (r_new[v] - r_old[v])
        tokens[c, i] = b
