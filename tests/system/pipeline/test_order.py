"""In what order the demo's jobs start: Snakemake's own choice, simulated with about their times."""

import logging

from pipelines import ROOT
from snakemake.api import SnakemakeApi
from snakemake.scheduling.milp import Scheduler, SchedulerSettings
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
)

CORES = 2
# Seconds of one core, rounded up: of a rule, and of the names that take longer than others of it
SECONDS = {"train_model": 30, "train_model_on_cpu": 15, "sample_clones": 45, "evaluate_model": 45}
SECONDS |= {"compute_theory": 60, "fit_curve": 70, "collect_corpus": 40, "sample_potts": 40}
SECONDS |= {"n4": 180, "bert": 120, "bert-generator": 120, "gpt": 90, "potts-encoder-3": 120}


def planned(folder):
    """The jobs of a fresh run, and of each the jobs that it waits for."""
    with SnakemakeApi(OutputSettings(dryrun=True, quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=CORES),
            config_settings=ConfigSettings(config={"results": str(folder / "results")}),
            snakefile=ROOT / "Snakefile",
            workdir=folder,
        )
        workflow.dag(DAGSettings()).execute_workflow(executor="dryrun")
        dag = workflow._workflow.dag
        return {job: set(dag.dependencies[job]) for job in dag.jobs}


def seconds(job):
    names = [job.rule.name, *(str(value) for _, value in job.wildcards.items())]
    alone = next((SECONDS[name] for name in reversed(names) if name in SECONDS), 5)
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
    """The first within 2.5 minutes of jobs, of every paper within 6.5, and none waits long.

    The bars are 4 and 8 minutes, of which making the environment takes one and a half.
    """
    waits_for = planned(tmp_path)
    found = ends(waits_for)
    drawn = {}  # of each paper
    for job, end in found.items():
        if job.rule.name.startswith("plot_"):
            paper = job.params.paper
            drawn[paper] = min(end, drawn.get(paper, end))
            last_input = max(found[other] for other in waits_for[job])
            assert end - last_input <= 200, job  # at most one long job, on each core
    assert len(drawn) == 3
    assert min(drawn.values()) <= 150
    assert max(drawn.values()) <= 390
    # Ordered so, the run is no longer: both cores have work until shortly before the end.
    work = sum(seconds(job) * job.threads for job in waits_for)
    assert max(found.values()) <= 1.05 * work / CORES
