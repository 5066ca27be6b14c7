"""GPT: transformers' GPT-Neo with a head tied to the embedding, for next-token prediction.

The parameters, their names and their initial draws are those of `GPTNeoModel`, without dropout.
Scores of attention have no scale, and keys, queries and values no bias.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from manybody.models.attention import attend
from manybody.models.base import Model, draw_weights, named_parts
from manybody.models.linear import accelerate_layers, linear

WINDOW = 256  # tokens that a local layer sees


class Gpt(Model):
    """`layers` causal layers, global and local (of `WINDOW`) in turn, as GPT-Neo has them."""

    def __init__(self, vocabulary: int, length: int, layers: int, heads: int, width: int, mlp: int):
        super().__init__(
            "gpt", vocabulary, length, layers=layers, heads=heads, width=width, mlp=mlp
        )
        self.decoder = named_parts(
            wte=nn.Embedding(vocabulary, width),
            wpe=nn.Embedding(length, width),
            h=nn.ModuleList(
                named_parts(
                    ln_1=nn.LayerNorm(width),
                    attn=dict(
                        attention=dict(
                            k_proj=nn.Linear(width, width, bias=False),
                            v_proj=nn.Linear(width, width, bias=False),
                            q_proj=nn.Linear(width, width, bias=False),
                            out_proj=nn.Linear(width, width),
                        )
                    ),
                    ln_2=nn.LayerNorm(width),
                    mlp=dict(c_fc=nn.Linear(width, mlp), c_proj=nn.Linear(mlp, width)),
                )
                for _ in range(layers)
            ),
            ln_f=nn.LayerNorm(width),
        )
        draw_weights(self.decoder, 0.02)
        accelerate_layers(self)

    def as_transformers(self):
        from transformers import GPTNeoConfig, GPTNeoForCausalLM

        sizes = self.description
        config = GPTNeoConfig(
            vocab_size=self.vocabulary,
            hidden_size=sizes["width"],
            num_layers=sizes["layers"],
            num_heads=sizes["heads"],
            intermediate_size=sizes["mlp"],
            max_position_embeddings=self.length,
            attention_types=[
                [[("global", "local")[layer % 2]], 1] for layer in range(sizes["layers"])
            ],
            window_size=WINDOW,
            activation_function="gelu_pytorch_tanh",  # gelu_new in one operation
            use_cache=False,
            bos_token_id=None,
            eos_token_id=None,
            tie_word_embeddings=True,
        )
        with torch.random.fork_rng(devices=[]):
            library = GPTNeoForCausalLM(config)
        library.transformer.load_state_dict(self.decoder.state_dict())
        return library.cpu().eval()

    @property
    def activation_size(self) -> int:
        return self.length * max(self.vocabulary, self.description["mlp"])

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Logits (B, T, |V|) of the token after each of `tokens` (B, T), T <= L."""
        if mask is not None:
            raise ValueError("gpt predicts the next token and has no mask symbol; pass no mask")
        return self.head(self.features(tokens))

    def features(self, tokens: Tensor) -> Tensor:
        """Final-norm output (B, T, width) of tokens (B, T), T <= L."""
        if tokens.shape[-1] > self.length:
            raise ValueError(
                f"gpt: tokens have length {tokens.shape[-1]}, the model was built for at most "
                f"{self.length}; give sequences of that length or build a longer model"
            )
        x = functional.embedding(tokens, self.decoder.wte.weight)
        x = x + self.decoder.wpe.weight[: tokens.shape[-1]]
        for number, layer in enumerate(self.decoder.h):
            normed, parts = layer.ln_1(x), layer.attn.attention
            weights = [part.weight for part in (parts.q_proj, parts.k_proj, parts.v_proj)]
            mixed = linear(normed, torch.cat(weights))
            seen = attend(mixed, self.heads, 1.0, causal=True, window=WINDOW * (number % 2))
            x = parts.out_proj(seen) + x
            hidden = functional.gelu(layer.mlp.c_fc(layer.ln_2(x)), approximate="tanh")
            x = x + layer.mlp.c_proj(hidden)
        return self.decoder.ln_f(x)

    @property
    def readout(self) -> tuple[Tensor, None]:
        return self.decoder.wte.weight, None
