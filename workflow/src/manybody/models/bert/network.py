"""BERT: transformers' pre-LN encoder, with a forward that computes only what one mask needs.

The parameters, their names and their initial draws are those of `RobertaPreLayerNormModel` (learned
absolute positions, GELU, no dropout, a final LayerNorm), without its one embedding of a segment,
and of an untied linear head with |V| outputs. The input has |V| + 1 rows, the last one for the
mask. A copy with one mask shares with its sequence what is computed row by row before the first
attention, and only its masked row is read at the end. The import of the library takes longer than
that of torch, so that only `as_transformers` needs it.
"""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from manybody.models.attention import SHORT, attend, attend_copies, attend_once
from manybody.models.base import Model, draw_weights, named_parts
from manybody.models.linear import accelerate_layers, linear


class Bert(Model):
    """`layers` pre-LN layers of `heads` heads, `width` channels and `mlp` hidden units."""

    def __init__(self, vocabulary: int, length: int, layers: int, heads: int, width: int, mlp: int):
        super().__init__(
            "bert", vocabulary, length, layers=layers, heads=heads, width=width, mlp=mlp
        )
        norm = partial(nn.LayerNorm, width, eps=1e-12)
        self.encoder = named_parts(
            embeddings=dict(
                word_embeddings=nn.Embedding(vocabulary + 1, width),
                token_type_embeddings=nn.Embedding(1, width),
                LayerNorm=norm(),
                position_embeddings=nn.Embedding(length, width),
            ),
            encoder=dict(
                layer=nn.ModuleList(
                    named_parts(
                        attention={
                            "self": {
                                name: nn.Linear(width, width) for name in ("query", "key", "value")
                            },
                            "output": dict(dense=nn.Linear(width, width)),
                            "LayerNorm": norm(),
                        },
                        intermediate=dict(LayerNorm=norm(), dense=nn.Linear(width, mlp)),
                        output=dict(dense=nn.Linear(mlp, width)),
                    )
                    for _ in range(layers)
                )
            ),
            LayerNorm=norm(),
        )
        # The library's 0.02 suits widths near 1000; at 64 it costs a plateau of 1000 steps.
        draw_weights(self.encoder, width**-0.5)
        del self.encoder.embeddings["token_type_embeddings"]
        self.output = nn.Linear(width, vocabulary)
        draw_weights(self.output, width**-0.5)
        accelerate_layers(self)

    def as_transformers(self):
        """The same weights; the class of a position is its token, a masked one has the token |V|:
        the library's class for masked tokens has one more layer before its head. It counts
        positions from the number of the padding, |V| + 1, on; the rows before are not used."""
        from transformers import (
            RobertaPreLayerNormConfig,
            RobertaPreLayerNormForTokenClassification,
        )

        size, sizes = self.vocabulary, self.description
        config = RobertaPreLayerNormConfig(
            vocab_size=size + 2,
            hidden_size=sizes["width"],
            num_hidden_layers=sizes["layers"],
            num_attention_heads=sizes["heads"],
            intermediate_size=sizes["mlp"],
            max_position_embeddings=size + 2 + self.length,
            type_vocab_size=1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=size + 1,
            mask_token_id=size,
            bos_token_id=None,
            eos_token_id=None,
            initializer_range=sizes["width"] ** -0.5,
            id2label={number: str(number) for number in range(size)},
            label2id={str(number): number for number in range(size)},
        )
        with torch.random.fork_rng(devices=[]):
            library = RobertaPreLayerNormForTokenClassification(config)
        weights = {name: torch.zeros_like(value) for name, value in library.state_dict().items()}
        places = {"encoder": "roberta_prelayernorm", "output": "classifier"}
        for name, value in self.state_dict().items():
            part, _, rest = name.partition(".")
            first = size + 2 if rest.startswith("embeddings.position") else 0
            weights[f"{places[part]}.{rest}"][first : first + len(value)] = value
        library.load_state_dict(weights)
        return library.eval()

    @property
    def activation_size(self) -> int:
        return self.length * max(3 * self.description["width"], self.description["mlp"])

    @property
    def _scale(self) -> float:
        return (self.description["width"] // self.heads) ** -0.5

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Final-norm output (B, L, width) of all rows."""
        self.check_tokens(tokens)
        x = self._embed(tokens if mask is None else tokens.masked_fill(mask, self.vocabulary))
        for layer in self.encoder.encoder.layer:
            x = self._finish(layer, x, self._attend(self._projections(layer, x)))
        return self.encoder.LayerNorm(x).unflatten(0, tokens.shape)

    def masked_features(self, tokens: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        """Final-norm output (N, width) of the masked row of each copy.

        Embeddings and layer 1's queries, keys and values are computed for each sequence's tokens
        and L mask symbols, then gathered: a copy differs in one row. The last layer is computed
        for the masked row, whose query meets all rows (`attend_once`). Where all copies are asked
        in order, without gradients, they share layer 1's scores too (`attend_copies`).
        """
        self.check_tokens(tokens)
        length = self.length
        masks = tokens.new_full((1, length), self.vocabulary)
        x = self._embed(torch.cat([tokens, masks]))
        copies = torch.arange(len(rows), device=tokens.device) * length + positions
        product = x.is_cuda and torch.is_grad_enabled()
        every = (
            x.device.type == "cpu"
            and length <= SHORT
            and torch.backends.cuda.flash_sdp_enabled()  # not where operations count
            and len(rows) == tokens.numel()
            and not torch.is_grad_enabled()
            and torch.equal(rows * length + positions, torch.arange(len(rows)).to(rows))
        )
        layers = self.encoder.encoder.layer
        for number, layer in enumerate(layers):
            first, last = number == 0, number == len(layers) - 1
            if last:
                inner, normed = layer.attention.self, layer.attention.LayerNorm(x)
                masked = len(x) - length + positions if first else copies
                x, query = x.index_select(0, masked), inner.query(normed.index_select(0, masked))
                if first:
                    normed = rows_of_copies(normed, rows, positions, length, product)
                maps = [(part.weight, part.bias) for part in (inner.key, inner.value)]
                seen = attend_once(query, normed.unflatten(0, (-1, length)), *maps, self.heads)
            else:
                mixed = self._projections(layer, x)
                if first:
                    x = rows_of_copies(x, rows, positions, length, product)
                if first and every:
                    seen = attend_copies(mixed, length, self.heads, self._scale).flatten(0, 1)
                else:
                    if first:
                        mixed = rows_of_copies(mixed, rows, positions, length, product)
                    seen = self._attend(mixed)
            x = self._finish(layer, x, seen)
        return self.encoder.LayerNorm(x)

    def _embed(self, tokens: Tensor) -> Tensor:
        """Normed embeddings (B * L, width) of tokens (B, L); the mask symbol is |V|."""
        parts = self.encoder.embeddings
        x = functional.embedding(tokens, parts.word_embeddings.weight)
        return parts.LayerNorm(x + parts.position_embeddings.weight).flatten(0, 1)

    def _projections(self, layer: nn.Module, x: Tensor) -> Tensor:
        """Queries, keys and values (N * L, 3 width) of rows x (N * L, width)."""
        parts = layer.attention.self.values()
        weight = torch.cat([part.weight for part in parts])
        normed = layer.attention.LayerNorm(x)
        return linear(normed, weight, torch.cat([part.bias for part in parts]))

    def _attend(self, mixed: Tensor) -> Tensor:
        """Attention output (N * L, width) of queries, keys and values `mixed` (N * L, 3 width)."""
        return attend(mixed.unflatten(0, (-1, self.length)), self.heads, self._scale).flatten(0, 1)

    def _finish(self, layer: nn.Module, x: Tensor, seen: Tensor) -> Tensor:
        """The rest of a layer: attention's output projection, then the MLP, both with skips."""
        x = layer.attention.output.dense(seen) + x
        hidden = layer.intermediate.dense(layer.intermediate.LayerNorm(x))
        return layer.output.dense(functional.gelu(hidden)) + x


def rows_of_copies(
    x: Tensor, rows: Tensor, positions: Tensor, length: int, product: bool
) -> Tensor:
    """Rows (N L, d) of copies of sequences `rows` (N,) that are masked at `positions` (N,).

    x (B L + L, d): the rows of B sequences, then those of the mask symbol at L positions. product:
    by a unit matrix, as the gradient of an index, row by row, takes a GPU five times as long.
    """
    places = torch.arange(length, device=x.device)
    hidden = positions[:, None] == places
    if not product:
        index = torch.where(hidden, len(x) - length + places, rows[:, None] * length + places)
        return x.index_select(0, index.flatten())
    texts, masks = x[:-length].view(-1, length * x.shape[1]), x[-length:]
    chosen = rows[:, None] == torch.arange(len(texts), device=x.device)
    with torch.autocast(x.device.type, enabled=False):
        copies = (chosen.to(x.dtype) @ texts).view(-1, *masks.shape)
    return torch.where(hidden[..., None], masks, copies).flatten(0, 1)
