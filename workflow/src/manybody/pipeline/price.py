"""A config's cost before it runs: core hours, memory and GPU hours by stage, wall time on nodes."""

from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from manybody.io.atomic import atomic, write_json
from manybody.io.progress import Progress, only_in_notebooks
from manybody.pipeline.advice import table
from manybody.pipeline.probe import Prices, Unsized
from manybody.pipeline.schedule import makespan, tails
from manybody.pipeline.time_left import OVERHEAD, PRICED

PEAK = 784e12  # operations a second of an H100 in large products (docs/gpu.md)
# Shares of it by which the operations that a probe counts take the time that was measured there:
# of a BERT; of factored attention from four layers on.
SHARES = {
    "train_model": 0.38,
    "sample_clones": 0.32,
    "evaluate_model": 0.17,
    "measure_spectrum": 0.04,
}
OF_RANKS = SHARES | {"train_model": 0.15, "sample_clones": 0.045}
RUN = itemgetter("source", "model", "seed")
ORDERS = 20  # by chance, in which a queue starts what is submitted together
LOCAL_CORES = 2  # of the login node, for jobs that are not queued (profiles/slurm)


class Asked(NamedTuple):
    """A job of the DAG: what it asks for, and the other jobs that it needs."""

    rule: str
    wildcards: dict[str, str]
    threads: int
    megabytes: int
    gpus: int
    after: set[str]
    module: str = ""  # that it imports by name
    local: bool = False  # runs where Snakemake does, of a cluster on the login node


class Price(NamedTuple):
    """Seconds of a job from its start to its end; `unsized`, what is missing of its price."""

    seconds: float
    unsized: str = ""


def price(job: Asked, prices: Prices) -> Price:
    """By seconds of cores, or on GPUs by operations at the measured share of their peak."""
    gpu = bool(job.gpus) and job.rule in SHARES
    start = prices.start(job.rule, job.module)
    try:
        amount = prices.of(job.rule, job.wildcards, gpu)
    except Unsized as error:
        return Price(start, str(error))
    if not gpu:
        return Price(start + amount / job.threads)
    named = prices.config["clones"].get(job.wildcards.get("clone"), job.wildcards)
    ranked = "rank" in prices.config["models"].get(named.get("model"), {})
    return Price(start + amount / (PEAK * (OF_RANKS if ranked else SHARES)[job.rule] * job.gpus))


def by_stage(
    config: dict, sizes: dict[str, dict], runs: list, clones: list
) -> dict[str, list[float]]:
    """Seconds on one core of each job, by stage, behind some runs (evaluation, seed) and clones of
    the config; those that cannot be priced, and what is trained elsewhere, are left out."""
    drawn = {name: config["clones"][name] for name in clones}
    tested = (config["evaluations"][name] | {"seed": seed} for name, seed in runs)
    asked = [
        ("train_model", {"source": source, "model": model, "seed": seed})
        for source, model, seed in dict.fromkeys(map(RUN, chain(tested, drawn.values())))
        if "steps" in config["models"][model].get("training", {})
    ]
    asked += [("sample_clones", {"source": one["source"], "clone": n}) for n, one in drawn.items()]
    asked += [("evaluate_model", {"evaluation": name, "seed": seed}) for name, seed in runs]
    prices, found = Prices(config, sizes, {}), {}
    for rule, wildcards in asked:
        one = price(Asked(rule, wildcards, 1, 0, 0, set()), prices)
        if not one.unsized:
            found.setdefault(rule, []).append(one.seconds)
    return found


def stages(jobs: dict[str, Asked], found: dict[str, Price]) -> pd.DataFrame:
    """A row for each stage in the order of `jobs`, and one of all."""
    every = pd.DataFrame([job._asdict() | found[name]._asdict() for name, job in jobs.items()])
    every["hours"] = every["seconds"] / 3600
    every["core_hours"] = every["threads"] * every["hours"]
    every["gpu_hours"] = every["gpus"] * every["hours"]
    by_rule = pd.concat([every, every.assign(rule="all")]).groupby("rule", sort=False)
    return by_rule.agg(
        jobs=("hours", "size"),
        core_hours=("core_hours", "sum"),
        memory_mb=("megabytes", "max"),
        gpu_hours=("gpu_hours", "sum"),
        longest_hours=("hours", "max"),
        not_priced=("unsized", lambda said: "; ".join(filter(None, said.unique()))),
    ).reset_index(names="stage")


def walls(
    jobs: dict[str, Asked], found: dict[str, Price], compute: dict, start: float
) -> pd.DataFrame:
    """Hours on each number of a cluster's nodes that `compute` has, a mean over ORDERS, and of the
    longest chain. start: seconds in which a queued job reads the workflow before it begins."""
    queued = {name for name, job in jobs.items() if not job.local}
    seconds = {k: one.seconds + OVERHEAD + start * (k in queued) for k, one in found.items()}
    after = {name: job.after for name, job in jobs.items()}
    longest = max(tails(seconds, after).values(), default=0.0)

    def needs(name: str) -> tuple[int, int, int]:
        return (jobs[name].threads, jobs[name].gpus, 0) if name in queued else (0, 0, 1)

    def hours(count: int) -> float:
        nodes = [(0, 0, LOCAL_CORES), *[(compute["cores"], compute["gpus"], 0)] * count]
        tried = (makespan(seconds, after, needs, nodes, (), queued, n) for n in range(ORDERS))
        return sum(tried) / ORDERS / 3600

    made = pd.DataFrame({"nodes": compute["nodes"], "wall_hours": map(hours, compute["nodes"])})
    return made.assign(longest_chain_hours=longest / 3600)


def write(
    results: Path, jobs: dict[str, Asked], prices: Prices, compute: dict, start: float
) -> str:
    """Writes `price.csv` and the seconds of each job, by which a run says how long it will take;
    returns both tables as text. start: as of `walls`."""
    found = {}
    with Progress(len(jobs), "jobs", "price") as progress:
        for name, job in jobs.items():
            # Probes tell their progress as jobs do.
            found[name] = only_in_notebooks(price, job, prices)
            progress.update(1)
    made = stages(jobs, found)
    results.mkdir(parents=True, exist_ok=True)
    with atomic(results / "price.csv") as temporary:
        made.to_csv(temporary, index=False, float_format="%.4g")
    write_json(results / PRICED, {k: one.seconds for k, one in found.items() if not one.unsized})
    text = (made, walls(jobs, found, compute, start))
    shown = (one.map(lambda x: f"{x:.3g}" if isinstance(x, float) else x) for one in text)
    return "\n".join(table(list(one.columns), one.values.tolist()) for one in shown)
