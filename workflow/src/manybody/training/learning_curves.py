"""Errors of factored attention inferred from M sequences: many fits to subsets of a source.

There are two kinds of curve (docs/science/potts.md, sections 4 and 6). Both fit one head of free
attention by L-BFGS to all L masks of the first M sequences of disjoint parts of the training split:

- `separability` (fig. 3, right): M is so small that the conditionals can be separated. Minimised is
  the summed loss plus lambda / 2 (|A|^2 + |V|^2), for each lambda of `ridges`.
- `recovery`: M is so large that errors fall as 1 / M. Minimised is the mean loss plus the same
  penalty, for one lambda.

The model is bilinear in A and V, so different starts reach different solutions: normal numbers
whose standard deviations the entry gives, `init_scale: {attention, values}`.
"""

import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from manybody.data.gauge import coupling_error, symmetrised
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.tree import mean_and_error
from manybody.io import tables
from manybody.io.atomic import sha256
from manybody.io.progress import Progress
from manybody.io.sequences import Sequences
from manybody.io.tensor_files import read_about
from manybody.training import pseudolikelihood as pl

COLUMNS = tables.THEORY.schema.names
OVERHEAD = 60  # the rest of an iteration takes as long as the losses of so many sequences


def compute(
    entry: dict, paths: dict, resume: str | Path, threads: int = 1, code: str = ""
) -> tuple[pd.DataFrame, dict]:
    """The table of a curve (see `tables.write_theory`) and what was fitted.

    entry: the config's. paths: the Sequences `train` and `validation` and the `hamiltonian` of its
    source. Finished fits are kept in the folder `resume`, for a later call with the same of all
    this and `code`, until `forget`. The table depends neither on these nor on the threads.

    Quantities, with x = M and the realisation as seed, losses in nats a site, series lambda:

    - `test loss` (y_err: standard error over sequences), `training loss`, `iterations`;
    - `excess loss`: test loss minus that of the true conditionals on the same sequences, paired;
    - `optimum`: the latter, x the number of test sequences;
    - for `recovery`: `coupling error` |c A - J|^2 / |J|^2 and `pearson` of c A and J, over ordered
      pairs; `score correlation` of |A_ij + A_ji| / 2 and |J_ij|, over pairs; `expected excess`
      p / (2 M L), p = L (L - 1) + q (q - 1) - 1; `slope` of log coupling error by log M, one a
      realisation, and `mean slope` with its standard error over realisations.
    """
    hamiltonian = Hamiltonian.load(paths["hamiltonian"])
    data = {split: Sequences.open(paths[split]).tokens for split in ("train", "validation")}
    test = np.asarray(data["validation"][: entry["test"]], np.int64)
    best = pl.losses(true_conditionals(hamiltonian), test)
    identity = {
        "entry": entry,
        "code": code,
        "sources": {name: sha256(path) for name, path in sorted(paths.items())},
    }

    def unit(size: int, seed: int) -> pd.DataFrame:
        """The fits to the first `size` sequences of one realisation."""
        saved = Path(resume) / f"{size}-{seed}.parquet"
        found = tables.THEORY.kept(saved, identity)
        if found is None:
            first = seed * max(entry["sizes"])
            counted = pl.Counted(data["train"][first : first + size], hamiltonian.vocabulary)
            rows = [row for ridge in _ridges(entry) for row in fits(ridge, counted, size, seed)]
            found = pd.DataFrame(rows, columns=COLUMNS)
            tables.write_theory(saved, found, identity)
        return found

    def fits(ridge: float, counted: pl.Counted, size: int, seed: int) -> list[tuple]:
        fit = pl.fit_heads(
            counted,
            ridge=ridge,
            summed=entry["kind"] == "separability",
            init_scale=(entry["init_scale"]["attention"], entry["init_scale"]["values"]),
            seed=np.random.SeedSequence([entry["seed"], size, seed]),
            iterations=entry["iterations"],
        )
        losses = pl.losses(fit.model, test)
        figures = [
            ("test loss", *mean_and_error(losses)),
            ("excess loss", *mean_and_error(losses - best)),
            ("training loss", fit.loss, math.nan),
            ("iterations", fit.iterations, math.nan),
        ]
        if entry["kind"] == "recovery":
            figures += [
                (name, y, math.nan) for name, y in errors(fit.model.attention[0], hamiltonian)
            ]
        return [(name, f"{ridge:g}", seed, size, y, y_err) for name, y, y_err in figures]

    units = {
        (size, seed): (size + OVERHEAD) * len(_ridges(entry))
        for size in sorted(entry["sizes"], reverse=True)
        for seed in range(entry["realisations"])
    }
    parts, label = {}, f"curve {entry['kind']} of {entry['source']}"
    with (
        threadpool_limits(1),  # L-BFGS has small matrices, for which threads only wait
        Progress(sum(units.values()), "sequences", label) as progress,
        ThreadPoolExecutor(threads) as pool,
    ):
        for one, found in zip(units, pool.map(unit, *zip(*units, strict=True)), strict=True):
            parts[one] = found
            progress.update(units[one])
    rows = [("optimum", "", 0, len(test), *mean_and_error(best))]
    found = [parts[one] for one in sorted(parts)]
    if entry["kind"] == "recovery":
        rows += _summary(pd.concat(found), hamiltonian)
    frame = pd.concat([*found, pd.DataFrame(rows, columns=COLUMNS)], ignore_index=True)
    about = {
        "entry": entry,
        "length": hamiltonian.length,
        "vocabulary": hamiltonian.vocabulary,
        "beta": hamiltonian.beta,
    }
    return frame, about | {"source": read_about(paths["hamiltonian"]).get("parameters", {})}


