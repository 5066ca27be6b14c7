"""What a config costs, before anything is run: core hours, memory and GPU hours of each stage, and
its wall time on some nodes."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from manybody.io.atomic import atomic, write_json
from manybody.pipeline.advice import table
from manybody.pipeline.probe import Prices, Unsized
from manybody.pipeline.schedule import makespan, tails
from manybody.pipeline.time_left import OVERHEAD, PRICED

START = 2.5  # seconds in which a job of torch starts
PEAK = 784e12  # operations a second of an H100 in large products (docs/gpu.md)
# Shares of it that were measured there, by the operations that a probe counts.
SHARES = {
    "train_model": 0.38,
    "sample_clones": 0.22,
    "evaluate_model": 0.19,
    "measure_spectrum": 0.04,
}
COLUMNS = ["stage", "jobs", "core_hours", "memory_mb", "gpu_hours", "longest_hours", "not_priced"]


class Asked(NamedTuple):
    """A job of the DAG: what it asks for, and the other jobs that it needs."""

    rule: str
    wildcards: dict[str, str]
    threads: int
    megabytes: int
    gpus: int
    after: set[str]


class Price(NamedTuple):
    """Seconds of a job from its start to its end; `unsized`, what is missing of its price."""

    seconds: float
    unsized: str = ""


def price(job: Asked, prices: Prices) -> Price:
    """By seconds of cores, or on GPUs by operations at the measured share of their peak."""
    gpu = bool(job.gpus) and job.rule in SHARES
    try:
        amount = prices.of(job.rule, job.wildcards, gpu)
    except Unsized as error:
        return Price(START, str(error))
    each = PEAK * SHARES[job.rule] * job.gpus if gpu else job.threads
    return Price(START + amount / each)


def stages(jobs: dict[str, Asked], found: dict[str, Price]) -> pd.DataFrame:
    """A row of `COLUMNS` for each stage in the order of `jobs`, and one of all."""
    rows = {}
    for name, job in jobs.items():
        rows.setdefault(job.rule, []).append((job, *found[name]))
    rows = [_row(stage, made) for stage, made in rows.items()]
    every = [(job, *found[name]) for name, job in jobs.items()]
    return pd.DataFrame([*rows, _row("all", every)], columns=COLUMNS)


def _row(stage: str, jobs: Iterable[tuple[Asked, float, str]]) -> list:
    return [
        stage,
        len(jobs),
        sum(job.threads * seconds for job, seconds, _ in jobs) / 3600,
        max((job.megabytes for job, _, _ in jobs), default=0),
        sum(job.gpus * seconds for job, seconds, _ in jobs) / 3600,
        max((seconds for _, seconds, _ in jobs), default=0.0) / 3600,
        "; ".join(dict.fromkeys(unsized for _, _, unsized in jobs if unsized)),
    ]


def walls(
    jobs: dict[str, Asked], found: dict[str, Price], counts: Iterable[int], cores: int, gpus: int
) -> pd.DataFrame:
    """Hours on each number of nodes of so many cores and GPUs, and those of the longest chain."""
    seconds = {name: one.seconds + OVERHEAD for name, one in found.items()}
    after = {name: job.after for name, job in jobs.items()}
    chain = max(tails(seconds, after).values(), default=0.0)

    def needs(name: str) -> tuple[int, int]:
        return jobs[name].threads, jobs[name].gpus

    rows = [(n, makespan(seconds, after, needs, [(cores, gpus)] * n) / 3600) for n in counts]
    made = pd.DataFrame(rows, columns=["nodes", "wall_hours"])
    return made.assign(longest_chain_hours=chain / 3600)


def write(results: Path, jobs: dict[str, Asked], prices: Prices, compute: dict) -> str:
    """Writes `price.csv` and the seconds of each job, by which a run says how long it will take;
    returns both tables as text."""
    found = {name: price(job, prices) for name, job in jobs.items()}
    made = stages(jobs, found)
    results.mkdir(parents=True, exist_ok=True)
    with atomic(results / "price.csv") as temporary:
        made.to_csv(temporary, index=False, float_format="%.4g")
    write_json(results / PRICED, {k: one.seconds for k, one in found.items() if not one.unsized})
    shape = compute["cores"], compute["gpus"]
    text = (made, walls(jobs, found, compute["nodes"], *shape))
    return "\n".join(table(list(one.columns), one.map(_shown).values.tolist()) for one in text)


def _shown(value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
