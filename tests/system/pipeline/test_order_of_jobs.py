"""In what order the demo's jobs start: Snakemake's own choice, simulated with about their times."""

import logging

from pipelines import planned
from snakemake.scheduling.milp import Scheduler, SchedulerSettings

CORES = 2
# Seconds of one core, about: of rules, and of the models that take longer to train than others
SECONDS = {
    "train_model": 15, "train_model_on_cpu": 10, "sample_clones": 30, "evaluate_model": 30,
    "compute_theory": 30, "fit_curve": 60, "collect_corpus": 30, "sample_hamiltonian": 30,
}  # fmt: skip
MODELS = {
    "n2": 35, "n2-wide": 60, "n4": 160, "bert-generator": 100, "bert": 110, "gpt": 80,
    "potts-encoder-1": 30, "potts-encoder-3": 110,
}  # fmt: skip


def seconds(job):
    alone = SECONDS.get(job.rule.name, 4)
    if job.rule.name == "train_model":
        alone = MODELS.get(job.wildcards.model, alone)
    return alone / job.threads


def ends(waits_for):
    """When each job ends, seconds after the first starts, where nothing else runs."""
    scheduler = Scheduler(None, SchedulerSettings(), logging.getLogger(__name__))
    now, running, done = 0.0, {}, {}
    while len(done) < len(waits_for):
        ready = [
            job
            for job, others in waits_for.items()
            if job not in done and job not in running and others <= done.keys()
        ]
        free = CORES - sum(job.threads for job in running)
        if ready and free:
            for job in scheduler.select_jobs(ready, ready, {"_cores": free}, {}) or ():
                running[job] = now + seconds(job)
        ended = min(running, key=running.get)
        now = done[ended] = running.pop(ended)
    return done


def test_figures_come_out_along_the_way(tmp_path):
    """The first within 2.5 minutes of jobs, of every paper within 6.5, half of all in two thirds.

    The bars of a fresh clone are 4 and 8 minutes, of which its environment takes one and a half.
    """
    waits_for = planned(tmp_path)
    found = ends(waits_for)
    whole = max(found.values())
    figures = [job for job in found if job.rule.name == "make_figure"]
    drawn = sorted(((found[job], job) for job in figures), key=lambda pair: pair[0])
    first = {job.params.paper: end for end, job in reversed(drawn)}
    assert len(first) == 3
    assert drawn[0][0] <= 150
    assert max(first.values()) <= 390
    assert drawn[len(drawn) // 2][0] <= 2 / 3 * whole
    for end, job in drawn:
        last = max(found[other] for other in waits_for[job])
        assert end - last <= max(map(seconds, found)) + 20, job  # once its inputs are there
    # Ordered so, the run is no longer: both cores have work until shortly before the end.
    assert whole <= 1.04 * sum(seconds(job) * job.threads for job in found) / CORES
