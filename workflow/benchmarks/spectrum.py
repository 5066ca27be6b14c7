"""How long an order spectrum takes, and in how much memory.

- `series`: M_1, M_2 and the mean degree of 20 checkpoints of a causal model of 4 layers, width 256,
  |V| = 8,000 and L = 64, on text of the demo's corpus, to the errors that are the defaults. The
  tokenizer is trained on that text. The checkpoints lie on a line between two models of random
  weights, of which the second has the larger ones, so that M_1 grows.
- `pythia`: M_1 and the mean degree of random weights in the shape of Pythia-160M, |V| = 50,304,
  L = 128, both to 5 %. Sequences are draws of a law in which the token of rank n has the
  probability 1 / n, but for a factor.

Both are written as `save_pretrained` does and asked from Python as a user asks them; time counts
from the first file that is read. Random weights know no text: their influence reaches over all
positions, and draws vary less than those of a trained model.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import transformers

import manybody as mb
from benchmarks.harness import memory, timed, told
from manybody.data import tokenizer
from manybody.data.documents import Documents

SERIES = dict(hidden_size=256, num_hidden_layers=4, num_attention_heads=8, vocab_size=8000)
PYTHIA = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, vocab_size=50_304)
STEPS, GROWTH = 20, 4.0  # checkpoints, and how much larger the weights of the last are
CHARACTERS, SEQUENCES = 1_000_000, 1000


def measure(documents: str) -> list[dict]:
    """Rows `what, value, unit, threads`. documents: the file of a corpus.

    Each case is a process of its own, so that its memory is its own.
    """
    return [row for case in CASES for row in told(__name__, case, documents)]


def series(documents: str, folder: Path) -> Iterator[dict]:
    """The spectra of the series, one checkpoint after another, the last first."""
    tokenizer.train(documents, SERIES["vocab_size"], folder / "tokenizer.json")
    text = "\n".join(piece.text for piece in Documents(documents))[:CHARACTERS]
    (folder / "text.txt").write_text(text, encoding="utf-8")
    first, last = (_random(SERIES, 64, seed) for seed in (0, 1))
    ends = [{name: x.clone() for name, x in end.state_dict().items()} for end in (first, last)]
    for step in range(STEPS):
        part = step / (STEPS - 1)
        mixed = {
            name: (1 - part) * x + GROWTH * part * ends[1][name] for name, x in ends[0].items()
        }
        first.load_state_dict(mixed)
        first.save_pretrained(folder / f"step-{step}")
    yield
    tokens = mb.read_text(folder / "text.txt", folder, length=64, sequences=SEQUENCES)
    for step in reversed(range(STEPS)):
        model = mb.load_pretrained(folder / f"step-{step}", length=64)
        yield mb.spectrum(model, tokens, orders=2, forwards=20_000)


def pythia(documents: str, folder: Path) -> Iterator[dict]:
    """The spectrum of one model, till M_1 is known to 5 %."""
    _random(PYTHIA, 128, 0).save_pretrained(folder / "model")
    yield
    law = 1 / np.arange(1, PYTHIA["vocab_size"] + 1)
    rng = np.random.default_rng(0)
    tokens = rng.choice(len(law), (SEQUENCES, 128), p=law / law.sum())
    model = mb.load_pretrained(folder / "model", length=128)
    yield mb.spectrum(model, tokens, orders=1, first=0.05, forwards=20_000)


CASES = {"series": series, "pythia": pythia}


def _random(sizes: dict, length: int, seed: int):
    """A causal model of random weights in the shape of GPT-NeoX, whose logits have a scale of 1."""
    config = transformers.GPTNeoXConfig(
        intermediate_size=4 * sizes["hidden_size"], max_position_embeddings=length, **sizes
    )
    torch.manual_seed(seed)
    return transformers.GPTNeoXForCausalLM(config)


def _row(table, quantity: str, order: int):
    return table[(table["quantity"] == quantity) & (table["order"] == order)].iloc[0]


def _largest(tables: list, quantity: str, order: int, unit: str | None = None, of=max) -> float:
    """The largest standard error of a quantity in percent of it, or of `unit`."""
    rows = [_row(table, quantity, order) for table in tables]
    units = rows if unit is None else [_row(table, unit, 0) for table in tables]
    return float(of([100 * row["se"] / one["value"] for row, one in zip(rows, units, strict=True)]))


def main(case: str, documents: str) -> None:
    """Prints the rows of one case."""
    with tempfile.TemporaryDirectory() as made:
        steps = CASES[case](documents, Path(made))
        next(steps)
        tables, wall, busy = timed(list, steps)
    drawn = [table["forwards"].sum() for table in tables]
    rows = [
        ("time", wall / 60, "min"),
        ("processor time", busy / 60, "min"),
        ("memory", memory(), "GiB"),
        ("forwards of a checkpoint", np.mean(drawn), "sequences"),
        ("largest error of M_1", _largest(tables, "M", 1), "% of it"),
        ("largest error of the mean degree", _largest(tables, "mean degree", 1), "% of it"),
    ]
    if case == "series":
        rows += [("largest error of M_2", _largest(tables, "M", 2, "Var g"), "% of Var g")]
        rows += [("its median", _largest(tables, "M", 2, "Var g", np.median), "% of Var g")]
    given = dict(threads=torch.get_num_threads())
    said = [
        dict(what=f"{case}: {what}", value=round(float(value), 3), unit=unit, **given)
        for what, value, unit in rows
    ]
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
