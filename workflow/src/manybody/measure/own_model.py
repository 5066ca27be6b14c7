"""The order spectrum of a language model in a folder on a text, without a config."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import torch

from manybody.data import given, own_text, own_tokenizer, tokenizer
from manybody.io.atomic import read_json, to_json
from manybody.io.code_digest import code_digest
from manybody.io.devices import pick
from manybody.io.lease import lease
from manybody.io.refusal import Refusal
from manybody.io.sequences import Sequences
from manybody.io.tables import SPECTRA
from manybody.measure import spectra, spectrum
from manybody.models.pretrained import layout, network, series
from manybody.training.series import adopt

MOST, FEWEST = 1000, 4  # sequences of a text, half of which are contexts
SIZE, LEAST = 8, 16  # positions that `anchored` exchanges, and its fewest targets


@contextmanager
def measured(
    model: str, text: str, length: int | None, orders: int, forwards: int, parts: Path
) -> Iterator[tuple[pd.DataFrame, dict, list[str]]]:
    """The spectra of a folder of weights, or of a series of them, on a text: a table of `SPECTRA`,
    its document, and what of the folder and the text is passed over.

    model: in save_pretrained layout, or a folder of checkpoint-N or step-N. length: L, by default
    64, or that of half of the sequences of a file (`own_text`). `parts` keeps what the same job
    goes on from until the block ends well. `Refusal` says what of them cannot be used.
    """
    folders, own = checkpoints(model)
    whole = Path(os.path.expanduser(model))
    config = read_json(folders[0] / layout.CONFIG)
    objective = layout.objective(config, str(folders[0]))
    length = own_text.usual_length(text, own) if length is None else length
    network.check_positions(config, length)
    spectrum.costs_of(orders, None, length, forwards, spectrum.CHUNKS[objective == "next-token"])
    files = {str(path): path.stat().st_mtime_ns for path in given.text_files([text], "--text")}
    code = code_digest(Path(__file__), ("manybody.models.pretrained.network",))
    asked = [list(map(str, folders)), files, length, orders, forwards, code]
    job = hashlib.sha256(to_json(asked).encode()).hexdigest()[:32]
    work, device = parts / job, pick("auto")
    with lease(parts):
        sequences, run = work / "text.parquet", work / "run" / "manifest.json"
        if not sequences.is_file():
            own_text.encode(text, own, length, MOST, sequences, "--text")
        rows = Sequences.open(sequences)[:MOST]
        if (different := len({row.tobytes() for row in rows})) < FEWEST:
            raise Refusal(
                f"found {text}, which makes {different} different sequences of {length} tokens; "
                f"expected at least {FEWEST}; give a longer text, or a smaller --length (or, where "
                f"most of it is unknown to the tokenizer, letters, case and spaces as in training)",
                "--text",
            )
        if not run.is_file():
            weights = {"architecture": "pretrained", "objective": objective, "weights": model}
            about = {"source": Path(text).name, "model": whole.resolve().name}
            adopt(weights, sequences, run.parent, work / "series.json", work, 0, about, device)
        entry = {
            "kind": "draws",
            "law": "text",
            "steps": "all",
            "orders": orders,
            "first": 0.03,
            "higher": 0.003,
            "forwards": forwards,
            "sequences": len(rows),
            "passage": 0,
        }
        targets = forwards // 2 // 2**SIZE  # half of the forward passes have to be enough
        if targets >= LEAST and length > SIZE:
            entry["anchored"] = {"size": SIZE, "targets": targets}
        kept = work / "spectra.parquet"
        if not kept.is_file():
            found = spectra.measure(
                run,
                sequences,
                entry,
                work / "draws",
                job,
                device,
                f"spectrum of {whole.name}",
                torch.get_num_threads(),
                tokenizer.decoder(work / "text.json"),
            )
            SPECTRA.write(kept, *found)
        table, about = SPECTRA.read(kept)
        if (table["state"][table["quantity"] == "M"] == "no spectrum yet").all():
            raise Refusal(
                f"found {model}, whose logits are the same whatever the context, as where all "
                "weights are 0; expected some that depend on the text; take a trained model, or "
                "save or copy this one again",
                "weights",
            )
        passed = [
            *(f"passed over: {said}" for said in series.checkpoints(whole)[1]),
            *Sequences.open(sequences).about.get("said", []),
        ]
        yield table, about | {"spectrum": whole.name, "entry": entry}, passed
        shutil.rmtree(parts)


def checkpoints(model: str) -> tuple[list[Path], Path]:
    """The folders of a model's checkpoints in order, and that of its tokenizer, or `Refusal`."""
    folders = [Path(found["folder"]) for found in series.found(model).values()]
    for folder in folders:
        layout.small_files([path.name for path in folder.iterdir()], str(folder))
    last = folders[-1]
    beside = (last, Path(os.path.expanduser(model)), *reversed(folders), last.parent)
    return folders, next((folder for folder in beside if own_tokenizer.described(folder)), last)
