"""Exact conditionals of an energy with interactions of k sites (many-body, section 4).

    logits_i[a] = sum over unordered (k - 1)-subsets t of the other sites, J_it U_a,colours(t)

plus h_i[a] where the sites have `fields` of their own, as the Hamiltonian of a source can. J is
free for every site i and subset t, that is not tied over the k roles which a site can have in one
interaction; U is symmetric in the k - 1 colours. With J and U tied over the roles these are the
conditionals of p(s) ~ exp(-beta H), up to the factor -k! beta (many-body, eq. 3).

The sum over subsets is taken first: `sums` adds up the couplings of the subsets whose colours are
those of one bin, then U acts on the bins.
"""

import itertools
import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from manybody.data.hamiltonian import Hamiltonian, colour_bins, site_tuples
from manybody.models.base import Model
from manybody.models.energy import loops as energy

ORDERS = (2, 3, 4)
SCALE = 0.15  # of the random weights; 0.1 to 0.2 finds good minima of the bilinear form


class Energy(Model):
    """k-body conditionals, k = `order`.

    `couplings` (L, C(L - 1, k - 1)) is J, in the order of `tuples.site_tuples`; `colours`
    (|V|, C(|V| + k - 2, k - 1)) is U, one column for every sorted tuple of colours
    (`tuples.sorted_colours`). A masked site belongs to no subset. `fields` (L, |V|) is h, zero at
    first; None unless the description has it.

    Raises `ValueError` for an order that is not 2, 3 or 4, or is above L.
    """

    def __init__(self, vocabulary: int, length: int, order: int, fields: bool = False):
        sizes = {"fields": True} if fields else {}  # the description of others stays what it was
        super().__init__("energy", vocabulary, length, order=order, **sizes)
        if order not in ORDERS:
            raise ValueError(f"energy: order is {order!r}, expected 2, 3 or 4")
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
        self.fields = nn.Parameter(torch.zeros(length, vocabulary)) if fields else None
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
    def feature_size(self) -> int:
        return self.vocabulary

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
        code: int | Tensor = 0
        for colour in tokens[:, self.around].unbind(-1):
            code = code * self.vocabulary + colour
        weights = self.couplings.expand(len(tokens), -1, -1)
        if mask is not None:
            weights = weights.masked_fill(mask[:, self.around].any(-1), 0.0)
        sums = weights.new_zeros(*tokens.shape, self.colours.shape[1])
        logits = sums.scatter_add(2, self.bins[code], weights) @ self.colours.T
        return logits if self.fields is None else logits + self.fields

    def masked_features(self, tokens: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        """The logits: no site's depend on its own token, so one pass serves all its copies."""
        return self.all_masked_features(tokens)[rows, positions]

    def all_masked_features(self, tokens: Tensor) -> Tensor:
        return self.features(tokens)

    def all_masked_loss(self, tokens: Tensor) -> tuple[Tensor, Tensor] | None:
        """Compiled, on a CPU and without fields."""
        self.check_tokens(tokens)
        if not self._in_loops or self.fields is not None:
            return None
        least, most = tokens.aminmax()
        if least < 0 or most >= self.vocabulary:
            raise IndexError(
                f"tokens run from {least} to {most}, expected 0 to {self.vocabulary - 1}"
            )
        return Losses.apply(tokens, self._spread(), self.colours, self.sites, self.bins)

    def _spread(self) -> Tensor:
        """J by subset of all sites and site (T, L), zero where the site is in the subset."""
        weights = self.couplings.new_zeros(len(self.sites), self.length)
        columns = torch.arange(self.length)[:, None].expand_as(self.which)
        return weights.index_put((self.which, columns), self.couplings)

    def head(self, features: Tensor) -> Tensor:
        return features

    def head_rows(self, features: Tensor, tokens: Tensor) -> Tensor:
        return features.gather(-1, tokens[..., None])[..., 0]


def conditionals(hamiltonian: Hamiltonian) -> Energy:
    """The energy model whose softmax is eq. 3: J on the subsets, -k! beta U on sorted colours, and
    -beta E where sites have energies of their own."""
    with torch.random.fork_rng(devices=[]):
        model = Energy(
            hamiltonian.vocabulary,
            hamiltonian.length,
            hamiltonian.order,
            fields=hamiltonian.fields is not None,
        )
    _, couplings, colours = hamiltonian.packed  # couplings hold k!
    with torch.no_grad():
        model.couplings.copy_(torch.from_numpy(couplings / math.factorial(hamiltonian.order)))
        model.colours.copy_(
            torch.from_numpy(-math.factorial(hamiltonian.order) * hamiltonian.beta * colours.T)
        )
        if hamiltonian.fields is not None:
            model.fields.copy_(torch.from_numpy(-hamiltonian.beta * hamiltonian.fields))
    return model


class Losses(torch.autograd.Function):
    """Loss (B * L,) in nats and correctness of every token, by `kernels.energy.losses`.

    The gradients of the summed loss are made with the loss. A way back that weights all losses
    alike scales them; any other makes them anew.
    """

    @staticmethod
    def forward(ctx, tokens, couplings, colours, sites, bins):
        ctx.given = tokens.contiguous(), couplings.detach(), colours.detach(), sites, bins
        every = couplings.new_ones(1, tokens.shape[1])
        ctx.gradients = any(ctx.needs_input_grad)
        loss, correct, *ctx.of_sum = _losses(*ctx.given, every, ctx.gradients)
        ctx.mark_non_differentiable(correct)
        return loss.flatten(), correct.flatten()

    @staticmethod
    @once_differentiable
    def backward(ctx, of_loss, _):
        if of_loss.stride() == (0,):  # one number for all, as the gradient of a sum is
            of_couplings, of_colours = (gradient * of_loss[0] for gradient in ctx.of_sum)
        else:
            shares = of_loss.reshape(ctx.given[0].shape).contiguous()
            _, _, of_couplings, of_colours = _losses(*ctx.given, shares, True)
        return None, of_couplings, of_colours, None, None


def _losses(tokens, couplings, colours, sites, bins, shares, gradients) -> tuple[Tensor, ...]:
    """Losses and correctness (B, L), and the gradients by `couplings` and `colours`."""
    loss = couplings.new_empty(tokens.shape)
    correct = torch.empty(tokens.shape, dtype=torch.bool)
    found = loss, correct, torch.zeros_like(couplings), torch.zeros_like(colours)
    given = (tokens, sites, bins, couplings, colours, colours.T.contiguous(), shares)
    energy.losses(*map(Tensor.numpy, given), gradients, *map(Tensor.numpy, found))
    return found
