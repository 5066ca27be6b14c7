"""Exact conditionals of an energy with interactions of k sites (many-body, section 4).

    logits_i[a] = sum over unordered (k - 1)-subsets t of the other sites, J_it U_a,colours(t)

J is free for every site i and subset t, not tied over a site's k roles in one interaction; U is
symmetric in the k - 1 colours. With both tied over the roles these are the conditionals of p(s) ~
exp(-beta H), up to the factor -k! beta (many-body, eq. 3). The couplings of the subsets whose
colours are those of one bin are added up first, then U acts on the bins.
"""

import itertools
import math
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from manybody.data.hamiltonian import Hamiltonian, colour_bins, site_tuples
from manybody.data.vector_loops import SUMS, add_rows
from manybody.io.compiled import njit
from manybody.models.base import Conditionals, compiled_loss

SCALE = 0.15  # of the random weights; 0.1 to 0.2 finds good minima of the bilinear form
GROUP = 8  # sequences that the loops take at a time, so that the products with U run over long rows


class Energy(Conditionals):
    """k-body conditionals, k = `order`: 2, 3 or 4.

    `couplings` (L, C(L - 1, k - 1)) is J, in the order of `tuples.site_tuples`; `colours`
    (|V|, C(|V| + k - 2, k - 1)) is U, one column for every sorted tuple of colours
    (`tuples.sorted_colours`). A masked site belongs to no subset. `ValueError`: an order above L.
    """

    def __init__(self, vocabulary: int, length: int, order: int):
        super().__init__("energy", vocabulary, length, order=order)
        if order > length:
            raise ValueError(
                f"energy: order {order} is above L = {length}: no interaction has that many "
                f"sites; take an order of at most {length} or longer sequences"
            )
        self.size = order - 1
        sets = math.comb(length - 1, self.size)  # of sites other than i
        bins = math.comb(vocabulary + self.size - 1, self.size)
        self.couplings = nn.Parameter(SCALE * torch.randn(length, sets))
        self.colours = nn.Parameter(SCALE * torch.randn(vocabulary, bins))
        # Only shapes are asked of a model on the device meta, and a description may lie about them.
        if not self.couplings.is_meta:
            self._list_sets()

    def _list_sets(self) -> None:
        sites = list(itertools.combinations(range(self.length), self.size))
        number = {subset: t for t, subset in enumerate(sites)}
        around = site_tuples(self.length, self.size)
        which = [[number[tuple(subset)] for subset in subsets] for subsets in around.tolist()]
        tables = {
            "sites": np.array(sites),  # (T, k - 1), all subsets of all sites
            "around": around,  # (L, C(L - 1, k - 1), k - 1), those of the sites other than i
            "which": np.array(which),  # (L, C(L - 1, k - 1)), their places in `sites`
            "bins": colour_bins(self.vocabulary, self.size).ravel(),
        }
        for name, table in tables.items():
            self.register_buffer(name, torch.from_numpy(table), persistent=False)

    @property
    def activation_size(self) -> int:
        """Kept for the backward pass: the sums of one site, a number for every bin."""
        kept = self.colours.shape[1]
        return kept if self._in_loops else max(kept, self.size * self.couplings.shape[1])

    @property
    def work_size(self) -> int:
        """Numbers a site, whose pass serves its copy: codes of all subsets, and a sum a bin."""
        return max(self.colours.shape[1], 2 * self.size * self.couplings.shape[1])

    @property
    def _in_loops(self) -> bool:
        return self.couplings.device.type == "cpu"

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """The logits, the sum as it is written, and any number of masks."""
        self.check_tokens(tokens)
        code = 0
        for colour in tokens[:, self.around].unbind(-1):
            code = code * self.vocabulary + colour
        weights = self.couplings.expand(len(tokens), -1, -1)
        if mask is not None:
            weights = weights.masked_fill(mask[:, self.around].any(-1), 0.0)
        sums = weights.new_zeros(*tokens.shape, self.colours.shape[1])
        return sums.scatter_add(2, self.bins[code], weights) @ self.colours.T

    def all_masked_loss(self, tokens: Tensor) -> tuple[Tensor, Tensor] | None:
        self.check_tokens(tokens)
        if not self._in_loops:
            return None
        self.check_range(tokens)
        given = tokens.contiguous(), self.sites, self.bins
        # J by subset of all sites and site (T, L), zero where the site is in the subset.
        spread = self.couplings.new_zeros(len(self.sites), self.length)
        columns = torch.arange(self.length)[:, None].expand_as(self.which)
        weights = spread.index_put((self.which, columns), self.couplings), self.colours
        return compiled_loss(partial(_losses, *given, *(one.detach() for one in weights)), *weights)


def conditionals(hamiltonian: Hamiltonian) -> Energy:
    """The energy model whose softmax is eq. 3: J on the subsets, -k! beta U on sorted colours."""
    with torch.random.fork_rng(devices=[]):
        model = Energy(hamiltonian.vocabulary, hamiltonian.length, hamiltonian.order)
    _, couplings, colours = hamiltonian.packed  # couplings hold k!
    roles = math.factorial(hamiltonian.order)
    with torch.no_grad():
        model.couplings.copy_(torch.from_numpy(couplings / roles))
        model.colours.copy_(torch.from_numpy(-roles * hamiltonian.beta * colours.T))
    return model


