"""Tables that figures and claims read: losses, theory, maps, histories and traces.

A table of losses has the columns `target` (name of a sequence set), `seed` (of the run), `step`
(checkpoint), `sequence` (row in its set), `loss_sum` (nats), `correct`, `predictions`. Loss always
means nats per predicted token: sum of loss_sum / sum of predictions.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from manybody.io import parquet
from manybody.io.atomic import ArtifactError, atomic
from manybody.io.manifest import Manifest


class Table(NamedTuple):
    """A kind of table: what its document calls it, and its columns."""

    kind: str
    schema: pa.Schema

    def write(self, path: str | Path, frame: pd.DataFrame, about: dict) -> None:
        """Writes the columns in their order, and the JSON document `about`, atomically."""
        table = pa.Table.from_pandas(frame, self.schema, preserve_index=False)
        parquet.write_table(
            path, table.replace_schema_metadata(), {"kind": self.kind, "about": about}
        )

    def read(self, path: str | Path) -> tuple[pd.DataFrame, dict]:
        """The table in its order of rows, and its document. Raises `ArtifactError` naming a file
        that is missing, damaged or of another kind."""
        table, document = parquet.read_table(path, self.kind, self.schema)
        return table.to_pandas(), document["about"]

    def kept(self, path: str | Path, about: dict) -> pd.DataFrame | None:
        """The table that an earlier run of a job left; None unless whole and with this document."""
        try:
            frame, found = self.read(path)
        except (ArtifactError, OSError):
            return None
        return frame if found == about else None


TEXT, INTEGER, NUMBER = pa.string(), pa.int64(), pa.float64()


def _table(kind: str, **columns: pa.DataType) -> Table:
    return Table(kind, pa.schema(columns))


LOSSES = _table(
    "losses",
    target=TEXT,
    step=INTEGER,
    sequence=INTEGER,
    loss_sum=NUMBER,
    correct=INTEGER,
    predictions=INTEGER,
)

THEORY = _table(
    "theory", quantity=TEXT, series=TEXT, seed=INTEGER, x=NUMBER, y=NUMBER, y_err=NUMBER
)

MAPS = _table(
    "maps",
    name=TEXT,  # A, V or attention
    step=INTEGER,  # of the checkpoint
    layer=INTEGER,  # 1 .. n, or 0 for the mean of the last two
    row=INTEGER,  # from 0, as `column`
    column=INTEGER,
    value=NUMBER,
)

DISPLACEMENTS = _table("displacements", seed=INTEGER, step=INTEGER, layer=INTEGER, value=NUMBER)

# What a student of a code law lacks of each of its terms, as `measure.clock` says it.
CLOCKS = _table(
    "clocks",
    step=INTEGER,
    term=INTEGER,  # its number in the law
    order=INTEGER,
    information=NUMBER,  # c_e, nats a site
    nested=pa.bool_(),
    gap=NUMBER,  # K_e, nats; NaN of a term that shares sites
    share=NUMBER,  # S_k of all terms of its order
    own_share=NUMBER,  # the same of the term alone
)

# The rows of a draw: one of a masked model, one for each target of a causal one. The mean over
# draws of the sum of weight x value is M_k of docs/science/controls.md, section 6.
SPECTRUM = _table(
    "spectrum",
    block=INTEGER,  # number of s among the sequences
    draw=INTEGER,
    target=INTEGER,
    order=INTEGER,  # k of M_k; 0 for Var g
    span=INTEGER,  # from the first to the last of target and flips; 0 if undefined
    positions=INTEGER,  # of the context that are not special
    differing=INTEGER,  # how many of them differ between s and r
    weight=NUMBER,
    value=NUMBER,
)

# What follows from the draws at each checkpoint, as `measure.spectrum` says it; the loss of
# logits that are cut at a degree is `anchored loss`, its excess over that of all `anchored excess`;
# `span k` is the share of M_k whose positions are so far apart.
SPECTRA = _table(
    "spectra",
    step=INTEGER,
    quantity=TEXT,
    order=INTEGER,  # k of M_k, degree of W_d and of a cut, a span
    value=NUMBER,
    se=NUMBER,
    floor=NUMBER,  # the error that only more sequences would lower
    asked=NUMBER,
    share=NUMBER,  # of Var g
    share_se=NUMBER,
    draws=INTEGER,
    forwards=INTEGER,
    reached=pa.bool_(),  # the error that was asked
    state=TEXT,
    # Of M_k: its values with blocks drawn anew, which are the same at all checkpoints.
    replicates=pa.list_(NUMBER),
)


def read_losses(paths: Mapping[int, str | Path]) -> pd.DataFrame:
    """The tables of losses of several runs, `seed -> path`, one under the other with a `seed`."""
    found = [LOSSES.read(path)[0].assign(seed=int(seed)) for seed, path in paths.items()]
    return pd.concat(found, ignore_index=True)


def write_theory(path: str | Path, frame: pd.DataFrame, about: dict) -> None:
    """Writes numbers of a calculation, one a row, and the JSON document `about`, atomically.

    frame: the columns of `THEORY`, y_err NaN where a number has no error, in any order, and no
    others, else `ValueError`. Equal rows and documents give the same bytes.
    """
    if set(frame.columns) != set(THEORY.schema.names):
        raise ValueError(
            f"{path}: found the columns {', '.join(map(str, frame.columns))}; a table of theory "
            f"has {', '.join(THEORY.schema.names)}"
        )
    # NaN is a number of these columns, not a missing value.
    columns = {name: frame[name].to_numpy() for name in THEORY.schema.names}
    table = pa.table(columns, THEORY.schema)
    parquet.write_table(path, table, {"kind": THEORY.kind, "about": about})


def rows(quantity: str, series: str, x, y, y_err=np.nan, seed: int = 0) -> pd.DataFrame:
    """Rows of a table of theory: y (n,) at x (n,), with one error for all or one each."""
    columns = {"quantity": quantity, "series": series, "seed": seed, "x": np.asarray(x, float)}
    return pd.DataFrame(columns | {"y": np.asarray(y, float), "y_err": y_err})


def joined(parts: list[pd.DataFrame], entry: dict) -> tuple[pd.DataFrame, dict]:
    """All `rows` of a config entry, and the document about them."""
    return pd.concat(parts, ignore_index=True)[THEORY.schema.names], document_of(entry)


def document_of(entry: dict) -> dict:
    """The entry without the number of threads, on which no number depends."""
    return {"entry": {key: value for key, value in entry.items() if key != "threads"}}


def learning_curves(losses: pd.DataFrame) -> pd.DataFrame:
    """Loss and accuracy of each target, seed and step, each with its standard error.

    Columns target, seed, step, loss, loss_se (nats per predicted token), accuracy, accuracy_se.
    Errors are those of a ratio of two sums over sequences; NaN for a single one.
    """
    keys = [losses[key] for key in ("target", "seed", "step")]
    counts = losses["predictions"].astype(float)
    weights, columns = counts.groupby(keys), {}
    units = weights.size()
    for name, sums in (("loss", losses["loss_sum"]), ("accuracy", losses["correct"])):
        parts = sums.groupby(keys)
        # As in `ratio`, for all groups at once.
        squares = (sums - parts.transform("sum") / weights.transform("sum") * counts) ** 2
        spread = squares.groupby(keys).sum() / (units * (units - 1))
        columns[name] = parts.sum() / weights.sum()
        columns[f"{name}_se"] = np.sqrt(spread) / weights.mean()
    return pd.DataFrame(columns).reset_index()


def ratio(sums: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """sum(sums) / sum(counts) and its standard error over the N independent units."""
    units = len(sums)
    value = sums.sum() / counts.sum()
    if units < 2:
        return float(value), np.nan
    spread = ((sums - value * counts) ** 2).sum() / (units * (units - 1))
    return float(value), float(np.sqrt(spread) / counts.mean())


def select(losses: pd.DataFrame, target: str, step: int | None = None) -> pd.DataFrame:
    """Sums of a target at a step, its last if none is given, indexed by sequence, over all seeds;
    `KeyError` with what there is when nothing matches."""
    of_target = losses[losses["target"] == target]
    rows = of_target[of_target["step"] == (of_target["step"].max() if step is None else step)]
    if rows.empty:
        steps = sorted(of_target["step"].unique())
        targets = sorted(losses["target"].unique())
        known = f"its steps are {steps}" if steps else f"targets are {targets}"
        at = "" if step is None else f" at step {step}"
        raise KeyError(f"no losses on {target!r}{at}; {known}")
    return rows.groupby("sequence")[["loss_sum", "correct", "predictions"]].sum()


def paired_difference(first: pd.DataFrame, second: pd.DataFrame) -> tuple[float, float]:
    """Mean of second minus first, in nats per token, and its standard error over sequences, within
    which the difference is taken. Both come from `select`: two checkpoints, models, or sweeps."""
    if not first.index.equals(second.index):
        raise ValueError(
            f"losses on {len(first)} and {len(second)} different sequences cannot be paired"
        )
    change = second["loss_sum"] / second["predictions"] - first["loss_sum"] / first["predictions"]
    return ratio(change.to_numpy(float), np.ones(len(change)))


def read_run(path: str | Path) -> tuple[dict, pd.DataFrame]:
    """A training run's `about` and its history, from its manifest."""
    manifest = Manifest.read(path, "model")
    return manifest.about, pd.read_parquet(manifest.file("history.parquet"))