def forget(resume: str | Path) -> None:
    """Removes the finished fits that `compute` kept."""
    shutil.rmtree(resume, ignore_errors=True)


def true_conditionals(hamiltonian: Hamiltonian) -> pl.Heads:
    """A = J and V = -2 beta U: the conditionals of a Hamiltonian of order 2."""
    fields = np.zeros((hamiltonian.length, hamiltonian.vocabulary))
    return pl.Heads(
        hamiltonian.couplings[None], -2 * hamiltonian.beta * hamiltonian.colours[None], fields
    )


def errors(attention: np.ndarray, hamiltonian: Hamiltonian) -> list[tuple[str, float]]:
    """Errors of A (L, L) against the true J, by name."""
    found = coupling_error(attention, hamiltonian.couplings)
    pairs = np.triu_indices(hamiltonian.length, 1)
    scores, truth = np.abs(symmetrised(attention)[pairs]), np.abs(hamiltonian.couplings[pairs])
    return [
        ("coupling error", found.error),
        ("pearson", found.pearson),
        ("score correlation", float(np.corrcoef(scores, truth)[0, 1])),
    ]


def _ridges(entry: dict) -> list[float]:
    return entry["ridges"] if entry["kind"] == "separability" else [entry["ridge"]]


def _summary(frame: pd.DataFrame, hamiltonian: Hamiltonian) -> list[tuple]:
    """Rows of the excess loss that theory expects, and of the slopes of the coupling error."""
    length, colours = hamiltonian.length, hamiltonian.vocabulary
    free = length * (length - 1) + colours * (colours - 1) - 1
    rows = [
        ("expected excess", "", 0, size, free / (2 * size * length), math.nan)
        for size in sorted(frame["x"].unique())
    ]
    found, slopes = frame[frame["quantity"] == "coupling error"], []
    for seed, mine in found.groupby("seed"):
        slopes.append(np.polyfit(np.log(mine["x"]), np.log(mine["y"]), 1)[0])
        rows.append(("slope", "", seed, 0.0, slopes[-1], math.nan))
    return [*rows, ("mean slope", "", 0, 0.0, *mean_and_error(np.array(slopes)))]
