"""The keys of each architecture in the config, with types, bounds and defaults (pydantic).

A class has the name of the model's class, `About.network`. No numbers follow from what is said
here, so that an edited description changes the digest of no job.
"""

from typing import Annotated, Literal

from pydantic import Field

from manybody.io.options import (
    Block,
    Condition,
    Count,
    Positive,
    Repository,
    Text,
    given,
    key,
    number,
    other_than,
)


class Factored(Block):
    """factored: the attention of the papers."""

    layers: Count = key("Number of layers n; the order of interaction is 2^(n-1) + 1.")
    rank: Count | None = key("Rank r of the value matrices, at most |V|; null for full matrices.")
    bias: bool | Literal["site"] = key(
        "A bias for each output token; site where each position has its own, the fields of a Potts "
        "model (one layer)."
    )
    variant: Literal["exact", "paper"] = key(
        "exact bounds the order; paper adds LayerNorm, and the order is nominal."
    )
    heads: Count | Literal["full"] = key(
        "Number of heads in each layer, 1 where nothing is said; several have full matrices. full, "
        "for one layer, is where each pair of sites has a |V| x |V| block of couplings of its own, "
        "without heads. With `training.optimizer.couplings` a number N is short for full and "
        "optimizer.heads: N.",
        1,
    )
    attention: Literal["free", "softmax"] = key(
        "free weights (where nothing is said), or softmax, positive with row sums 1.", "free"
    )
    init_scale: Positive = key(
        "Scale g of uniform initial values within g sqrt(3/N), N = L or |V|. Normal, as in the "
        "language models, where nothing is said.",
        None,
    )

    conditions = (
        Condition("bias", (True, False), {"layers": other_than(1)}, expected="true or false"),
        Condition("heads", 1, {"variant": "paper"}, "which has one head"),
        Condition("layers", 1, {"heads": "full"}),
        Condition("rank", None, {"heads": other_than(1)}, "where values are full", "null"),
        Condition("bias", "site", {"heads": "full"}),
        Condition("attention", "free", {"heads": "full"}),
        Condition("init_scale", None, {"heads": "full"}, "which start from zero"),
        Condition("init_scale", None, {"rank": given}, "but uniform initial values are of full V"),
    )


class Transformer(Block):
    """Keys of every transformer."""

    layers: Count = key("Number of layers.")
    heads: Count = key("Attention heads; they divide the width.")
    width: Count = key("Width of the residual stream.")
    mlp: Count = key("Width of the hidden layer of the MLP.")

    def problems(self):
        if self.width % self.heads:
            yield self.refused("heads", f"a divisor of width {self.width}", "change either")


class Bert(Transformer):
    """bert: the pre-LN encoder."""


class Gpt(Transformer):
    """gpt: GPT-Neo, for next-token prediction."""


class Encoder(Transformer):
    """encoder: the post-LN encoder."""

    positions: Literal["learnt", "sinusoidal"] = key(
        "How positions are told apart, learnt where nothing is said; the tutorial that the paper "
        "probably used has sinusoidal.",
        "learnt",
    )
    head: Literal["linear", "mlp"] = key(
        "From the last layer to logits, linear where nothing is said; mlp has a hidden layer with "
        "LayerNorm and ReLU, as that tutorial.",
        "linear",
    )


class Interpolated(Block):
    """interpolated: between factored and common attention."""

    a: number(ge=0) = key(
        "0 is factored attention (positions make the scores, colours the values), 1 has both in "
        "both."
    )


class Energy(Block):
    """energy: the conditionals of a k-body Hamiltonian, fitted or those of the source."""

    order: int = key("Order k of the interaction.", ge=2, le=4)
    parameters: Literal["source"] = key(
        "source: the Hamiltonian that the source was sampled from, nothing is trained. Such a "
        "model has neither training nor init_seed.",
        None,
    )


class Hub(Block):
    """A repository of the Hugging Face hub, or some of its revisions."""

    hub: Repository = key("Its id, owner/name.")
    revisions: Text | Annotated[list[Text], Field(min_length=1)] = key(
        "A list of branches, tags or commits, in order of steps; or how branches and tags begin "
        "that end in their step: step for step0, step1000, ...",
        ["main"],
    )


class Pretrained(Block):
    """pretrained: a model of transformers' own classes, with its checkpoints."""

    objective: Literal["masked", "next-token"] = key("What it was trained for.")
    weights: Text | Annotated[list[Text], Field(min_length=1)] | Hub = key(
        "A folder in `save_pretrained` layout, a folder of checkpoint-N or step-N, a list of "
        "folders in order of steps, or a repository of the hub. Safetensors only."
    )
    steps: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = key(
        "The step of each checkpoint, where names of folders or revisions do not end in it.", None
    )
    audit: bool = key(
        "Leaves out checkpoints that cannot be what their names say; off takes all.", True
    )

    def problems(self):
        weights = self.weights.revisions if isinstance(self.weights, Hub) else self.weights
        count = len(weights) if isinstance(weights, list) else 1
        if self.steps is not None and len(self.steps) != count:
            yield (
                "steps",
                f"found {len(self.steps)} of them; expected one for each of the {count} "
                f"checkpoints that weights lists; list them, or leave it out",
            )
        if self.steps is not None and sorted(set(self.steps)) != self.steps:
            yield self.refused("steps", "steps that rise", "list the checkpoints in order")