def _losses(tokens, sites, bins, couplings, colours, shares, gradients: bool):
    """Losses and correctness (B * L,), and the gradients by `couplings` and `colours`."""
    shares = couplings.new_ones(1, tokens.shape[1]) if shares is None else shares.view_as(tokens)
    loss = couplings.new_empty(tokens.shape)
    correct = torch.empty(tokens.shape, dtype=torch.bool)
    found = torch.zeros_like(couplings), torch.zeros_like(colours)
    given = (tokens, sites, bins, couplings, colours, colours.T.contiguous(), shares)
    losses(*map(Tensor.numpy, given), gradients, *map(Tensor.numpy, (loss, correct, *found)))
    return loss.flatten(), correct.flatten(), found


# --- Compiled loops ------------------------------------------------------------------------------
# Sites are the fastest index throughout: a tuple's couplings to all sites are one row, and what it
# adds to the bin of its colours is the addition of two rows.


@njit(fastmath=SUMS, nogil=True, cache=True, forceinline=True)
def add_products(total, weights, rows):
    """total (n, d) += weights (n, m) @ rows (m, d)."""
    for k in range(len(total)):
        add_rows(total[k], weights[k], rows)


@njit(fastmath=SUMS, nogil=True, cache=True, forceinline=True)
def add_dots(total, left, right):
    """total (n, m) += left (n, d) @ right (m, d)^T."""
    for k in range(len(left)):
        for q in range(len(right)):
            dot = left[k, 0] - left[k, 0]
            for y in range(left.shape[1]):
                dot += left[k, y] * right[q, y]
            total[k, q] += dot


@njit(fastmath=SUMS, nogil=True, cache=True, forceinline=True)
def copy_columns(source, first, target, there):
    """The columns of `source` from `first` on into those of `target` from `there` on, as many as
    the narrower has; slices take seconds to compile."""
    width = min(source.shape[1] - first, target.shape[1] - there)
    for k in range(len(source)):
        for y in range(width):
            target[k, there + y] = source[k, first + y]


@njit(fastmath=SUMS, nogil=True, cache=True, forceinline=True)
def fill_bins(tokens, sites, table, couplings, vocabulary, found, own):
    """found (T): the bin of the colours on each tuple of sites (T, k - 1) of tokens (L); own (bins,
    L): the weights added up in each bin."""
    size = sites.shape[1]
    own[:] = 0.0
    for t in range(len(sites)):
        code = tokens[sites[t, 0]]
        if size > 1:
            code = code * vocabulary + tokens[sites[t, 1]]
        if size > 2:
            code = code * vocabulary + tokens[sites[t, 2]]
        b = found[t] = table[code]
        for i in range(own.shape[1]):
            own[b, i] += couplings[t, i]


@njit(fastmath=SUMS, nogil=True, cache=True)
def losses(
    tokens, sites, table, couplings, colours, by_bin, shares, gradients,
    loss, correct, to_couplings, to_colours,
):  # fmt: skip
    """loss and correct (B, L) of every token; with `gradients`, the gradients of shares * loss.

    couplings (T, L): those of each tuple of sites (T, k - 1) to every site, 0 to its own.
    colours (|V|, bins); by_bin (bins, |V|): the same transposed. The cross-entropy (nats) stands
    between the way there and the way back of a group of sequences, which stays in cache. Gradients
    are added to to_couplings (T, L) and to_colours (|V|, bins). shares (B, L), or (1, L) for all.
    """
    length, vocabulary, width = tokens.shape[1], len(colours), GROUP * tokens.shape[1]
    scores = np.empty((vocabulary, width), couplings.dtype)
    rows = np.empty((len(by_bin), width), couplings.dtype)
    own = np.empty((len(by_bin), length), couplings.dtype)
    found = np.empty((GROUP, len(sites)), np.int32)
    for start in range(0, len(tokens), GROUP):
        stop = min(start + GROUP, len(tokens))
        rows[:, (stop - start) * length :] = 0.0
        for n in range(start, stop):
            fill_bins(tokens[n], sites, table, couplings, vocabulary, found[n - start], own)
            copy_columns(own, 0, rows, (n - start) * length)
        scores[:] = 0.0
        add_products(scores, colours, rows)
        for n in range(start, stop):
            for i in range(length):
                x, token, best = (n - start) * length + i, tokens[n, i], 0
                for a in range(1, vocabulary):
                    if scores[a, x] > scores[best, x]:
                        best = a
                top, own_score = scores[best, x], scores[token, x]
                total = top - top
                for a in range(vocabulary):
                    scores[a, x] = np.exp(scores[a, x] - top)
                    total += scores[a, x]
                loss[n, i] = np.log(total) + top - own_score
                correct[n, i] = best == token
                share = shares[n if len(shares) > 1 else 0, i]
                for a in range(vocabulary):
                    scores[a, x] *= share / total
                scores[token, x] -= share
        if not gradients:
            continue
        scores[:, (stop - start) * length :] = 0.0
        add_dots(to_colours, scores, rows)
        rows[:] = 0.0
        add_products(rows, by_bin, scores)
        for n in range(start, stop):
            copy_columns(rows, (n - start) * length, own, 0)
            for t in range(len(sites)):
                b = found[n - start, t]
                for i in range(length):
                    to_couplings[t, i] += own[b, i]
