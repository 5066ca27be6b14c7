"""The order spectrum of each checkpoint of a run, from draws or by enumeration.

Of the last checkpoint also how far its interactions reach, which token acts on which in a passage,
and what the loss needs of each degree.
"""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.special import log_softmax

from manybody.io import checkpoints, tables
from manybody.io.devices import torch_threads
from manybody.io.manifest import Manifest
from manybody.io.progress import Progress
from manybody.io.refusal import Refusal
from manybody.io.seeds import spawn
from manybody.io.sequences import Sequences
from manybody.measure import flips, spectrum
from manybody.models import stored
from manybody.models.base import Model

EARLY = 15  # the last step over the first, where a number of steps is asked for
SAVED = 20.0  # seconds of draws that a job which is ended may lose


def measure(
    manifest: str | Path,
    sequences: str | Path,
    entry: dict,
    parts: str | Path,
    job: str,
    device: str = "cpu",
    label: str = "",
    threads: int = 1,
    words: Callable[[list[int]], str] | None = None,
) -> tuple[pd.DataFrame, dict]:
    """Spectra of a run's checkpoints, in the columns of `tables.SPECTRA.schema`, and its `about`.

    manifest: that of the run. sequences: the test split. entry: as in the config's `spectra`.
    words: the text of some tokens, for the `passage` in `about`; numbers by default. The last
    checkpoint comes first, since its Var g says when there is a spectrum. All checkpoints and runs
    use the same blocks, so that the ratio of two has a smaller error than each. If all are asked
    for, so are those that the audit of a series left out, if readable: their state is `suspect`.

    parts: a folder that keeps the draws, for the caller to remove once the spectra are written; a
    `job` of this very name goes on from them. Progress, shown under `label` if one is given, counts
    forward passes, and those of a checkpoint that it did not need.
    """
    run = Manifest.read(manifest, "model")
    steps, suspects = measured(run, entry["steps"])
    tokens = Sequences.open(sequences).first(entry["sequences"], "sequences").astype("int64")
    parts = Path(parts)
    parts.mkdir(parents=True, exist_ok=True)
    found, variance, drawn = {}, 0.0, entry["kind"] == "draws"
    count = (len(steps) + len(suspects)) * entry.get("forwards", 1)
    unit = "forwards" if drawn else "checkpoints"
    with torch_threads(threads), Progress(count, unit, label) as progress:
        for step in [steps[-1], *steps[:-1], *suspects]:
            try:
                model = stored.load_model(run, step, device)
                if drawn:
                    path = parts / f"step-{step}.parquet"
                    done = _drawn(model, tokens, entry, variance, path, job, progress)
                else:
                    done = spectrum.enumerated(model.double(), tokens, special=model.special)
                    progress.update(1)
            except (ValueError, OSError) as error:
                if step not in suspects:
                    raise
                print(f"step {step} is not measured: {error}", flush=True)
                continue
            table = done.table
            if step == steps[-1]:
                rows = done.rows if drawn and not entry.get("bounded") else None
                table = pd.concat([table, *of_the_last(model, tokens, entry, rows)])
            found[step] = table.assign(step=step)
            if step in suspects:
                found[step]["state"] = "suspect"
            if not variance:
                variance = float(table["value"][table["quantity"] == "Var g"].iloc[0])
            del model  # one in memory at a time
    every = pd.concat([found[step] for step in sorted(found)], ignore_index=True)
    about = {name: run.about[name] for name in ("description", "source", "model", "seed")}
    if suspects:
        about["suspects"] = run.about["suspects"]
    if entry.get("passage") is not None:
        about["passage"] = _parts(tokens[entry["passage"]].tolist(), words)
    return every.reindex(columns=tables.SPECTRA.schema.names), about


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
        nearest = {np.abs(np.log(np.maximum(kept, 0.1) / at)).argmin() for at in wanted}
        return [kept[place] for place in sorted(nearest)], []
    if asked == "last":
        return kept[-1:], []
    return kept, sorted(map(int, run.about.get("suspects", {})))


def _drawn(model, tokens, entry, variance, path: Path, job: str, progress) -> spectrum.Spectrum:
    """The results of one checkpoint, from the draws in `path` on if they are of this job."""
    rows = tables.SPECTRUM.kept(path, {"job": job})
    kept = _Kept(path, job, progress)
    done = spectrum.spectrum(
        model,
        tokens,
        special=model.special,
        variance=variance,
        rows=rows,
        save=kept.save,
        progress=kept,
        law=entry["law"],
        first=entry["first"],
        higher=entry["higher"],
        forwards=entry["forwards"],
        **{"degree" if entry.get("bounded") else "orders": entry["orders"]},
    )
    tables.SPECTRUM.write(path, done.rows, {"job": job})
    kept.update(entry["forwards"] - kept.done, before=rows is not None)
    return done


