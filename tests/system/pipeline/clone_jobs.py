"""Draws tiny clones in processes of their own, some killed, for the tests.

Reads a JSON list of jobs from standard input, runs each in a forked child (import and compilation
happen once, before) and prints the list of their exit codes.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "workflow" / "src"))

import numpy as np
import torch
from training_jobs import run

from manybody import models
from manybody.sampling import metropolis


class Letters:
    """Stands for a tokenizer: one letter a token."""

    def decode(self, tokens: list[int]) -> str:
        return "".join(chr(ord("a") + token) for token in tokens)


def sample(job: dict) -> None:
    torch.manual_seed(3)
    model = models.build(job["description"]).eval().requires_grad_(False)
    starts = np.random.default_rng(1).integers(0, model.vocabulary, (14, model.length))
    shared, each = metropolis.bytes_needed(model, job["energy"], "none")
    metropolis.sample(
        model,
        starts,
        job["out"],
        energy=job["energy"],
        gauge="none",
        sweeps=[2, 5, 9],
        order=job["order"],
        seed=8,
        about={"generator": "tiny"},
        tokenizer=Letters(),
        memory=shared + job["together"] * each,
        interval=job.get("interval", 2),
    )


def main(jobs: list[dict]) -> list[int]:
    """The first job of each model runs right here: what it compiles, all children inherit."""
    codes, warm = [], []
    for job in jobs:
        if job["description"] in warm:
            codes.append(run(job, sample))
        else:
            warm.append(job["description"])
            sample(job)
            codes.append(0)
    return codes


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
