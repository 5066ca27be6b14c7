"""Metropolis-Hastings clones of a masked language model (simplicity, section 4 and appendix A).

A step masks position i of a chain, draws b from softmax(h_i) and accepts it with the ratio of
`backends`. A sweep is L steps, every position once. Each chain skips proposals equal to its current
token, which cost nothing, to its next real one, so the expensive ratios are always of full batches.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet
from torch import Tensor

from manybody.data import overlap
from manybody.io import sequences
from manybody.io.atomic import atomic, write_text
from manybody.io.devices import torch_threads
from manybody.io.lease import lease
from manybody.io.manifest import write_manifest
from manybody.io.progress import Progress
from manybody.io.quick_start import number_column
from manybody.io.refusal import Refusal
from manybody.io.resume import Resume, digest
from manybody.models.base import Model
from manybody.sampling.backends import Chains, bytes_needed, open_chains
from manybody.sampling.diagnostics import Record, trace
from manybody.sampling.draws import Draws, propose
from manybody.sampling.footprint import MEMORY
from manybody.sampling.redraw import redraw, stationary
from manybody.sampling.walk_loops import Walk, asked, move, ready_moves, skip_same
from manybody.theory.information import information_by_order

INTERVAL = 5  # sweeps between two points at which caches are rebuilt and the state is saved
SHOWN = 5  # chains in samples.md
OF_CHAINS = ("energies", "same", "accepted", "changed")  # arrays of a record, a column each chain


def advance(
    chains: Chains,
    visits: np.ndarray,
    uniforms: np.ndarray,
    initial: np.ndarray,
    keep: set[int] = frozenset(),
    report: Callable[[int, Record], None] | None = None,
    betas: np.ndarray | None = None,
) -> Record:
    """Moves every chain through S sweeps.

    `visits` (C, S, L) are positions and `uniforms` (C, S, L, 2) the numbers for proposing and
    accepting; `changed` compares with `initial` (C, L); `keep` names sweeps (1..S) after which the
    tokens are recorded; `report` hears after each batch the steps done. `betas` (C,) are inverse
    temperatures of the target, 1 by default; not with coarse arithmetic.
    """
    count, sweeps, length = visits.shape
    last, device = sweeps * length, chains.tokens.device
    with np.errstate(divide="ignore"):  # a uniform number may be exactly 0: accept
        accepting = np.log(uniforms[..., 1])
    record, kept = Record(sweeps, count), np.zeros((len(keep), *initial.shape), dtype=np.int64)
    slot = np.full(sweeps, -1)
    for place, sweep in enumerate(sorted(keep)):
        slot[sweep - 1], record.tokens[sweep] = place, kept[place]
    walk = Walk(
        visits.reshape(count, last).copy(),
        uniforms[..., 0].reshape(count, last).copy(),
        accepting.reshape(count, last),
        chains.tokens.cpu().numpy().copy(),
        initial.astype(np.int64, order="C"),
        chains.energy().cpu().numpy().copy(),
        step=np.zeros(count, dtype=np.int64),
        ready=np.zeros(count, dtype=bool),
        proposals=np.zeros(count, dtype=np.int64),
        gains=np.zeros(count),
        same=record.same,
        accepted=record.accepted,
        changed=record.changed,
        recorded=record.energies,
        kept=kept,
        slot=slot,
    )
    margin, ahead = getattr(chains, "margin", 0.0), min(getattr(chains, "ahead", 1), length)

    def record_exactly(which: np.ndarray, before: np.ndarray) -> None:
        """Computes the energies of chains that ended a sweep: coarse ratios do not add up to it."""
        ended = which[walk.step[which] // length > before // length]
        if ended.size:
            walk.energies[ended] = chains.energy(_indices(ended, device)).cpu().numpy()
            walk.recorded[walk.step[ended] // length - 1, ended] = walk.energies[ended]

    while True:
        while True:
            waiting, *where, current, numbers = asked(walk, ahead)
            if not waiting.size:
                break
            before = walk.step[waiting]
            logits = chains.logits(*(_indices(values, device) for values in where))
            found = map(np.ascontiguousarray, propose(logits, numbers, current))
            skip_same(walk, waiting, *(values.reshape(-1, ahead) for values in found))
            if margin:
                record_exactly(waiting, before)
            if not chains.full_batches:
                break
        moving, positions, proposals = ready_moves(walk)
        if not moving.size:
            if (walk.step == last).all():
                break
            continue
        moves = (_indices(values, device) for values in (moving, positions, proposals))
        ratios, handle = chains.log_ratio(*moves)
        ratios, gains, before = ratios.cpu().numpy(), walk.gains[moving], walk.step[moving]
        rises = ratios + gains
        if betas is not None:  # the proposals' own distribution stays as it is
            ratios = betas[moving] * rises - gains
        if margin:  # coarse arithmetic does not decide within it, nor where it is not finite
            (doubtful,) = (~(np.abs(ratios - walk.accepting[moving, before]) >= margin)).nonzero()
            if doubtful.size:
                ratios[doubtful] = chains.refine(handle, _indices(doubtful, device)).cpu().numpy()
        accepted = move(walk, moving, ratios, rises)
        chains.accept(handle, torch.from_numpy(accepted).to(device))
        if margin:
            record_exactly(moving, before)
        if report is not None:
            report(int(walk.step.sum()), record)
    if report is not None:
        report(count * last, record)
    return record


def _indices(values: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(values).to(device)


def group_size(
    model: Model, energy: str, memory: int = MEMORY, precision: str = "float32", sampler: str = "mh"
) -> int:
    """The number of chains that fit into `memory` bytes at once. Raises `MemoryError` for none."""
    shared, each = bytes_needed(model, energy, precision, sampler)
    if shared + each > memory:
        raise MemoryError(
            f"one chain of this model needs {(shared + each) / 2**30:.2f} GiB (tables "
            f"{shared / 2**30:.2f}, caches {each / 2**30:.2f}), {memory / 2**30:.2f} GiB are "
            "allowed; allow more or take a smaller model"
        )
    return (memory - shared) // each


def choose_initial(
    available: np.ndarray, chains: int, chain_init: str, vocabulary: int, seed: int
) -> tuple[np.ndarray, list[int] | None]:
    """Start sequences (chains, L) and the rows of `available` (N, L) that they are.

    `chain_init` is "test" (different rows of `available`, at random) or "unigram" (every token on
    its own with the frequencies of `available`; no rows). Chains of one `seed` start equal.
    """
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 2)))
    if chain_init == "test":
        if chains > len(available):
            raise Refusal(
                f"found {chains} that start at different test sequences; expected at most "
                f"{len(available)}, as the test split has no more; lower it, give the test split "
                f"more text, or take chain_init: unigram",
                "chains",
            )
        rows = np.sort(generator.choice(len(available), chains, replace=False))
        return np.asarray(available[rows], dtype=np.int64), rows.tolist()
    counts = np.bincount(np.asarray(available).reshape(-1), minlength=vocabulary)
    return generator.choice(vocabulary, (chains, available.shape[1]), p=counts / counts.sum()), None


def sample(
    model: Model,
    initial: np.ndarray,
    out: str | Path,
    *,
    energy: str,
    gauge: str,
    sweeps: list[int],
    order: str,
    seed: int,
    about: dict,
    tokenizer=None,
    threads: int = 1,
    memory: int = MEMORY,
    interval: int = INTERVAL,
    precision: str = "float32",
    stream: str = "",
    sampler: str = "mh",
    mu: np.ndarray | None = None,
) -> Path:
    """Draws clones of `model` from `initial` (C, L) into the folder `out`; returns its manifest.

    Writes `initial.parquet`, `sweep-{n}.parquet` for each n of `sweeps`, `trace.parquet`, with a
    `tokenizer` (`decode(list of ids)`, as `sequences.Symbols` has too) `samples.md`, and last
    `manifest.json` of kind "clones". `about` (JSON values) goes into every file. Every `interval`
    sweeps the caches are rebuilt and the state is saved under `resume/`: a run killed at any moment
    and started again with the same arguments writes the same bytes on a CPU. `seed` and `stream`
    are those of `Draws`; `memory` (bytes) bounds the chains that move together; `precision`,
    `sampler` and `mu` are those of `open_chains`. The manifest of `enumerated` has `information`,
    c_k of the distribution by order. Raises `ValueError` for starts that do not fit the model.
    """
    initial = np.ascontiguousarray(initial, dtype=np.int64)
    about = about | dict(
        energy=energy,
        gauge=gauge,
        order=order,
        chain_seed=seed,
        stream=stream,
        chains=len(initial),
        interval=interval,
        memory=memory,
        threads=threads,
        precision=precision,
    )
    if sampler != "mh":
        about |= dict(sampler=sampler)
    if mu is not None:
        about |= dict(reference=dict(law=hashlib.sha256(mu.tobytes()).hexdigest()))
    group = group_size(model, energy, memory, precision, sampler)
    out = Path(out)
    with torch_threads(threads), lease(out), torch.no_grad():
        if sampler == "enumerated":
            found = information_by_order(stationary(model).cpu().numpy()).items()
            about |= dict(information={str(order): gain for order, gain in found})
        run = _CloneFiles(out, model, initial, sorted(set(sweeps)), about)
        draws = Draws(seed, len(initial), model.length, order, stream)
        _walk(run, model, draws, group, sampler, mu)
        return run.close(tokenizer)


def _walk(
    run: "_CloneFiles", model: Model, draws: Draws, group: int, sampler: str, mu: np.ndarray | None
) -> None:
    device = next(model.parameters()).device
    energy, gauge = run.about["energy"], run.about["gauge"]
    count, size = len(run.initial), run.initial.size
    step = advance if sampler == "mh" else redraw
    parts = np.array_split(np.arange(count), -(-count // group))
    chains, label = None, f"clones {run.out.name}"
    with Progress(run.saves[-1] * size, "steps", label, run.done * size) as progress:
        while run.done < run.saves[-1]:
            first = run.done + 1
            block = range(first, min(run.done + run.about["interval"], run.saves[-1]) + 1)
            visits, uniforms = draws.sweeps(block)
            keep = {number - run.done for number in run.saves if number in block}
            records = []
            for part in parts:
                if len(parts) > 1 or chains is None:
                    chains = None  # the caches of the group before must go first
                    tokens = torch.from_numpy(run.tokens[part]).to(device)
                    chains = open_chains(
                        model, tokens, energy, gauge, run.about["precision"], sampler, mu
                    )
                else:
                    chains.rebuild()
                if first == 1:
                    run.past.energies[0, part] = chains.energy().cpu().numpy()
                report = _Report(progress, len(part))
                starts = run.initial[part]
                records.append(step(chains, visits[part], uniforms[part], starts, keep, report))
                run.tokens[part] = chains.tokens.cpu().numpy()
            run.add(records)


class _Report:
    """Passes on to the bar what a group of chains has done, about once a step of all of them."""

    def __init__(self, progress: Progress, chains: int):
        self.progress, self.chains, self.told = progress, chains, 0

    def __call__(self, steps: int, record: Record) -> None:
        # Summing the record after each batch would cost as much as a cheap model's move.
        if steps - self.told < 8 * self.chains and steps % record.same.size:
            return
        real = max(steps - record.same.sum(), 1)
        self.progress.update(steps - self.told, acceptance=record.accepted.sum() / real)
        self.told = steps


class _CloneFiles:
    """The files of a clone and what of them is done."""

    def __init__(self, out: Path, model: Model, initial: np.ndarray, saves: list[int], about: dict):
        self.out, self.initial, self.saves, self.about = out, initial, saves, about
        self.vocabulary = model.vocabulary
        identity = about | dict(
            sweeps=saves,
            initial=digest("", {"initial": torch.tensor(initial)}),
            parameters=digest("", model.state_dict()),
        )
        self.resume = Resume(out / "resume", identity)
        self.tokens = initial.copy()
        # All sweeps done; `energies` and `changed` begin with a row of the starts.
        self.past, starts = Record(0, len(initial)), Record(1, len(initial))
        self.past.energies, self.past.changed = starts.energies, starts.changed
        # What a killed writer or a run with other settings left in the folder.
        ours = {self._file(sweep) for sweep in saves}
        for path in out.iterdir():
            foreign = path.match("sweep-*.parquet") and path not in ours
            if foreign or path.match(".*.tmp"):
                path.unlink()
        found = self.resume.load()
        if found and all(self._file(n).exists() for n in saves if n <= found[1]["step"]):
            state = {name: tensor.numpy().copy() for name, tensor in found[0].items()}
            self.tokens = state.pop("tokens")
            vars(self.past).update(state)

    @property
    def done(self) -> int:
        """Sweeps that all chains have finished."""
        return len(self.past.same)

    def _file(self, sweep: int) -> Path:
        return self.out / f"sweep-{sweep}.parquet"

    def add(self, records: list[Record]) -> None:
        """Takes over what all groups did since the last time, writes saved sweeps and the state."""
        before, past = self.done, self.past
        for name in OF_CHAINS:
            rows = np.concatenate([getattr(record, name) for record in records], axis=1)
            setattr(past, name, np.concatenate([getattr(past, name), rows]))
        for sweep in sorted(records[0].tokens):
            tokens = np.concatenate([record.tokens[sweep] for record in records])
            about = self.about | dict(sweep=before + sweep) | self._shares(before + sweep)
            sequences.write(self._file(before + sweep), tokens, self.vocabulary, about)
        state = {name: getattr(past, name) for name in OF_CHAINS} | dict(tokens=self.tokens)
        tensors = {name: torch.from_numpy(values) for name, values in state.items()}
        self.resume.save(self.done, tensors, {})

    def _shares(self, sweeps: int) -> dict[str, float]:
        """Over the first `sweeps`: share of proposals equal to the token, acceptance of others."""
        proposals = sweeps * self.initial.size
        same = int(self.past.same[:sweeps].sum())
        accepted = int(self.past.accepted[:sweeps].sum())
        return dict(same=same / proposals, acceptance=accepted / max(proposals - same, 1))

    def close(self, tokenizer) -> Path:
        """Writes all that is left, the manifest last, and forgets the state."""
        past, length = self.past, self.initial.shape[1]
        starts = self.about | dict(sweep=0)
        sequences.write(self.out / "starts.parquet", self.initial, self.vocabulary, starts)
        columns = trace(past.energies, past.same, past.accepted, past.changed, length)
        table = pa.table({name: number_column(values) for name, values in columns.items()})
        with atomic(self.out / "trace.parquet") as temporary:
            parquet.write_table(table, temporary, write_page_checksum=True)
        names = ["starts.parquet", "trace.parquet", *(self._file(n).name for n in self.saves)]
        if tokenizer is not None:
            write_text(self.out / "samples.md", self._samples(tokenizer))
            names.append("samples.md")
        manifest = self.out / "manifest.json"
        about = self.about | dict(sweeps=self.saves) | self._shares(self.saves[-1])
        write_manifest(manifest, "clones", names, about)
        self.resume.clear()
        return manifest

    def _samples(self, tokenizer) -> str:
        """A few chains as text, at the start and after each saved sweep."""
        saved = {f"sweep {n}": sequences.Sequences.open(self._file(n)).tokens for n in self.saves}
        states = {"start": self.initial} | saved
        lines = [f"# Clones {self.out.name}", ""]
        if "overlap" in self.about:
            lines += [overlap.sentence(self.about["overlap"]), ""]
        for chain in range(min(SHOWN, len(self.initial))):
            lines += [f"## Chain {chain}", ""]
            for name, tokens in states.items():
                text = tokenizer.decode(tokens[chain].tolist())
                lines += [f"**{name}**", "", *(f"> {line}" for line in text.split("\n")), ""]
        return "\n".join(lines)
