"""GPT: transformers' GPT-Neo with a head tied to the embedding, for next-token prediction."""

import torch
from torch import Tensor
from transformers import GPTNeoConfig, GPTNeoForCausalLM, GPTNeoModel

from manybody.models.attention import attend
from manybody.models.base import Model
from manybody.models.linear import accelerate_layers

WINDOW = 256


class Gpt(Model):
    """`layers` causal layers, global and local (of `WINDOW`) in turn, as GPT-Neo has them."""

    def __init__(self, vocabulary: int, length: int, layers: int, heads: int, width: int, mlp: int):
        super().__init__(
            "gpt", vocabulary, length, layers=layers, heads=heads, width=width, mlp=mlp
        )
        kinds = [[[("global", "local")[layer % 2]], 1] for layer in range(layers)]
        self.decoder = GPTNeoModel(
            GPTNeoConfig(
                vocab_size=vocabulary,
                hidden_size=width,
                num_layers=layers,
                num_heads=heads,
                intermediate_size=mlp,
                max_position_embeddings=length,
                attention_types=kinds,
                window_size=WINDOW,
                activation_function="gelu_pytorch_tanh",  # gelu_new in one operation
                use_cache=False,
                bos_token_id=None,
                eos_token_id=None,
                attn_implementation="eager",
            )
        )
        accelerate_layers(self)
        if length <= WINDOW:  # else a local layer does not see all
            for block in self.decoder.h:
                block.attn.attention._attn = attend_to_past

    def as_transformers(self) -> GPTNeoForCausalLM:
        """The same weights, with the head tied to the embedding."""
        given = self.decoder.config.to_dict() | dict(tie_word_embeddings=True)
        with torch.random.fork_rng(devices=[]):
            library = GPTNeoForCausalLM(GPTNeoConfig.from_dict(given))
        library.transformer.load_state_dict(self.decoder.state_dict())
        return library.cpu().eval()

    @property
    def activation_size(self) -> int:
        return self.length * max(self.vocabulary, self.decoder.config.intermediate_size)

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
        places = torch.arange(tokens.shape[-1], device=tokens.device)[None]
        return self.decoder(input_ids=tokens, position_ids=places).last_hidden_state

    @property
    def readout(self) -> tuple[Tensor, None]:
        return self.decoder.wte.weight, None


def attend_to_past(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple:
    """What GPT-Neo's layers call: causal attention without a scale, and no map."""
    return attend(query, key, value, 1.0, causal=True), None
