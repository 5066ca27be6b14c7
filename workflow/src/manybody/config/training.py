"""The key `training` of a model: steps on batches, or a fit to all sequences at once.

And the block `compute`: where training and sampling run.
"""

from typing import Annotated, Literal

from pydantic import Field

from manybody.io.options import (
    Block,
    Condition,
    Count,
    Name,
    NotNegative,
    Positive,
    Seed,
    Several,
    different,
    given,
    key,
    nearest_of,
    number,
)

Fraction = number(gt=0, le=1)
Decay = number(ge=0, lt=1)


class AdamW(Block):
    """Adam with decoupled weight decay."""

    name: Literal["adamw"]
    betas: list[Decay] = key("Decay rates of the two moments.", min_length=2, max_length=2)
    weight_decay: NotNegative = key("Decoupled weight decay.")


class Sgd(Block):
    """Gradient descent."""

    name: Literal["sgd"]
    momentum: Decay = key("Momentum; 0 for none.")
    weight_decay: NotNegative = key("L2 penalty added to the gradient.")


class Lbfgs(Block):
    """Quasi-Newton with a strong Wolfe line search."""

    name: Literal["lbfgs"]
    history: Count = key("Pairs of steps and gradients that are kept.")
    ridge: NotNegative = key(
        "Half of this times the squared weights is added to the mean loss.", None
    )
    couplings: Literal["gremlin", "plmdca"] | None = key(
        "Of full couplings (`heads: full`), in place of the ridge: c_J sum over pairs of |J|^2 is "
        "added to the weighted sum of the losses, with c_J = .01 (L - 1)(|V| - 1), or with plmdca "
        ".01 times the effective number of sequences. They are fitted to the sequences of all "
        "three splits; the held-out loss is that of a second fit, to the training split.",
        None,
    )
    heads: Count = key(
        "Of such couplings those of so many heads, J_ij(a, b) = sum_h (A_ij V_ab + A_ji V_ba) / 2; "
        "any by default.",
        None,
    )

    conditions = (
        Condition("ridge", given, {"couplings": None}, expected="a number"),
        Condition("ridge", None, {"couplings": given}),
        Condition("heads", None, {"couplings": None}, "which they are of"),
    )


class Checkpoints(Block):
    """Steps at which weights are saved and the validation loss is taken."""

    logarithmic: Seed = key("Number of steps spaced evenly in their logarithm.")
    listed: list[Seed] = key("Further steps; 0 and the last are always saved.")
    every: Count = key("And each so many steps.", None)


