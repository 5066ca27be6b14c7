"""Trains, samples, tokenises and downloads in forked children, killed at moments of their own time.

Reads a JSON list of jobs from standard input: each has its `work`, a folder `out`, settings, and
perhaps what kills it: `write`, a number of finished files, the last of which is about to be renamed
(odd) or just was (even); or `share`, a part of the seconds that the first job took, which nothing
disturbs. Prints for each job its exit code and the bytes of a download that it left.
"""

import faulthandler
import json
import os
import shutil
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "workflow" / "src"))

import numpy as np

RECIPE = {
    "objective": "masked",
    "steps": 160,
    "batch": 15,
    "masks": 0.25,
    "learning_rate": 0.01,
    "schedule": "cosine",
    "warmup": 5,
    "clip": 1.0,
    # Far fewer than saved states, so that runs are taken up between them as well.
    "checkpoints": {"logarithmic": 2, "listed": [20]},
    "validation": 33,
    "precision": "float32",
    "compile": False,
    "threads": 1,
}
# What is imported before the first fork: once for all children.
NEEDED = {
    "training": ["manybody.training.loop", "torch._dynamo"],
    "sampling": ["manybody.sampling.metropolis"],
    "tokenising": ["manybody.data.text", "manybody.data.tokenizer"],
    "download": ["manybody.data.download"],
}


def training(job: dict) -> None:
    from manybody.training import loop

    description, draw = job["description"], np.random.default_rng(7)
    data = {}
    for split, count in (("train", 300), ("validation", 41)):
        # Something to learn: each token is the last one plus 0, 1 or 2.
        steps = draw.integers(0, 3, (count, description["length"]))
        tokens = (steps.cumsum(1) % description["vocabulary"]).astype("uint8")
        data[split] = SimpleNamespace(tokens=tokens)
    loop.train(
        description,
        {**RECIPE, "optimizer": job["optimizer"]},
        data,
        Path(job["out"]),
        seed=3,
        init_seed=4,
        about={"source": "counting"},
        device="cpu",
        code="test",
        save_every=0.0,
    )


def sampling(job: dict) -> None:
    import torch

    from manybody import models
    from manybody.sampling import metropolis

    torch.manual_seed(3)
    model = models.build(job["description"]).eval().requires_grad_(False)
    starts = np.random.default_rng(1).integers(0, model.vocabulary, (14, model.length))
    shared, each = metropolis.bytes_needed(model, job["energy"])
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
        memory=shared + job["together"] * each,
        interval=1,
    )


def tokenising(job: dict) -> None:
    from manybody.data import text, tokenizer

    out = Path(job["out"])
    parts = dict(train=0.6, validation=0.2, test=0.2)
    splits = {split: out / f"{split}.documents" for split in parts}
    text.collect({"kind": "file", "files": [job["text"]], "split": parts}, splits, out)
    tokenizer.train(splits["train"], 400, out / "tokenizer.json")
    for split, documents in splits.items():
        about = {"source": "words", "split": split}
        file = out / f"{split}.parquet"
        tokenizer.encode_split(documents, out / "tokenizer.json", 16, file, about)


def download(job: dict) -> None:
    from manybody.data.download import fetch

    out = Path(job["out"])
    fetch(f"{job['url']}?{out.name}", out / "text.txt", patience=0.01)


def left(out: Path) -> int:
    """Bytes that a killed download has left on disk."""
    part = out / "text.txt.part"
    return part.stat().st_size if part.is_file() else 0


def die_at_write(count: int) -> None:
    """Kills this process at its `count`-th rename of a finished file, before it or after it."""
    rename, calls = Path.replace, iter(range(1, 10**6))

    def replace(path, target):
        last = next(calls) == count
        if last and count % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(path, target)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    Path.replace = replace


def run(job: dict, wait: float | None = None) -> int:
    """Exit code of a job in a child, killed after `wait` seconds; minus the signal if it was."""
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(120, exit=True)
        try:
            if "write" in job:
                die_at_write(job["write"])
            globals()[job["work"]](job)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if wait is not None:
        time.sleep(wait)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(jobs: list[dict]) -> list[tuple[int, int]]:
    first = jobs[0]
    for name in [*NEEDED[first["work"]], "pyarrow.parquet"]:
        import_module(name)
    if "description" in first:
        import_module(f"manybody.models.{first['description']['architecture']}.network")
    if first["work"] == "sampling":
        sampling(first | {"out": first["out"] + "-before"})  # children inherit what it compiles
    outcomes, seconds = [], 0.0
    for job in jobs:
        begin, wait = time.monotonic(), job["share"] * seconds if "share" in job else None
        code = run(job, wait)
        while code == 0 and wait is not None:  # it was faster this time: from nothing, and sooner
            shutil.rmtree(job["out"])
            wait /= 2
            code = run(job, wait)
        seconds = seconds or time.monotonic() - begin
        outcomes.append((code, left(Path(job["out"]))))
    return outcomes


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
