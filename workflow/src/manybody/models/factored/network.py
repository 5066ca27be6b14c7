"""Factored attention with x^2 between the layers (simplicity, eq. 3).

A layer maps x to y_i = sum_j A_ij V x_j, where A (L x L) and V (|V| x |V|) are trained and do not
depend on the input. Layers 1..n-1 are squared and added to their input; the last is linear: logits
are polynomials of degree 2^(n-1) in the context's one-hots and couple at most 2^(n-1) + 1 tokens.

Masking one position is a rank-one change of layer 1's output Z = A x V^T: in the copy that masks
i, row k is Z_k - A_ki G_i with G_i = V[:, s_i]. For n = 2 this gives all L copies for the price of
an unmasked pass (many-body, eq. 7); for n >= 3 the copies part at the first square. V x is a gather
of V's columns. Only the squares are |V| wide: they are of few copies at a time (`Squares`).
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from manybody.models.base import Model
from manybody.models.factored.copies import features as features_of_copies

# Numbers in the arrays that the backward pass keeps, 128 MiB in single precision: more copies than
# that are done in several blocks, and computed again on the way back.
BLOCK = 2**25
# The same where a LayerNorm makes every copy |V| wide, on a CPU, whose cache holds such arrays:
# 1,400 copies are trained on 1.7 to 2.1 times as fast, and features without gradients 2.4 times.
CACHED = 2**19
# L * |V| up to which the compiled loops, which take one-hots as numbers, are faster.
LOOPS = 2**10


class Factored(Model):
    """n layers of factored attention; `exact` bounds the order, `paper` adds LayerNorm.

    `attention[l]` is A^(l+1), (L, L). Values are V = P Q with `left[l]` = P (|V|, r) and `right[l]`
    = Q (r, |V|); with `rank=None` they are full: `left[l]` = V (|V|, |V|), `right` is empty. `bias`
    is (|V|,) or None; with `bias="site"`, for one layer, each position has its own, (L, |V|): the
    fields of a Potts model. A masked position is the zero vector. In `paper` the input of layers
    2..n goes through a LayerNorm, which is no polynomial: the order is then nominal. With
    `attention` = softmax the maps are A = softmax_j(W), positive with unit row sums, and
    `attention[l]` is W; `mixing` has A in either case. In one layer their diagonal is slack: what
    it takes, the row sum over the other positions lacks (potts, section 2).

    With `heads` = H > 1 (`exact` with full values only) a layer is sum_h A^h x V^h and the lists
    hold stacks: (H, L, L) and (H, |V|, |V|). The order does not change.

    `init_scale` is the scale g: A is then uniform in +-g sqrt(3 / L) and V, which must be full, in
    +-g sqrt(3 / |V|) (many-body, section 3). None is a normal start at the scale that suits text.

    Raises `ValueError` for sizes or scales that do not fit together.
    """

    def __init__(
        self,
        vocabulary: int,
        length: int,
        layers: int,
        rank: int | None = None,
        bias: bool | str = True,
        variant: str = "exact",
        heads: int = 1,
        init_scale: float | None = None,
        attention: str = "free",
    ):
        # What is as it always was stays unsaid: descriptions of older models keep their bytes.
        sizes = {} if heads == 1 else {"heads": heads}
        if attention != "free":
            sizes["attention"] = attention
        super().__init__(
            "factored",
            vocabulary,
            length,
            layers=layers,
            rank=rank,
            bias=bias,
            variant=variant,
            **sizes,
        )
        if rank is not None and rank > vocabulary:
            raise ValueError(
                f"factored: rank {rank} is above |V| = {vocabulary}; "
                "lower it, or give null for full values"
            )
        if heads > 1 and (variant, rank) != ("exact", None):
            raise ValueError(
                f"factored: heads is {heads}, but variant {variant!r} with rank {rank} has one "
                "head; choose variant exact with rank null, or heads 1"
            )
        if bias == "site" and layers > 1:
            raise ValueError(
                f"factored: bias 'site' is for one layer, but layers is {layers}; choose bias true "
                "or false"
            )
        self.layers, self.rank, self.variant = layers, rank, variant
        self.normalised = attention == "softmax"
        each = () if heads == 1 else (heads,)
        if init_scale is not None:
            if rank is not None:
                raise ValueError(
                    f"factored: init_scale {init_scale!r} sets the scale of full values, but rank "
                    f"is {rank}; give rank null, or no init_scale"
                )
            self.description["init_scale"] = init_scale
            self.attention = nn.ParameterList(
                _uniform(init_scale, *each, length, length) for _ in range(layers)
            )
            self.left = nn.ParameterList(
                _uniform(init_scale, *each, vocabulary, vocabulary) for _ in range(layers)
            )
            self.right = nn.ParameterList()
        else:
            inner = vocabulary if rank is None else rank
            self.attention = nn.ParameterList(
                torch.randn(*each, length, length) / math.sqrt(length) for _ in range(layers)
            )
            # Squares of noise sum to scale^2 sqrt(3 |V|) of a one-hot at any |V| above 500: more
            # grows from layer to layer, to losses of hundreds of nats before the first step.
            scales = [0.12 * min(1.0, (500 / vocabulary) ** 0.25)] * (layers - 1) + [0.1]
            self.left = nn.ParameterList(
                torch.randn(*each, vocabulary, inner) * scale / math.sqrt(heads * inner)
                for scale in scales
            )
            self.right = nn.ParameterList(
                torch.randn(rank, vocabulary) for _ in range(layers) if rank is not None
            )
        biases = (length, vocabulary) if bias == "site" else (vocabulary,)
        self.bias = nn.Parameter(torch.zeros(biases)) if bias else None
        self.norms = nn.ModuleList(
            nn.LayerNorm(vocabulary) for _ in range(layers - 1) if variant == "paper"
        )

    @property
    def activation_size(self) -> int:
        """Kept for the backward pass: of two layers of one head Z, shared by L copies; else Q x."""
        if self._shared:
            return self.heads * self.vocabulary
        narrow = self.rank is not None and self.variant == "exact"
        return self.length * self.heads * (self.rank if narrow else self.vocabulary)

    @property
    def _shared(self) -> bool:
        """True where the copies of a sequence share all arrays that are kept."""
        return self.variant == "exact" and self.layers <= (2 if self.heads == 1 else 1)

    def mixing(self, layer: int) -> Tensor:
        """A of a layer, (L, L) or one for each head (H, L, L)."""
        weights = self.attention[layer]
        return weights.softmax(-1) if self.normalised else weights

    def values(self, layer: int) -> Tensor:
        """V = P Q of a layer, (|V|, |V|) or one for each head (H, |V|, |V|)."""
        return self.left[layer] if self.rank is None else self.left[layer] @ self.right[layer]

    @property
    def fields(self) -> Tensor | None:
        """The bias of each position (L, |V|); None where all have the same, or none."""
        return None if self.bias is None or self.bias.ndim == 1 else self.bias

    def parameter_maps(self) -> list[tuple[str, int, Tensor]]:
        """A, as it is used, and V of each layer; `ValueError` for several heads."""
        if self.heads > 1:
            raise ValueError(f"{self.heads} heads have no one map; score their contacts instead")
        return [
            (name, layer + 1, matrix(layer))
            for layer in range(self.layers)
            for name, matrix in (("A", self.mixing), ("V", self.values))
        ]

    def pair_parts(self) -> tuple[Tensor, Tensor, Tensor] | None:
        if self.layers > 1 or self.variant != "exact":
            return None
        bias = torch.zeros(self.vocabulary) if self.bias is None else self.bias
        return (
            self.mixing(0).reshape(-1, self.length, self.length),
            self.values(0).reshape(-1, self.vocabulary, self.vocabulary),
            bias.expand(self.length, -1),
        )

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Equation 3 as it is written, on one-hots: the reference, and any number of masks."""
        self.check_tokens(tokens)
        x = functional.one_hot(tokens, self.vocabulary).to(self.attention[0].dtype)
        if mask is not None:
            x = x.masked_fill(mask[..., None], 0.0)
        for layer in range(self.layers - 1):
            x = x + self.mix(layer, x).square()
            if self.variant == "paper":
                x = self.norms[layer](x)
        logits = self.mix(self.layers - 1, x)
        return logits if self.bias is None else logits + self.bias

    def masked_features(self, tokens: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        """Layer 1 is computed once a sequence where each has as many copies, all adjacent; the last
        sequence may have fewer, as in a batch of copies that is no multiple of theirs."""
        self.check_tokens(tokens)
        sequences = torch.arange(len(tokens), device=rows.device)
        each = -(-len(rows) // max(1, len(tokens)))
        whole = sequences.repeat_interleave(each)
        missing = len(whole) - len(rows)
        if missing >= each or not torch.equal(rows, whole[: len(rows)]):
            return self._blocks(tokens[rows], positions[:, None]).flatten(0, 1)
        # Copies that nobody asks for complete the last sequence.
        positions = functional.pad(positions, (0, missing)).view(-1, each)
        if each == self.length:
            every = torch.arange(each, device=rows.device).expand_as(positions)
            positions = None if torch.equal(positions, every) else positions
        return self._blocks(tokens, positions).flatten(0, 1)[: len(rows)]

    def all_masked_features(self, tokens: Tensor) -> Tensor:
        self.check_tokens(tokens)
        return self._blocks(tokens, None)

    def all_masked_loss(self, tokens: Tensor) -> tuple[Tensor, Tensor] | None:
        self.check_tokens(tokens)
        if not self._has_loops(tokens):
            return None
        from manybody.models.factored.loss import all_masked_loss  # compiles what is not cached

        self.check_range(tokens)
        mixing = [self.mixing(layer) for layer in range(self.layers)]
        return all_masked_loss(tokens, mixing, self.left, self.bias)

    def set_gradients(self, tokens: Tensor, weight: float) -> tuple[Tensor, Tensor] | None:
        self.check_tokens(tokens)
        if self.normalised or not self._has_loops(tokens):
            return None
        from manybody.models.factored.loss import set_gradients

        self.check_range(tokens)
        return set_gradients(tokens, weight, self.attention, self.left, self.bias)

    def _has_loops(self, tokens: Tensor) -> bool:
        plain = self.rank is None and self.heads == 1 and self.variant == "exact"
        return (
            plain
            and self.fields is None
            and self.layers <= 3
            and self.length * self.vocabulary <= LOOPS
            and tokens.device.type == "cpu"
            and not torch.compiler.is_compiling()
            and not torch.is_autocast_enabled("cpu")
        )

    @property
    def readout(self) -> tuple[Tensor, Tensor | None]:
        """The last layer's P, or V if full, those of several heads side by side, and the bias. That
        of each position is among the features, which the identity beside P reads."""
        left = self.left[-1]
        left = left if self.heads == 1 else left.transpose(0, 1).flatten(1)
        if self.fields is None:
            return left, self.bias
        unit = torch.eye(len(left), dtype=left.dtype, device=left.device)
        return torch.cat([left, unit], 1), None

    def mix(self, layer: int, x: Tensor) -> Tensor:
        """A x V^T for x (..., L, |V|), summed over heads."""
        if self.heads > 1:
            x = x[..., None, :, :]
        if self.rank is not None:
            x = x @ self.right[layer].mT
        mixed = self.mixing(layer) @ x @ self.left[layer].mT
        return mixed if self.heads == 1 else mixed.sum(-3)

    def _blocks(self, tokens: Tensor, positions: Tensor | None) -> Tensor:
        """Features (B, m, d) of the copies of tokens (B, L) that mask positions (B, m) or all L.

        Computed for so many sequences, and within one for so many masks, that no array which the
        backward pass keeps exceeds `BLOCK`, or `CACHED`; several blocks are computed again there.
        """
        batch, length = tokens.shape
        numbers = CACHED if self.norms and tokens.device.type == "cpu" else BLOCK
        if self.layers == 1:
            features = features_of_copies(self, tokens, positions)
            if self.fields is None:
                return features
            own = self.fields if positions is None else functional.embedding(positions, self.fields)
            return torch.cat([features, own.expand(*features.shape[:2], -1)], -1)
        masks = length if positions is None else positions.shape[1]
        if self._shared:
            sequences, some = max(1, numbers // (length * self.vocabulary)), masks
        else:
            sequences = max(1, numbers // (masks * self.activation_size))
            some = max(1, numbers // self.activation_size)
        if sequences >= batch and some >= masks:
            return features_of_copies(self, tokens, positions)
        if positions is None and some < masks:
            positions = torch.arange(length, device=tokens.device).expand(batch, length)
        parts = tokens.split(sequences)
        groups = [[None]] * len(parts)
        if positions is not None:
            groups = [own.split(some, dim=1) for own in positions.split(sequences)]
        done = [
            torch.cat([self._block(part, masked) for masked in group], dim=1)
            for part, group in zip(parts, groups, strict=True)
        ]
        return torch.cat(done)

    def _block(self, tokens: Tensor, positions: Tensor | None) -> Tensor:
        if not torch.is_grad_enabled():
            return features_of_copies(self, tokens, positions)
        return checkpoint(
            features_of_copies,
            self,
            tokens,
            positions,
            use_reentrant=False,
            preserve_rng_state=False,
        )


def _uniform(scale: float, *shape: int) -> Tensor:
    """Weights (..., N, N) of variance g^2 / N."""
    return (2 * torch.rand(shape) - 1) * (scale * math.sqrt(3 / shape[-1]))
