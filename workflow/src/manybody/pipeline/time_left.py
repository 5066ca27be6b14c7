"""The time that the planned jobs of a run take: before any has run, and while they run.

A job is named by the path of its log below `logs/`, without the ending: `sample_clones/docs/n4`.
"""

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median

from manybody.io import store
from manybody.io.atomic import read_json, sha256
from manybody.io.progress import Report
from manybody.pipeline.schedule import makespan

OVERHEAD = 1.5  # seconds in which a job is started and looked after, beside what it takes itself
TRUST = 20.0  # seconds of jobs from which on their pace weighs more than what was expected
SHORT = 2.0  # seconds in which a job ends that finds its results in the store
GUESS = 15.0  # seconds of a job of a stage of which none has run, and that has no price
PRICED = "price.json"  # seconds of jobs by name, as `snakemake -- price` last found them


@dataclass
class Plan:
    """The jobs of a run: the seconds expected of each, the others that it comes after, its threads,
    all cores, the jobs whose results are stored, and those whose seconds are guessed, as they never
    ran here and have no price."""

    expected: dict[str, float]
    after: dict[str, set[str]]
    threads: dict[str, int]
    cores: int
    stored: set[str] = field(default_factory=set)
    guessed: set[str] = field(default_factory=set)

    def left(
        self, running: dict[str, float], reports: dict[str, Report], took: dict[str, float]
    ) -> float:
        """Seconds until all is done, by the seconds since each running job started, what their logs
        report, and the seconds that each finished job took."""
        # What a running job has taken beyond what was expected is known already.
        known = took | {job: s for job, s in running.items() if s > self.expected[job]}
        slower = pace((job, self.expected[job], known[job]) for job in known.keys() - self.stored)
        seconds = {}
        for job in self.after.keys() - took:
            left = self.expected[job] * (1.0 if job in self.stored else slower(job))
            if job in running:
                late, left = running[job] > left, max(left - running[job], running[job] / 10)
                if said := reports.get(job):
                    # A job knows better at its end, and where the estimate was too low.
                    left = said.left if late else said.share * said.left + (1 - said.share) * left
            seconds[job] = left
        after = {job: self.after[job] - set(took) for job in seconds}
        return makespan(seconds, after, lambda job: (self.threads[job],), [(self.cores,)], running)


def pace(known: Iterable[tuple[str, float, float]]) -> Callable[[str], float]:
    """The ratio of a job's true seconds to the expected ones, from known (job, expected, true).

    A stage goes by its own jobs, as far as they took long enough to tell, and else by all.
    """
    before, true = defaultdict(float), defaultdict(float)
    for job, seconds, took in known:
        before[_stage(job)] += seconds
        true[_stage(job)] += took
    of_all = (TRUST + sum(true.values())) / (TRUST + sum(before.values()))
    return lambda job: (TRUST * of_all + true[_stage(job)]) / (TRUST + before[_stage(job)])


def _stage(job: str) -> str:
    return job.partition("/")[0].partition(".")[0]


def plan(
    results: Path, jobs: dict, after: dict[str, set[str]], cores: int, cluster: bool, changed=()
) -> Plan:
    """The plan of Snakemake's `jobs`, by name; on a cluster, `cores` of them run at a time.

    A job whose result is in the store takes next to nothing; any other, in proportion to its
    counts, what it or the most similar jobs of its stage took here; and where none with the same
    counts ran, its price, or `GUESS`. A job that keeps nothing in the store makes what is there
    again, unless it is one of `changed`, whose parameters changed.
    """
    records, contents = _records(results), {}
    prices = read_json(results / PRICED) if (results / PRICED).is_file() else {}
    found = Plan({}, after, {}, cores)
    for name in TopologicalSorter(after).static_order():
        job = jobs[name]
        found.threads[name], found.expected[name] = 1 if cluster else job.threads, 0.0
        output = Path(job.output[0]) if job.output else Path()
        if not output.is_relative_to(results):
            continue  # it prints what is there
        earlier = store.versions(store.artifact(results, output))
        stored = _in_store(results, output, job, contents) if earlier else {}
        # Of an output that will be made anew the contents are in no version of the store.
        contents |= stored or dict.fromkeys(map(str, job.output), "made anew")
        if not earlier and name not in changed:
            contents |= {str(path): sha256(path) for path in job.output if Path(path).is_file()}
        if stored:
            found.stored.add(name)
        elif not earlier and name not in prices:
            found.guessed.add(name)
        counts = store.counts(dict(job.params.items()))
        alike = records[_stage(name), *sorted(counts)]
        seconds = prices.get(name, GUESS)
        if alike:
            seconds = _by_records(output, alike) * math.prod(counts.values())
        found.expected[name] = SHORT if stored else seconds + OVERHEAD
    return found


def _records(results: Path) -> dict[tuple[str, ...], list[tuple[Path, float]]]:
    """The outputs of each stage and what it counts that are in the store, with the seconds of each
    unit of the counts' product."""
    found = defaultdict(list)
    for path in (results / "store").rglob(store.MADE):
        made = read_json(path)
        output = results / path.parent.parent.relative_to(results / "store")
        counts = made.get("counts", {})
        each = made["seconds"] / math.prod(counts.values())
        found[made.get("stage"), *sorted(counts)].append((output, each))
    return found


def _in_store(results: Path, output: Path, job, contents: dict[str, str]) -> dict[str, str]:
    """The sha256 of the files, by path, that a job will take from the store; none if it will not.

    contents: the sha256 of what the planned jobs before it make.
    """
    try:
        given = {
            name: [contents.get(str(path)) or sha256(path) for path in paths]
            for name, paths in store.named_inputs(job.input).items()
        }
    except OSError:  # an input that a job without a log gathers
        return {}
    made = store.version(results, output, dict(job.params.items()), given) / store.MADE
    files = read_json(made)["files"] if made.is_file() else {}
    return {str(output.parent / name): digest for name, digest in files.items()}


def _by_records(output: Path, records: list[tuple[Path, float]]) -> float:
    """Seconds of a unit by the records nearest in the tree of folders: its own, other seeds or
    models."""
    shared = defaultdict(list)
    for path, seconds in records:
        shared[len(Path(os.path.commonpath([output, path])).parts)].append(seconds)
    return median(shared[max(shared)])