class Recipe(Block):
    """Steps on batches."""

    objective: Literal["masked", "next-token"] = key("masked (factored, bert) or next-token (gpt).")
    steps: Count = key("Optimizer steps.")
    batch: Count = key("Masked copies in a step (masked), or sequences (next-token).")
    masks: Fraction | Literal["all"] = key(
        "Share of a sequence's positions that are masked, 0.15 for 15 %, each in its own copy, or "
        "all."
    )
    together: bool = key(
        "Hides the masks of a sequence in one copy, so that none is predicted from another; "
        "`batch` counts masks.",
        False,
    )
    init_factor: Positive = key("Factor of the initial matrices and embeddings.", 1.0)
    optimizer: Annotated[AdamW | Sgd, Field(discriminator="name")] = key(
        "What turns gradients into steps."
    )
    learning_rate: Positive = key("Peak learning rate.")
    loss: Literal["mean", "sum"] = key(
        "mean over the predicted tokens of a batch, or their sum over a sequence, averaged over "
        "the batch.",
        "mean",
    )
    schedule: Literal["cosine", "constant"] = key("cosine falls to 0 at the last step.")
    warmup: Seed = key("Steps of linear rise to the peak rate.")
    clip: Positive | None = key("Largest norm of the gradient; null for none.")
    checkpoints: Checkpoints = key(
        "Steps at which weights are saved and the validation loss is taken; 0 and the last are "
        "among them."
    )
    subset: Count = key("The first so many training sequences; all by default.", None)
    validation: Several = key("Sequences of the validation split tested at a checkpoint.")
    validation_masks: Literal["all"] = key(
        "Masks all positions in the validation where training masks a share.", None
    )
    precision: Literal["float32", "bfloat16"] = key("Arithmetic of forward and backward passes.")
    compile: bool = key("torch.compile; pays on GPUs and large models.")
    divergence: Literal["stop", "keep"] = key(
        "A loss that is not finite stops the job, or ends the run as a result.", "stop"
    )
    stream: Name = key(
        "A name. Models that share it see the same batches and masks in runs of one seed (and, "
        "with init_seed each, draw their starts alike), so that they can be compared in pairs; a "
        "model's own name by default.",
        None,
    )
    device: Literal["cpu"] = key(
        "Keeps a small network on the CPU whatever compute.device says.", None
    )
    threads: Count = key("CPU threads of torch in a process. Another number gives other rounding.")

    conditions = (
        Condition("together", False, {"masks": "all"}, "which would leave no token to see"),
        Condition("together", False, {"objective": "next-token"}),
    )

    def problems(self):
        beyond = [step for step in self.checkpoints.listed if step > self.steps]
        if beyond:
            yield (
                "checkpoints.listed",
                f"found {beyond}; expected steps up to the last, {self.steps}; take them out or "
                f"train longer",
            )
        if self.warmup >= self.steps:
            yield self.refused("warmup", f"less than the {self.steps} steps", "shorten it")

    def batch_misfits(self, source: str, length: int):
        """Why the copies of a step are not whole sequences of a source of this length."""
        if self.objective != "masked":
            return
        copies = length if self.masks == "all" else max(1, round(self.masks * length))
        where = f"that each sequence of source {source} gives (sources.{source}.length {length})"
        if self.batch < copies:
            yield (
                "training.batch",
                f"found {self.batch} copies; expected at least the {copies} {where}; raise it, or "
                f"lower the length",
            )
        elif self.masks == "all" and self.batch % length:
            yield (
                "training.batch",
                f"found {self.batch} copies; expected a multiple of the {copies} {where}; take "
                f"{self.batch // length * length}",
            )


class Fit(Block):
    """A fit to all training sequences at once, all positions masked in turn."""

    objective: Literal["masked"] = key("Masked prediction.")
    masks: Literal["all"] = key("All positions.")
    optimizer: Lbfgs = key("Quasi-Newton with a strong Wolfe line search.")
    steps: Count = key("Iterations at most.")
    restarts: Count = key("Random initial values; the fit with the lowest training loss is kept.")
    subset: Count = key("The first so many training sequences; all by default.", None)
    sequence_weights: Literal["identity"] = key(
        "identity: each sequence of an alignment weighs 1 / the training sequences alike at the "
        "source's identity; not with subset.",
        None,
    )
    validation: Several = key("Sequences of the validation split that are tested.")
    precision: Literal["float32", "float64"] = key("Arithmetic.")
    threads: Count = key("CPU threads of torch. Another number gives other rounding.")

    conditions = (
        Condition(
            "subset",
            None,
            {"sequence_weights": given},
            "which is counted among all training sequences",
            "one of the two",
        ),
    )


KINDS = {"recipe": Recipe, "fit": Fit}


def training_of(*kinds: str):
    """The type of the trainings that an architecture knows."""
    return nearest_of(*(KINDS[kind] for kind in kinds))


class Compute(Block):
    """Where training and sampling run."""

    device: Literal["auto", "cpu", "cuda"] = key(
        "auto takes a GPU when torch sees one; cuda stops when torch sees none."
    )
    gpus: Seed = key(
        "GPUs that a training job asks the scheduler for (one that samples or evaluates, 1 at "
        "most); 0 on CPU-only clusters."
    )
    processes: Count = key(
        "Data-parallel processes of one training job, a GPU each where there are any."
    )
    nodes: different(Count) = key("Numbers of nodes that `price` says the wall time on.")
    cores: Count = key("Cores of such a node; of GPUs it has those that a training job asks for.")

    conditions = (Condition("gpus", 0, {"device": "cpu"}, "which leaves them idle"),)