def read_trace(path: str | Path) -> tuple[dict, pd.DataFrame]:
    """A clone's `about` and its trace, one row a sweep, from its manifest."""
    manifest = Manifest.read(path, "clones")
    return manifest.about, pd.read_parquet(manifest.file("trace.parquet"))


def steps_per_epoch(history: pd.DataFrame) -> float:
    """Optimizer steps in one pass over the training data."""
    last = history.loc[history["step"].idxmax()]
    return float(last["step"] / last["epoch"])


def read_targets(targets: Mapping[str, dict], clones: Mapping[str, str | Path]) -> dict[str, dict]:
    """Documents of the targets of an evaluation: name -> document.

    targets: as in the config. clones: name -> path of the manifest. A clone's document holds
    `generator` (model, seed, step, whether it is the last, description), `energy`, `chain_init`,
    `rows` (which test sequences its chains started from; None for noise), `sweep` and `length` (L);
    that of original text only `original: True`, that of another source its name as `source`.
    """
    documents = {}
    for name, target in targets.items():
        if "clone" not in target:
            other = target.get("source")
            documents[name] = {"original": False, "source": other} if other else {"original": True}
            continue
        about = Manifest.read(clones[target["clone"]], "clones").about
        documents[name] = {
            "original": False,
            "clone": target["clone"],
            "sweep": target["sweep"],
            "length": about["generator"]["description"]["length"],
            "rows": about.get("rows"),
            **{key: about[key] for key in ("generator", "energy", "chain_init")},
        }
    return documents


def places(
    targets: Mapping[str, dict], paths: Iterable[str | Path]
) -> dict[str, tuple[str | Path, int | None]]:
    """The file of the sequences of each target, and how many of them to take, None for all; paths:
    of each target's split or manifest."""
    found = {}
    for (name, target), path in zip(targets.items(), paths, strict=True):
        found[name] = path, target.get("sequences")
        if "split" not in target:
            file = f"sweep-{target['sweep']}.parquet" if "clone" in target else "starts.parquet"
            found[name] = Manifest.read(path, "clones").file(file), None
    return found


def write_csv(table: pd.DataFrame, path: str | Path, digits: str | None = "%.7g") -> None:
    """Writes a table with fixed number formats, those of `digits` or all of them, atomically."""
    with atomic(path) as temporary:
        table.to_csv(temporary, index=False, float_format=digits, lineterminator="\n")