class _Kept:
    """Writes draws to `path` now and then; hands progress on and counts it."""

    def __init__(self, path: Path, job: str, progress):
        self.path, self.job, self.progress = path, job, progress
        self.done, self.last = 0, time.monotonic()

    def save(self, rows: pd.DataFrame) -> None:
        if time.monotonic() - self.last > SAVED:
            tables.SPECTRUM.write(self.path, rows, {"job": self.job})
            self.last = time.monotonic()

    def update(self, done: int, before: bool = False) -> None:
        self.done += done
        self.progress.update(done, before=before)


def _parts(passage: list[int], words: Callable[[list[int]], str] | None) -> list[str]:
    """The text that each token adds to those before it."""
    if words is None:
        return list(map(str, passage))
    texts = [words(passage[:end]) for end in range(len(passage) + 1)]
    return [after[len(before) :] for before, after in pairwise(texts)]


def ranges(rows: pd.DataFrame, orders: int) -> pd.DataFrame:
    """The share of each M_k, k = 1 .. `orders`, at each span, from the draws of `spectrum`: rows of
    quantity `span k`, whose order is the span from first to last of target and flips."""
    results = []
    for order in range(1, orders + 1):
        some = rows[(rows["order"] == order) & (rows["span"] > 0)]
        blocks, weighted = spectrum.Blocks(some), (some["weight"] * some["value"]).to_numpy()
        span = some["span"].to_numpy()
        whole = blocks.sums(span > 0, weighted)
        for each in np.unique(span):
            share = blocks.sums(span == each, weighted) / whole
            results.append((f"span {order}", each, share[0], blocks.error(share)))
    table = pd.DataFrame(results, columns=["quantity", "order", "value", "se"])
    return table.assign(reached=True, state="measured")


def of_the_last(model, tokens, entry: dict, rows) -> Iterator[pd.DataFrame]:
    """Tables of the last checkpoint alone; `rows` of its draws, if they have spans."""
    if rows is not None:
        yield ranges(rows, entry["orders"])
    if entry.get("anchored"):
        yield anchored_loss(model, tokens, entry["law"], model.special, **entry["anchored"])
    if entry.get("passage") is not None:
        yield _influences(model, tokens, entry)


