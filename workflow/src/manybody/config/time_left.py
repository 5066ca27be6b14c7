"""How long planned jobs take: before any has run, and while they run."""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from manybody.config import costs
from manybody.files import store

OVERHEAD = 1.5  # seconds in which a job is started and looked after, beside what it takes itself
TRUST = 60.0  # seconds of jobs from which on their pace weighs more than what was expected


def seconds(config: dict, jobs: Iterable[tuple[str, Path]]) -> list[tuple[float, bool]]:
    """Estimated seconds of jobs, and whether each is what it took when it last ran here.

    A job is given by the path of its log below `logs/` without the ending, and its first output.
    What did not run here takes what it took in the demo, at the pace of what did.
    """
    jobs = list(jobs)
    here = [store.seconds(output) for _, output in jobs]
    shipped = [costs.estimated(costs.described(config, log))[0] for log, _ in jobs]
    stages = [log.partition("/")[0] for log, _ in jobs]
    both = zip(stages, shipped, here, strict=True)
    slower = pace((stage, known, took) for stage, known, took in both if took is not None)
    found = zip(stages, shipped, here, strict=True)
    return [
        (OVERHEAD + (known * slower(stage) if took is None else took), took is not None)
        for stage, known, took in found
    ]


def pace(pairs: Iterable[tuple[str, float, float]]) -> Callable[[str], float]:
    """How many times the expected seconds a job of a stage takes.

    pairs: stage, expected and true seconds of jobs. A stage that none of them is of has the pace of
    all, and all have that of the estimates until there is something to go by.
    """
    expected, true = defaultdict(float), defaultdict(float)
    for stage, before, took in pairs:
        expected[stage] += before
        true[stage] += took
    all_jobs = (TRUST + sum(true.values())) / (TRUST + sum(expected.values()))
    return lambda stage: (TRUST * all_jobs + true[stage]) / (TRUST + expected[stage])


class Job(NamedTuple):
    """A job that is not finished, with the seconds that are left of it."""

    left: float
    cores: int = 1
    priority: int = 0
    running: bool = False


def finish(jobs: Mapping, after: Mapping, cores: int) -> float:
    """Seconds until all `jobs` (`Job` by name) are finished on so many `cores`.

    after: the jobs of which each needs the results; those that are not in `jobs` are there. Free
    cores go to what can be started, by priority, then to what takes longest.
    """
    waiting = {name: {other for other in after.get(name, ()) if other in jobs} for name in jobs}
    needed = defaultdict(list)
    for name, others in waiting.items():
        for other in others:
            needed[other].append(name)
    numbers = {name: number for number, name in enumerate(jobs)}

    def turn(name):
        job = jobs[name]
        return not job.running, -job.priority, -job.left, numbers[name], name

    ready = [turn(name) for name in jobs if jobs[name].running or not waiting[name]]
    heapq.heapify(ready)
    now, free, ends = 0.0, cores, []
    while ready or ends:
        later = []
        while ready and free > 0:
            entry = heapq.heappop(ready)
            job = jobs[entry[-1]]
            claimed = min(job.cores, cores)
            if claimed > free and not job.running:
                later.append(entry)
                continue
            free -= claimed
            heapq.heappush(ends, (now + job.left, entry, claimed))
        for entry in later:
            heapq.heappush(ready, entry)
        now, (*_, name), claimed = heapq.heappop(ends)
        free += claimed
        for other in needed[name]:
            waiting[other].discard(name)
            if not waiting[other] and not jobs[other].running:
                heapq.heappush(ready, turn(other))
    return now
