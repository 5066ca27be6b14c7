"""BERT: transformers' pre-LN encoder, with a forward that computes only what one mask needs.

The parameters are those of `RobertaPreLayerNormModel` (learned absolute positions, GELU, no
dropout, a final LayerNorm) and of an untied linear head with |V| outputs; the input has |V| + 1
rows, the last one for the mask. A copy with one mask shares with its sequence everything that is
computed row by row before the first attention, and only its masked row is read at the end.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    RobertaPreLayerNormConfig,
    RobertaPreLayerNormForTokenClassification,
    RobertaPreLayerNormModel,
)

from manybody.models.attention import attend, attend_once
from manybody.models.base import Model
from manybody.models.linear import accelerate_layers, linear


class NoTokenTypes(nn.Module):
    """Stands where the library adds an embedding of the segment: there is one segment only."""

    def forward(self, token_types: Tensor) -> float:
        return 0.0


class Bert(Model):
    """`layers` pre-LN layers of `heads` heads, `width` channels and `mlp` hidden units."""

    def __init__(self, vocabulary: int, length: int, layers: int, heads: int, width: int, mlp: int):
        super().__init__(
            "bert", vocabulary, length, layers=layers, heads=heads, width=width, mlp=mlp
        )
        self.heads = heads
        self.encoder = RobertaPreLayerNormModel(
            RobertaPreLayerNormConfig(
                vocab_size=vocabulary + 1,
                hidden_size=width,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                intermediate_size=mlp,
                max_position_embeddings=length,
                type_vocab_size=1,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                pad_token_id=None,
                bos_token_id=None,
                eos_token_id=None,
                # The library's 0.02 suits widths near 1000; at 64 it costs a plateau of 1000 steps.
                initializer_range=width**-0.5,
                attn_implementation="sdpa",
            ),
            add_pooling_layer=False,
        )
        self.encoder.embeddings.token_type_embeddings = NoTokenTypes()
        self.output = nn.Linear(width, vocabulary)
        nn.init.normal_(self.output.weight, std=self.encoder.config.initializer_range)
        nn.init.zeros_(self.output.bias)
        accelerate_layers(self)

    def as_transformers(self) -> RobertaPreLayerNormForTokenClassification:
        """The same weights; the class of a position is its token, a masked one has the token |V|.

        The library's class for masked tokens has one more layer before its linear head. It counts
        positions from the number of the padding, |V| + 1, on; the rows before are not used.
        """
        size, given = self.vocabulary, self.encoder.config.to_dict()
        given |= dict(
            vocab_size=size + 2,
            max_position_embeddings=size + 2 + self.length,
            pad_token_id=size + 1,
            mask_token_id=size,
            id2label={number: str(number) for number in range(size)},
            label2id={str(number): number for number in range(size)},
        )
        with torch.random.fork_rng(devices=[]):
            library = RobertaPreLayerNormForTokenClassification(
                RobertaPreLayerNormConfig.from_dict(given)
            )
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
        config = self.encoder.config
        return self.length * max(3 * config.hidden_size, config.intermediate_size)

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """The library's own forward, on all rows."""
        self.check_tokens(tokens)
        if mask is not None:
            tokens = tokens.masked_fill(mask, self.vocabulary)
        places = torch.arange(self.length, device=tokens.device).expand_as(tokens)
        return self.encoder(input_ids=tokens, position_ids=places).last_hidden_state

    def masked_features(self, tokens: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        """Final-norm output (N, width) of the masked row of each copy.

        Embeddings and layer 1's queries, keys and values are computed for the tokens of each
        sequence and for the L mask symbols, then gathered: a copy differs in one row. The last
        layer is computed for the masked row, whose query meets all rows (`attend_once`).
        """
        self.check_tokens(tokens)
        length = self.length
        masks = tokens.new_full((1, length), self.vocabulary)
        x = self._embed(torch.cat([tokens, masks]))
        copies = torch.arange(len(rows), device=tokens.device) * length + positions
        product = x.is_cuda and torch.is_grad_enabled()

        layers = self.encoder.encoder.layer
        for number, layer in enumerate(layers):
            first, last = number == 0, number == len(layers) - 1
            inner, normed = layer.attention.self, layer.attention.LayerNorm(x)
            if last:
                masked = len(x) - length + positions if first else copies
                x, query = x.index_select(0, masked), inner.query(normed.index_select(0, masked))
                if first:
                    normed = rows_of_copies(normed, rows, positions, length, product)
                maps = [(part.weight, part.bias) for part in (inner.key, inner.value)]
                seen = attend_once(query, normed.unflatten(0, (-1, length)), *maps, self.heads)
            else:
                projections = [inner.query, inner.key, inner.value]
                weight = torch.cat([p.weight for p in projections])
                mixed = linear(normed, weight, torch.cat([p.bias for p in projections]))
                if first:
                    mixed = rows_of_copies(mixed, rows, positions, length, product)
                    x = rows_of_copies(x, rows, positions, length, product)
                seen = self._attend(mixed)
            x = self._finish(layer, x, seen)
        return self.encoder.LayerNorm(x)

    def _embed(self, tokens: Tensor) -> Tensor:
        """Normed embeddings (B * L, width) of tokens (B, L); the mask symbol is |V|."""
        parts = self.encoder.embeddings
        x = functional.embedding(tokens, parts.word_embeddings.weight)
        return parts.LayerNorm(x + parts.position_embeddings.weight).flatten(0, 1)

    def _attend(self, mixed: Tensor) -> Tensor:
        """Attention output (N * L, width) of queries, keys and values `mixed` (N * L, 3 width)."""
        width = self.encoder.config.hidden_size
        parts = mixed.view(-1, self.length, 3, self.heads, width // self.heads)
        # One tensor for each part: the gradients of all are then put together in one pass.
        query, key, value = [part.transpose(1, 2) for part in parts.unbind(2)]
        seen = attend(query, key, value, query.shape[-1] ** -0.5)
        return seen.transpose(1, 2).reshape(-1, width)

    def _finish(self, layer: nn.Module, x: Tensor, seen: Tensor) -> Tensor:
        """The rest of a layer: attention's output projection, then the MLP, both with skips."""
        x = layer.attention.output.dense(seen) + x
        return layer.output.dense(layer.intermediate(x)) + x


def rows_of_copies(
    x: Tensor, rows: Tensor, positions: Tensor, length: int, product: bool
) -> Tensor:
    """Rows (N L, d) of copies of sequences `rows` (N,) that are masked at `positions` (N,).

    x (B L + L, d): the rows of B sequences, then those of the mask symbol at L positions. product:
    multiply with rows of a unit matrix, whose gradient is a product as well; that of an index adds
    row by row, which takes a GPU five times as long.
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