def _influences(model, tokens, entry: dict) -> pd.DataFrame:
    """M_1 of the passage by target i and source (`order`), as rows of `influence on i`, and what
    pairs alone make of it, as rows of `pairs on i`."""
    length, targets = tokens.shape[1], None
    contexts = max(entry["forwards"] // (2 * length), 2)
    if not model.about.causal:
        contexts = 8
        targets = max(entry["forwards"] // (2 * length * contexts), 1)
    asked = entry["law"], model.special, contexts, targets
    both = influence_map(model, tokens, tokens[entry["passage"]], *asked)
    parts = []
    for name, found in zip(("influence", "pairs"), both, strict=True):
        target, source = np.nonzero(np.isfinite(found))
        part = pd.DataFrame({"order": source, "value": found[target, source]})
        parts.append(part.assign(quantity=[f"{name} on {i}" for i in target]))
    return pd.concat(parts, ignore_index=True).assign(
        draws=2 * contexts, reached=True, state="measured"
    )


@torch.no_grad()
def influence_map(
    model: Model | flips.Conditionals,
    tokens: np.ndarray,
    passage: np.ndarray,
    law: str = "text",
    special: tuple[int, ...] = (),
    contexts: int = 16,
    targets: int | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Influences of the tokens of one passage (L,) on each other: (2, L, L), by target and source.

    First M_1(i, j) = E |D_j g|^2, D_j g = (g(m) - g(m flipped at j)) / 2; then what pairs alone
    make of it, |E_m D_j g|^2, the part of degree 1. Means over `contexts` draws of r, of law `text`
    from tokens (B, L), with two independent m each, whose product has no bias, so that the second
    may be negative. At most `targets` targets of a masked model are asked, evenly spread; all by
    default. NaN elsewhere, where j is no context of i, and where either is special. Takes up to
    2 L forward passes a context and target of a masked model, 2 L a context for a causal one.
    """
    others = tokens[np.random.default_rng(spawn(seed, "map")).permutation(len(tokens))[:contexts]]
    draws = spectrum.Draws(model, tokens, None, law, special, 1, seed, (passage, others))
    length, count = len(passage), len(others)
    asked = draws.targets[draws.free[0, draws.targets]]
    if targets is not None and targets < len(asked):
        asked = asked[np.linspace(0, len(asked) - 1, targets).round().astype(int)]
    found = np.full((2, length, length), np.nan)
    seen, _ = draws.context(np.array([0]), asked[None])
    found[:, asked] = np.where(seen[0], 0.0, np.nan)
    rng = np.random.default_rng(spawn(seed, "map", 1))
    groups = draws.targets[None] if draws.model.causal else asked[:, None]
    for block, group in product(range(count), groups):
        _, differ = draws.context(np.array([block]), group[None])
        sources = np.flatnonzero(differ[0].any(0))
        starts = draws.s[block], draws.r[block]
        flipped = rng.random((2, length)) < 0.5
        for begin in range(0, len(sources), draws.inner.batch):
            part = sources[begin : begin + draws.inner.batch]
            changes = [_changes(draws.inner, *starts, m, part, group) for m in flipped]
            both = flips.norm(changes[0] + changes[1], draws.metric)
            first, second = (flips.norm(change, draws.metric) for change in changes)
            at = np.ix_(group, part)
            found[0][at] += (first + second).T / (2 * count)
            found[1][at] += (both - first - second).T / (2 * count)
    return found


def _changes(model: flips.Conditionals, start, other, flipped, sources, targets) -> torch.Tensor:
    """D_j (n, A, .) of features or logits, from `start` to `other`, for each j of sources (n,),
    where of the other positions those that are `flipped` (L,) have the tokens of `other` (L,)."""
    here = np.tile(np.where(flipped, other, start), (len(sources) + 1, 1))
    here[np.arange(len(sources)), sources] = np.where(flipped, start, other)[sources]
    logits = flips.ask(model, here, np.tile(targets, (len(here), 1)))
    sign = torch.from_numpy(np.where(flipped[sources], 0.5, -0.5)).to(logits.device)
    return (logits[:-1] - logits[-1]) * sign[:, None, None]


@torch.no_grad()
def anchored_loss(
    model: Model | flips.Conditionals,
    tokens: np.ndarray,
    law: str = "text",
    special: tuple[int, ...] = (),
    *,
    size: int,
    targets: int,
    seed: int = 0,
) -> pd.DataFrame:
    """Loss on text of the logits cut at degree 0 .. size in `size` positions, the others at text.

    Positions are drawn by the profile of influence, for `targets` of them in turn, by 2^size
    forward passes each. A row for each degree (`order`), of quantity `anchored loss` (nats) and
    `anchored excess`, over the uncut logits; errors by a bootstrap over blocks.

    The part of degree d at the text itself is 2^-q sum_m g(m) K_d(h), K the Krawtchouk polynomial
    of the number h of flipped tokens, so that no table of all 2^q logits is needed.
    """
    draws = spectrum.Draws(model, tokens, None, law, special, 1, seed)
    if not 1 <= size < tokens.shape[1]:
        raise Refusal(f"found {size}, expected 1 to L - 1 = {tokens.shape[1] - 1}", "size")
    draws.learn_profile()
    degrees, rng = np.arange(size + 1), np.random.default_rng(spawn(seed, "anchored"))
    # K_d(h), the sum over sets T of d bits of chi_T where h of the bits are flipped, is the
    # coefficient of x^d in (1 - x)^h (1 + x)^(size - h).
    columns = [np.poly(np.where(np.arange(size) < h, 1.0, -1.0)) for h in degrees]
    kernel = torch.from_numpy(np.stack(columns, axis=1))
    losses = np.empty((targets, size + 1))
    blocks = np.arange(targets) % len(draws.s)
    for number, block in enumerate(blocks):
        target = rng.choice(draws.targets[draws.free[block, draws.targets]])
        at = np.array([[target]])
        asked = draws.targets if draws.model.causal else at[0]
        _, differ = draws.context(np.array([block]), at)
        chosen = flips.draw_set(flips.chances(differ, at, draws.profile)[:, 0], size, rng)[0]
        place, sums = asked.tolist().index(target), 0
        ends = draws.s[block], draws.r[block]
        for flipped, logits in flips.cube(draws.model, *ends, chosen, asked):
            sums += torch.from_numpy(np.eye(size + 1)[:, flipped]) @ logits[:, place].cpu()
        cut = (kernel @ sums / 2**size).cumsum(0).numpy()
        losses[number] = -log_softmax(cut, axis=1)[:, draws.s[block, target]]
    of_blocks, every = spectrum.Blocks(pd.DataFrame({"block": blocks}), seed), blocks >= 0
    results = []
    for name, found in (("loss", losses), ("excess", losses - losses[:, -1:])):
        for degree in degrees:
            mean = of_blocks.sums(every, found[:, degree]) / of_blocks.sums(every)
            results.append((f"anchored {name}", degree, mean[0], of_blocks.error(mean)))
    table = pd.DataFrame(results, columns=["quantity", "order", "value", "se"])
    return table.assign(draws=targets, forwards=targets * 2**size, reached=True, state="measured")
