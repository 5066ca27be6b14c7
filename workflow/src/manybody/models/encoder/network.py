"""The vanilla transformer encoder that factored attention is set against (potts, section 2).

Post-LayerNorm layers with a ReLU feed-forward and no dropout, on the sum of an embedding of
|V| + 1 tokens, the last of them the mask, and of positions; an output net to |V| logits. Two
readings of the paper's "standard encoder": `positions` learnt and a `linear` head, the smallest;
or sinusoidal positions and an `mlp` head (linear, LayerNorm, ReLU, linear), those of the widely
used tutorial of PyTorch Lightning (a linear map of one-hots is an embedding). The layers are
torch's own; masked copies compute the last layer for the masked row only.

B sequences, L positions, N masked copies, d channels.
"""

import math

import torch
from torch import Tensor, nn

from manybody.models.attention import attend, attend_once
from manybody.models.base import Model
from manybody.models.linear import accelerate_layers, linear


class Encoder(Model):
    """`layers` post-LN layers of `heads` heads, `width` channels and `mlp` hidden units."""

    def __init__(
        self,
        vocabulary: int,
        length: int,
        layers: int,
        heads: int,
        width: int,
        mlp: int,
        positions: str = "learnt",
        head: str = "linear",
    ):
        # Models without these keys were described before there were two readings.
        smallest = (positions, head) == ("learnt", "linear")
        reading = {} if smallest else {"positions": positions, "head": head}
        super().__init__(
            "encoder", vocabulary, length, layers=layers, heads=heads, width=width, mlp=mlp,
            **reading,
        )  # fmt: skip
        self.embedding = nn.Embedding(vocabulary + 1, width)
        if positions == "learnt":
            self.positions = nn.Embedding(length, width)
        else:
            self.register_buffer("waves", sinusoids(length, width), persistent=False)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, mlp, dropout=0.0, batch_first=True)
            for _ in range(layers)
        )
        self.hidden = nn.Identity()
        if head == "mlp":
            self.hidden = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU())
        self.output = nn.Linear(width, vocabulary)
        accelerate_layers(self)

    @property
    def places(self) -> Tensor:
        """Vectors of the positions: (L, d)."""
        return self.positions.weight if hasattr(self, "positions") else self.waves

    @property
    def activation_size(self) -> int:
        layer = self.layers[0]
        widest = max(3 * layer.linear1.in_features, layer.linear1.out_features)
        return self.length * max(widest, self.heads * self.length)

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self._embed(tokens, mask)
        for layer in self.layers:
            x = layer(x)
        return self.hidden(x)

    def masked_features(self, tokens: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        """Inputs (N, d) of the last linear map, from the masked row of each copy."""
        self.check_tokens(tokens)
        x = self._embed(tokens[rows].scatter(1, positions[:, None], self.vocabulary), None)
        for layer in self.layers[:-1]:
            x = self._layer(layer, x, x)
        asked = x[torch.arange(len(x), device=x.device), positions]
        return self.hidden(self._layer(self.layers[-1], x, asked))

    @torch.no_grad()
    def attention_maps(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        x, maps = self._embed(tokens, mask), []
        for number, layer in enumerate(self.layers):
            attention, width = layer.self_attn, x.shape[-1]
            weight, bias = attention.in_proj_weight, attention.in_proj_bias
            query, key = self._split(linear(x, weight[: 2 * width], bias[: 2 * width]), 2)
            maps.append((query @ key.mT / math.sqrt(width // self.heads)).softmax(-1).mean(1))
            if number < len(self.layers) - 1:
                x = self._layer(layer, x, x)
        return torch.stack(maps)

    def _embed(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        self.check_tokens(tokens)
        if mask is not None:
            tokens = tokens.masked_fill(mask, self.vocabulary)
        return self.embedding(tokens) + self.places

    def _layer(self, layer: nn.Module, x: Tensor, asked: Tensor) -> Tensor:
        """A layer's output for its input x (N, L, d), or for one row a sequence, `asked` (N, d)."""
        attention = layer.self_attn
        weight, bias = attention.in_proj_weight, attention.in_proj_bias
        if asked is x:
            scale = (x.shape[-1] // self.heads) ** -0.5
            seen = attend(linear(x, weight, bias), self.heads, scale)
        else:
            query, *maps = zip(weight.chunk(3), bias.chunk(3), strict=True)
            seen = attend_once(linear(asked, *query), x, *maps, self.heads)
        asked = layer.norm1(asked + attention.out_proj(seen))
        return layer.norm2(asked + layer.linear2(layer.linear1(asked).relu()))

    def _split(self, mixed: Tensor, parts: int) -> tuple[Tensor, ...]:
        """Queries, keys or values, each (N, heads, m, d / heads), of (N, m, parts * d)."""
        return mixed.unflatten(-1, (parts, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind()


def sinusoids(length: int, width: int) -> Tensor:
    """sin and cos of position / 10000^(2 i / d) in channels 2 i and 2 i + 1: (L, d)."""
    places = torch.arange(length, dtype=torch.float64)[:, None]
    rates = torch.exp(-math.log(10000.0) * torch.arange(0, width, 2, dtype=torch.float64) / width)
    found = torch.empty(length, width, dtype=torch.float64)
    found[:, 0::2] = torch.sin(places * rates)
    found[:, 1::2] = torch.cos(places * rates[: width // 2])
    return found.to(torch.get_default_dtype())
