"""Trains, samples, tokenises and downloads in forked children, killed at moments of their own time.

Reads {"part", "folder", "fractions", "url"} from standard input. Runs the part once undisturbed in
folder/whole; then for each fraction f in a folder of its own: kills it after f times the seconds
that the undisturbed one took, and runs it again. Prints for each the exit codes of the two runs,
and the bytes of the download that the first one left.
"""

import json
import shutil
import sys
import time
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pipeline"))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "workflow" / "src"))

import numpy as np
from clone_jobs import sample
from training_jobs import run, train

FACTORED = {"architecture": "factored", "vocabulary": 12, "length": 8, "layers": 2, "rank": 4}
RECIPE = {
    "objective": "masked",
    "steps": 160,
    "batch": 15,
    "masks": 0.25,
    "optimizer": {"name": "adamw", "betas": [0.9, 0.98], "weight_decay": 0.01},
    "learning_rate": 0.01,
    "schedule": "cosine",
    "warmup": 5,
    "clip": 1.0,
    "checkpoints": {"logarithmic": 2, "listed": [20, 60, 100]},
    "validation": 33,
    "precision": "float32",
    "compile": False,
    "threads": 1,
}
CHAINS = {"energy": "raw", "order": "permuted", "together": 14}


def tokenise(job: dict) -> None:
    from manybody.sources import text, tokenizer

    out = Path(job["out"])
    corpus = {
        "kind": "file",
        "files": [job["text"]],
        "split": dict(train=0.6, validation=0.2, test=0.2),
    }
    splits = {split: out / f"{split}.documents" for split in text.SPLITS}
    text.collect(corpus, splits, out)
    tokenizer.train(splits["train"], 400, out / "tokenizer.json")
    for split, documents in splits.items():
        about = {"source": "words", "split": split}
        file = out / f"{split}.parquet"
        tokenizer.encode_split(documents, out / "tokenizer.json", 16, file, about)


def download(job: dict) -> None:
    from manybody.sources.download import fetch

    fetch(job["url"], Path(job["out"]) / "text.txt", patience=0.01)


def left(out: Path) -> int:
    """Bytes that a killed download has left on disk, with what is needed to go on."""
    part, state = out / "text.txt.part", out / "text.txt.part.json"
    return part.stat().st_size if part.is_file() and state.is_file() else 0


def words(path: Path) -> None:
    """A text of 1.5 MB of made-up words."""
    draw = np.random.default_rng(5)
    letters = np.array(list("etaoinshrdlu"))
    made = ["".join(draw.choice(letters, size)) for size in draw.integers(2, 9, 3000)]
    chosen = draw.choice(made, 250_000)
    lines = [" ".join(chosen[i : i + 25]) for i in range(0, len(chosen), 25)]
    path.write_text("\n\n".join(lines) + "\n")


def main(part: str, folder: Path, fractions: list[float], url: str) -> list[list[int]]:
    settings = {
        "training": {"description": FACTORED, "recipe": RECIPE, "save_every": 0.0},
        "sampling": {"description": FACTORED | {"vocabulary": 9}, "interval": 1, **CHAINS},
        "tokenising": {"text": str(folder / "words.txt")},
        "download": {"url": url},
    }[part]
    work = {"training": train, "sampling": sample, "tokenising": tokenise, "download": download}[
        part
    ]
    if part == "tokenising":
        words(folder / "words.txt")
    if part == "sampling":
        sample(
            settings | {"out": str(folder / "warm" / "run")}
        )  # children inherit what it compiles
    begin = time.monotonic()
    assert run(settings | {"out": str(folder / "whole" / "run")}, work) == 0
    seconds = time.monotonic() - begin
    codes = []
    for number, fraction in enumerate(fractions):
        job = settings | {"out": str(folder / str(number) / "run"), "url": f"{url}?{number}"}
        killed, wait = 0, fraction * seconds
        while killed == 0:  # it was faster this time
            shutil.rmtree(job["out"], ignore_errors=True)
            killed, wait = run(job | {"kill_after": wait}, work), wait / 2
        bytes_left = left(Path(job["out"]))
        codes.append([killed, run(job, work), bytes_left])
    return codes


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    needed = {
        "training": ["manybody.training.loop", "torch._dynamo", "manybody.models.factored.network"],
        "sampling": ["manybody.models.factored.network"],
        "tokenising": ["manybody.sources.text", "manybody.sources.tokenizer"],
        "download": ["manybody.sources.download"],
    }
    for name in [*needed[asked["part"]], "pyarrow.parquet"]:
        import_module(name)
    asked["folder"] = Path(asked["folder"])
    print(json.dumps(main(**asked)))
