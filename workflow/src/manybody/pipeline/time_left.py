"""How long the planned jobs of a run take: before any has run, and while they run.

A job is named by the path of its log below `logs/`, without the ending: `sample_clones/docs/n4`.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

from manybody.io import store
from manybody.io.progress import Report
from manybody.pipeline import costs

OVERHEAD = 1.5  # seconds in which a job is started and looked after, beside what it takes itself
TRUST = 20.0  # seconds of jobs from which on their pace weighs more than what was expected
SHORT = 2.0  # seconds in which a job ends that finds its results in the store


def expected(config: dict, outputs: dict[str, Path]) -> tuple[dict[str, float], int]:
    """Seconds of each job, and how many of the jobs have run here before.

    outputs: the first output of each job. What has run here takes as long as the last time, and
    anything else as long as in the demo, at the pace of what ran here.
    """
    here = {job: store.seconds(output) for job, output in outputs.items()}
    here = {job: took for job, took in here.items() if took is not None}
    demo = {job: costs.estimated(costs.described(config, job))[0] for job in outputs}
    slower = pace((job, demo[job], took) for job, took in here.items())
    found = {job: here.get(job, took * slower(job)) + OVERHEAD for job, took in demo.items()}
    return found, len(here)


def pace(known: Iterable[tuple[str, float, float]]) -> Callable[[str], float]:
    """How many times the expected seconds a job takes, from jobs of which both are known.

    known: the job, its expected and its true seconds. A stage goes by its own jobs, as far as they
    took long enough to tell, and else by all.
    """
    before, true = defaultdict(float), defaultdict(float)
    for job, seconds, took in known:
        before[_stage(job)] += seconds
        true[_stage(job)] += took
    of_all = (TRUST + sum(true.values())) / (TRUST + sum(before.values()))
    return lambda job: (TRUST * of_all + true[_stage(job)]) / (TRUST + before[_stage(job)])


def _stage(job: str) -> str:
    return job.partition("/")[0]


@dataclass
class Plan:
    """The jobs of a run.

    expected: seconds of each; after: the others that it needs; threads: cores that it takes of
    those that there are; priority: what runs first where there is a choice.
    """

    expected: dict[str, float]
    after: dict[str, set[str]]
    threads: dict[str, int]
    priority: dict[str, int]
    cores: int

    def left(
        self,
        running: dict[str, float],
        reports: dict[str, Report],
        took: dict[str, float],
        fetched: set[str],
    ) -> float:
        """Seconds until all is done.

        running: seconds since each job started that has; reports: what their logs say; took: the
        seconds of each finished job; fetched: those of them that found their results in the store,
        as will any job that needs nothing else.
        """
        known = {job: true for job, true in took.items() if job not in fetched}
        # What a running job has taken beyond what was expected is known already.
        known |= {job: since for job, since in running.items() if since > self.expected[job]}
        slower = pace((job, self.expected[job], true) for job, true in known.items())
        short, left = set(fetched), {}
        for job in TopologicalSorter(self.after).static_order():
            if job in took:
                continue
            left[job] = self.expected[job] * slower(job)
            if job in running:
                left[job] = max(left[job] - running[job], running[job] / 10)
                if said := reports.get(job):
                    # At its end a job knows better than the estimate, at its start it does not.
                    left[job] = said.share * said.left + (1 - said.share) * left[job]
            elif self.after[job] and self.after[job] <= short:
                left[job] = SHORT
                short.add(job)
        return self._finish(left, running)

    def _finish(self, left: dict[str, float], running: Iterable[str]) -> float:
        """Seconds until the jobs of `left` are done, each of which takes so many.

        Free cores go to what can start, by priority, then to what takes longest.
        """
        waiting = {job: {other for other in self.after[job] if other in left} for job in left}
        needed = defaultdict(list)
        for job, others in waiting.items():
            for other in others:
                needed[other].append(job)

        def turn(job):
            return job not in running, -self.priority[job], -left[job], job

        ready = [turn(job) for job in left if job in running or not waiting[job]]
        heapq.heapify(ready)
        now, free, ends = 0.0, self.cores, []
        while ready or ends:
            passed_over = []
            while ready and free > 0:
                entry = heapq.heappop(ready)
                job = entry[-1]
                claimed = min(self.threads[job], self.cores)
                if claimed > free and job not in running:
                    passed_over.append(entry)
                    continue
                free -= claimed
                heapq.heappush(ends, (now + left[job], job, claimed))
            for entry in passed_over:
                heapq.heappush(ready, entry)
            now, done, claimed = heapq.heappop(ends)
            free += claimed
            for job in needed[done]:
                waiting[job].discard(done)
                if not waiting[job] and job not in running:
                    heapq.heappush(ready, turn(job))
        return now
