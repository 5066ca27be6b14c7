"""When the jobs of a DAG are done on some nodes: list scheduling."""

import heapq
import random
from collections.abc import Callable, Container, Iterable
from graphlib import TopologicalSorter
from itertools import chain

After = dict[str, set[str]]  # of each job the others that it needs
# Seconds to the first look at a queue, more to the next where none has ended, and at most
# (profiles/slurm, and the executor of SLURM).
LOOKS = (20.0, 10.0, 180.0)


def tails(seconds: dict[str, float], after: After) -> dict[str, float]:
    """Seconds from the start of each job to the end of the longest chain that waits for it."""
    found = dict(seconds)
    for job in reversed(list(TopologicalSorter(after).static_order())):
        for other in after[job]:
            found[other] = max(found[other], seconds[other] + found[job])
    return found


def makespan(
    seconds: dict[str, float],
    after: After,
    needs: Callable[[str], tuple[int, ...]],
    nodes: list[tuple[int, ...]],
    begun: Iterable[str] = (),
    queued: Container[str] = (),
    seed: int | None = None,
) -> float:
    """Seconds until all jobs are done: each starts on the first node that has room for it, of the
    ready ones that with the longest chain behind it first, or with a `seed` those that were ready
    first, in an order by chance: Snakemake submits what is ready together in no order.

    needs: cores (and GPUs ...) of a job, a node has them in the same order; a job that asks for
    more than any has takes all of the largest. begun: jobs that run already. queued: those of a
    cluster's queue, whose end is known at the next of `LOOKS`; others wait for them until then.
    """
    behind, most = tails(seconds, after), tuple(map(max, zip(*nodes, strict=True)))
    chance = random.Random(seed)

    def rank(job: str) -> tuple[float, ...]:
        return (-behind[job],) if seed is None else (now, chance.random())

    waiting = {job: len(others) for job, others in after.items()}
    then = {job: [] for job in after}
    for job, others in after.items():
        for other in others:
            then[other].append(job)
    free, running, now = [list(node) for node in nodes], [], 0.0
    ready = [(job not in begun, rank(job), job) for job, n in waiting.items() if not n]
    (first, more, most_apart), ended = LOOKS, []
    look = apart = first
    while ready or running or ended:
        left = []
        for new, key, job in sorted(ready):
            asked = tuple(map(min, needs(job), most))
            fits = (k for k, room in enumerate(free) if all(map(int.__le__, asked, room)))
            if (place := next(fits, None)) is None:
                left.append((new, key, job))
                continue
            free[place] = [a - b for a, b in zip(free[place], asked, strict=True)]
            heapq.heappush(running, (now + seconds[job], job, place, asked))
        ready = left
        if queued and not (running and running[0][0] <= look):
            now, known, ended = look, ended, []
            apart = first if known else min(apart + more, most_apart)
            look += apart
        else:
            now, job, place, asked = heapq.heappop(running)
            free[place] = [a + b for a, b in zip(free[place], asked, strict=True)]
            known = [] if job in queued else [job]
            ended += [] if known else [job]
        for other in chain.from_iterable(then[job] for job in known):
            waiting[other] -= 1
            if not waiting[other]:
                ready.append((other not in begun, rank(other), other))
    return now
