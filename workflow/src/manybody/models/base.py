"""The base class of models, which training, sampling and evaluation call.

Shapes: B sequences, L positions, |V| tokens, N masked copies, d features.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from manybody import models
from manybody.models.description import About
from manybody.models.linear import linear


class Model(nn.Module):
    """Maps tokens `(B, L)`, some of them masked, to logits `(B, L, |V|)`.

    A masked model is asked for the logits of a position when it alone is masked, `masked_logits`, a
    causal model for all next-token logits, `forward`. They are a linear `head` of `features`, so
    that callers compute only what they need. A new model writes `features` and has an `output`,
    `nn.Linear(d, |V|)`, or says its `readout`; the rest it overrides where it is faster.
    """

    # Tokens that are no text: they stay where they are, and are neither drawn nor predicted.
    special: tuple[int, ...] = ()

    def __init__(self, architecture: str, vocabulary: int, length: int, **sizes):
        """Sizes are typed and bounded by `keys`; `ValueError` if heads do not divide the width."""
        super().__init__()
        self.heads, width = sizes.get("heads", 1), sizes.get("width", 0)
        if width and width % self.heads:
            raise ValueError(
                f"{architecture}: heads {self.heads} does not divide width {width}; change either"
            )
        self.vocabulary, self.length = vocabulary, length
        self.description = dict(
            architecture=architecture, vocabulary=vocabulary, length=length, **sizes
        )

    @property
    def about(self) -> About:
        """Facts that follow from the description alone: its order, its names, its objective."""
        return models.about(self.description)

    @property
    def activation_size(self) -> int:
        """Numbers that a copy takes in the widest work array; callers size batches by it."""
        return self.length * self.vocabulary

    @property
    def feature_size(self) -> int:
        """d, the numbers that the head reads of one copy."""
        return self.about.feature_size or self.readout[0].shape[1]

    @property
    def work_size(self) -> int:
        """An upper bound on the numbers of a masked copy while its features are computed."""
        return self.about.work_size or 10 * self.activation_size

    def check_tokens(self, tokens: Tensor) -> None:
        """Raise `ValueError` unless tokens are (B, L)."""
        if tokens.ndim != 2 or tokens.shape[1] != self.length:
            raise ValueError(
                f"{self.description['architecture']}: tokens have shape {tuple(tokens.shape)}, "
                f"expected (B, {self.length}); cut the sequences to length {self.length} or "
                "build the model for their length"
            )

    def check_range(self, tokens: Tensor) -> None:
        """Raise `IndexError` for a token that is none of the |V|: compiled loops do not look."""
        if tokens.numel():
            least, most = map(int, tokens.aminmax())
            if least < 0 or most >= self.vocabulary:
                raise IndexError(
                    f"tokens run from {least} to {most}, expected 0 to {self.vocabulary - 1}"
                )

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Logits (B, L, |V|) of tokens (B, L) with `mask` (B, L, bool) hidden, all at once."""
        return self.head(self.features(tokens, mask))

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Features (B, L, d) of tokens (B, L) with `mask` hidden: what a new model has to write."""
        raise NotImplementedError

    def masked_features(self, tokens: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        """Features (N, d) at `positions` (N,) of sequences `tokens[rows]`, that position masked.

        This makes every copy; a model whose copies of one sequence share work overrides it.
        """
        self.check_tokens(tokens)
        mask = torch.arange(self.length, device=tokens.device) == positions[:, None]
        features = self.features(tokens[rows], mask)
        return features[torch.arange(len(rows), device=tokens.device), positions]

    def all_masked_features(self, tokens: Tensor) -> Tensor:
        """Features (B, L, d) at every position, each with only that position masked."""
        batch, length = tokens.shape
        rows = torch.arange(batch, device=tokens.device).repeat_interleave(length)
        positions = torch.arange(length, device=tokens.device).repeat(batch)
        return self.masked_features(tokens, rows, positions).view(batch, length, -1)

    def all_masked_loss(self, tokens: Tensor) -> tuple[Tensor, Tensor] | None:
        """Loss (B * L,) in nats and correctness (B * L, bool) of every token, it alone masked; None
        where going by the logits is as fast."""
        return None

    def set_gradients(self, tokens: Tensor, weight: float) -> tuple[Tensor, Tensor] | None:
        """Sum of `all_masked_loss` and number correct; sets `.grad` of weight times the sum. None
        where a backward pass is as fast."""
        return None

    @property
    def readout(self) -> tuple[Tensor, Tensor | None] | None:
        """Weight (|V|, d) and bias (|V|,) or None of a linear head; None if features are logits."""
        return self.output.weight, self.output.bias

    def head(self, features: Tensor) -> Tensor:
        """Logits (..., |V|) of features (..., d)."""
        readout = self.readout
        return features if readout is None else linear(features, *readout)

    def head_rows(self, features: Tensor, tokens: Tensor) -> Tensor:
        """The logits (...) of one token each, `tokens` (...), without the |V|-wide product."""
        readout = self.readout
        if readout is None:
            return features.gather(-1, tokens[..., None])[..., 0]
        weight, bias = readout
        logits = (features * functional.embedding(tokens, weight)).sum(-1)
        return logits if bias is None else logits + bias[tokens]

    def as_transformers(self):
        """The model as one of transformers' own classes, with the same logits."""
        raise ValueError(
            f"{self.description['architecture']}: transformers has no class for this architecture; "
            "expected bert or gpt; manybody.load_model loads it from its run"
        )

    def parameter_maps(self) -> list[tuple[str, int, Tensor]]:
        """Name, layer (from 1) and matrix of what is a map whatever the input: A and V."""
        return []

    def attention_maps(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attention (layers, B, L, L) of tokens (B, L) with `mask` hidden, the mean over heads, of
        models whose `About.maps` are averaged. Row k has the weights of position k, of sum 1."""
        raise NotImplementedError

    def pair_parts(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """A (H, L, L), V (H, |V|, |V|) and fields (L, |V|) where the logits of position i are

            fields_i + sum_{j != i} sum_h A^h_ij V^h[:, s_j],

        as functions of the parameters, so that their gradients can be sent back; None elsewhere.
        """
        return None

    def masked_logits(self, tokens: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        """Logits (N, |V|) at `positions`, each in its own copy with only that position masked."""
        return self.head(self.masked_features(tokens, rows, positions))


class Conditionals(Model):
    """A model whose features are its logits, none of which depend on the site's own token: one pass
    serves all copies of a sequence."""

    readout = None

    @property
    def feature_size(self) -> int:
        return self.vocabulary

    def masked_features(self, tokens: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        return self.features(tokens)[rows, positions]

    def all_masked_features(self, tokens: Tensor) -> Tensor:
        return self.features(tokens)


def named_parts(**parts) -> nn.ModuleDict:
    """Modules by the names that a library gives them; a dictionary stands for a module of parts."""
    return nn.ModuleDict(
        {
            name: named_parts(**part) if isinstance(part, dict) else part
            for name, part in parts.items()
        }
    )


def draw_weights(module: nn.Module, deviation: float) -> None:
    """Draws the weights of linear maps and embeddings from N(0, deviation^2); biases are 0."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=deviation)
            if getattr(part, "bias", None) is not None:
                nn.init.zeros_(part.bias)


def compiled_loss(compute: Callable, *weights: Tensor) -> tuple[Tensor, Tensor]:
    """Losses and correctness (N,) of compiled loops, with a backward pass to `weights`.

    compute(shares, gradients) gives them and, if `gradients` are asked for, those of the losses
    summed with shares (N,), None for ones, by each of the weights.
    """
    gradients = torch.is_grad_enabled() and any(weight.requires_grad for weight in weights)
    return CompiledLoss.apply(compute, gradients, *weights)


class CompiledLoss(torch.autograd.Function):
    """`compiled_loss`: the gradients of the summed loss are made with the loss; a backward pass
    scales them, or makes them anew where it weights losses differently."""

    @staticmethod
    def forward(ctx, compute: Callable, gradients: bool, *weights: Tensor):
        ctx.compute = compute
        loss, correct, ctx.of_sum = compute(None, gradients)
        ctx.mark_non_differentiable(correct)
        return loss, correct

    @staticmethod
    @once_differentiable
    def backward(ctx, of_loss: Tensor, _):
        if of_loss.stride() == (0,):  # one number for all, as the gradient of a sum is
            gradients = [part * of_loss[0] for part in ctx.of_sum]
        else:
            gradients = ctx.compute(of_loss.contiguous(), True)[2]
        return None, None, *gradients
