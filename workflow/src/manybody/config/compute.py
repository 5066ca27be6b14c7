"""The block `compute`: where training and sampling run."""

from typing import Literal

from manybody.io.options import Block, Condition, Count, Seed, key


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

    conditions = (Condition("gpus", 0, {"device": "cpu"}, "which leaves them idle"),)
