"""The order spectrum of each checkpoint of a run, from draws or by enumeration."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from manybody.io import checkpoints, tables
from manybody.io.atomic import ArtifactError
from manybody.io.devices import torch_threads
from manybody.io.manifest import Manifest
from manybody.io.refusal import Refusal
from manybody.io.sequences import Sequences
from manybody.measure import spectrum
from manybody.models import stored

EARLY = 15  # the last step over the first, where a number of steps is asked for
SAVED = 20.0  # seconds of draws that a job which is ended may lose


def measure(
    manifest: str | Path,
    sequences: str | Path,
    entry: dict,
    parts: str | Path,
    job: str,
    device: str = "cpu",
    progress=None,
    threads: int = 1,
    words: Callable[[list[int]], str] | None = None,
) -> tuple[pd.DataFrame, dict]:
    """Spectra of a run's checkpoints, in the columns of `tables.SPECTRA_SCHEMA`, and its `about`.

    manifest: that of the run. sequences: the test split. entry: as in the config's `spectra`.
    words: the text of some tokens, for the `passage` in `about`; numbers by default. The
    last checkpoint comes first, since its Var g says when there is a spectrum. All checkpoints and
    runs are measured on the same blocks, so that the ratio of two has a smaller error than each.
    Where all are asked for, so are those that the audit of a series left out, if they can be read:
    their state is `suspect`.

    parts: a folder that keeps the draws, for the caller to remove once the spectra are written; a
    `job` of this very name goes on from them. progress.update(n) counts forward passes, and those
    of a checkpoint that it did not need.
    """
    run = Manifest.read(manifest, "model")
    steps, suspects = measured(run, entry["steps"])
    data = Sequences.open(sequences)
    if entry["sequences"] > len(data):
        raise Refusal(
            f"found {entry['sequences']}; expected at most {len(data)}, as {sequences} holds no "
            f"more; lower it, or give that split more data",
            "sequences",
        )
    tokens, parts = data[: entry["sequences"]].astype("int64"), Path(parts)
    parts.mkdir(parents=True, exist_ok=True)
    found, variance, drawn = {}, 0.0, entry["kind"] == "draws"
    with torch_threads(threads):
        for step in [steps[-1], *steps[:-1], *suspects]:
            try:
                model = stored.load_model(run, step, device)
                if drawn:
                    path = parts / f"step-{step}.parquet"
                    done = _drawn(model, tokens, entry, variance, path, job, progress)
                    table = done.table
                else:
                    done = spectrum.enumerated(model.double(), tokens, special=model.special)
                    table = done.table
            except (ValueError, OSError) as error:
                if step not in suspects:
                    raise
                print(f"step {step} is not measured: {error}", flush=True)
                continue
            if step == steps[-1] and drawn and not entry.get("bounded"):
                table = pd.concat([table, _ranges(done.rows, entry)], ignore_index=True)
            if step == steps[-1] and entry.get("anchored"):
                table = pd.concat([table, _anchored(model, tokens, entry)], ignore_index=True)
            if step == steps[-1] and entry.get("passage") is not None:
                table = pd.concat([table, _influences(model, tokens, entry)], ignore_index=True)
            found[step] = table.assign(step=step)
            if step in suspects:
                found[step]["state"] = "suspect"
            if drawn and not variance:
                variance = float(table["value"][table["quantity"] == "Var g"].iloc[0])
            if progress is not None and not drawn:
                progress.update(1)
            del model  # one in memory at a time
    every = pd.concat([found[step] for step in sorted(found)], ignore_index=True)
    about = {name: run.about[name] for name in ("description", "source", "model", "seed")}
    if suspects:
        about["suspects"] = run.about["suspects"]
    if entry.get("passage") is not None:
        about["passage"] = _parts(tokens[entry["passage"]].tolist(), words)
    return every.reindex(columns=tables.SPECTRA_SCHEMA.names), about


def measured(
    manifest: str | Path | Manifest, asked: str | int | list[int]
) -> tuple[list[int], list[int]]:
    """The steps of a run that are measured, ascending, and the suspects among its other steps."""
    run = checkpoints.as_manifest(manifest)
    kept = checkpoints.checkpoint_steps(run)
    if isinstance(asked, list):
        return sorted(asked), []
    if isinstance(asked, int):
        wanted = np.geomspace(kept[-1], kept[-1] / EARLY, asked)
        nearest = {int(np.abs(np.log(np.maximum(kept, 0.1) / at)).argmin()) for at in wanted}
        return [kept[place] for place in sorted(nearest)], []
    if asked == "last":
        return kept[-1:], []
    return kept, sorted(map(int, run.about.get("suspects", {})))


def _drawn(model, tokens, entry, variance, path: Path, job: str, progress) -> spectrum.Spectrum:
    """The results of one checkpoint, from the draws in `path` on if they are of this job."""
    try:
        rows, about = tables.read_spectrum(path)
        rows = rows if about == {"job": job} else None
    except (ArtifactError, OSError):
        rows = None
    counted = _Counted(progress)
    largest = "degree" if entry.get("bounded") else "orders"
    done = spectrum.spectrum(
        model,
        tokens,
        special=model.special,
        variance=variance,
        rows=rows,
        save=_saver(path, job),
        progress=counted,
        **{largest: entry["orders"]},
        law=entry["law"],
        first=entry["first"],
        higher=entry["higher"],
        forwards=entry["forwards"],
    )
    tables.write_spectrum(path, done.rows, {"job": job})
    counted.update(entry["forwards"] - counted.done)
    return done


class _Counted:
    """Hands progress on and counts it."""

    def __init__(self, progress):
        self.progress, self.done = progress, 0

    def update(self, done: int) -> None:
        self.done += done
        if self.progress is not None:
            self.progress.update(done)


def _saver(path: Path, job: str) -> Callable[[pd.DataFrame], None]:
    """Writes draws to `path` now and then."""
    last = time.monotonic()

    def save(rows: pd.DataFrame) -> None:
        nonlocal last
        if time.monotonic() - last > SAVED:
            tables.write_spectrum(path, rows, {"job": job})
            last = time.monotonic()

    return save


def _ranges(rows: pd.DataFrame, entry: dict) -> pd.DataFrame:
    """The share of each M_k at each span, as rows of `span k`, whose order is the span."""
    parts = [
        spectrum.ranges(rows, order).assign(quantity=f"span {order}")
        for order in range(1, entry["orders"] + 1)
    ]
    found = pd.concat(parts, ignore_index=True).rename(columns={"span": "order", "share": "value"})
    return found.assign(reached=True, state="measured")


def _influences(model, tokens, entry: dict) -> pd.DataFrame:
    """M_1 of the passage by target i and source (`order`), as rows of `influence on i`, and what
    pairs alone make of it, as rows of `pairs on i`."""
    length, targets = tokens.shape[1], None
    contexts = max(entry["forwards"] // (2 * length), 2)
    if not model.about.causal:
        contexts = 8
        targets = max(entry["forwards"] // (2 * length * contexts), 1)
    asked = dict(law=entry["law"], special=model.special, contexts=contexts, targets=targets)
    passage = tokens[entry["passage"]]
    both = spectrum.influence_map(model, tokens, passage, **asked)
    parts = []
    for name, found in zip(("influence", "pairs"), both, strict=True):
        for target in np.flatnonzero(np.isfinite(found).any(1)):
            sources = np.flatnonzero(np.isfinite(found[target]))
            part = pd.DataFrame({"order": sources, "value": found[target, sources]})
            parts.append(part.assign(quantity=f"{name} on {target}"))
    return pd.concat(parts, ignore_index=True).assign(
        draws=2 * contexts, reached=True, state="measured"
    )


def _parts(passage: list[int], words: Callable[[list[int]], str] | None) -> list[str]:
    """The text that each token adds to those before it."""
    if words is None:
        return list(map(str, passage))
    texts = [words(passage[:end]) for end in range(len(passage) + 1)]
    return [after[len(before) :] for before, after in itertools.pairwise(texts)]


def _anchored(model, tokens, entry: dict) -> pd.DataFrame:
    """Rows of the anchored loss, and of its excess over that of all degrees."""
    asked = entry["anchored"]
    given = dict(law=entry["law"], special=model.special)
    losses = spectrum.anchored_loss(model, tokens, **given, **asked)
    same = dict(draws=asked["targets"], forwards=asked["targets"] * 2 ** asked["size"])
    same |= dict(reached=True, state="measured")
    return pd.concat(
        [
            pd.DataFrame({"order": losses["degree"], "value": losses[name]}).assign(
                quantity=f"anchored {name}", se=losses[error], **same
            )
            for name, error in (("loss", "se"), ("excess", "excess_se"))
        ]
    )
