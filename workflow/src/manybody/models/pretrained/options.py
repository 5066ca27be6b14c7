from typing import Annotated, Literal

from pydantic import Field

from manybody.io.options import Block, Repository, Text, key


class Hub(Block):
    """A repository of the Hugging Face hub, or some of its revisions."""

    hub: Repository = key("Its id, owner/name.")
    revisions: Text | Annotated[list[Text], Field(min_length=1)] = key(
        "A list of branches, tags or commits, in order of steps; or how branches and tags begin "
        "that end in their step: step for step0, step1000, ...",
        ["main"],
    )


class Options(Block):
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
        given = self.weights if isinstance(self.weights, list) else None
        if isinstance(self.weights, Hub) and isinstance(self.weights.revisions, list):
            given = self.weights.revisions
        count = len(given or [0])
        if self.steps is not None and len(self.steps) != count:
            yield (
                "steps",
                f"found {len(self.steps)} of them; expected one for each of the {count} "
                f"checkpoints that weights lists; list them, or leave it out",
            )
        if self.steps is not None and sorted(set(self.steps)) != self.steps:
            yield (
                "steps",
                f"found {self.steps}; expected steps that rise; list the checkpoints in order",
            )
