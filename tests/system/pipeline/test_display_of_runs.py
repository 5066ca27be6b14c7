"""The finish time as estimated at a quarter of a run, and what a run shows of itself."""

import dataclasses
import heapq
import json
import math
import os
import pty
import random
import re
import statistics
import subprocess
import sys

import pytest
from pipelines import Pipeline
from repository import ROOT

from manybody.pipeline.time_left import Plan

PLAN = """
import dataclasses, json, sys
from snakemake import cli, workflow
from display import planned
try:
    cli.main(["--dry-run", "--quiet", "--cores", "2", "--snakefile", sys.argv[1]])
except SystemExit:
    plan, _ = planned(workflow.workflow)
    print("PLAN", json.dumps(dataclasses.asdict(plan), default=sorted))
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Plan:
    """The jobs of the default config, none of which has run."""
    folder = tmp_path_factory.mktemp("demo")
    paths = os.pathsep.join(str(ROOT / "workflow" / name) for name in ("", "src"))
    done = subprocess.run(
        [sys.executable, "-c", PLAN, ROOT / "Snakefile"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.partition("PLAN ")[2])
    found["after"] = {job: set(others) for job, others in found["after"].items()}
    found |= {"stored": set(), "guessed": set(found["guessed"])}
    return Plan(**found)


def run(plan: Plan, true: dict, draw: random.Random) -> tuple[dict, dict]:
    """When each job starts and ends if it takes `true` seconds, in an order by lot."""
    waiting = {job: set(others) for job, others in plan.after.items()}
    start, end, ends, now, free = {}, {}, [], 0.0, plan.cores
    while len(end) < len(true):
        ready = [job for job in sorted(true) if job not in start and not waiting[job]]
        draw.shuffle(ready)
        for job in ready:
            if plan.threads[job] <= free:
                free -= plan.threads[job]
                start[job] = now
                heapq.heappush(ends, (now + true[job], job))
        now, job = heapq.heappop(ends)
        end[job] = now
        free += plan.threads[job]
        for others in waiting.values():
            others.discard(job)
    return start, end


def at_a_quarter(plan: Plan, start: dict, end: dict) -> float:
    """How far the finish time is off that is estimated at a quarter of a run, as a share of it."""
    total = max(end.values())
    now = total / 4
    took = {job: end[job] - start[job] for job in start if end[job] <= now}
    running = {job: now - start[job] for job in start if start[job] <= now < end[job]}
    return abs(now + plan.left(running, {}, took) - total) / total


@pytest.mark.parametrize(("known", "typical", "most"), [(True, 0.15, 0.3), (False, 0.25, 0.5)])
def test_the_finish_time_estimated_at_a_quarter(demo, known, typical, most):
    """Of jobs that ran before, on machines up to three times slower or quicker, by other factors
    in each stage and job; and of jobs of which none ran before.

    Jobs are not asked for their own progress here. Of single runs one in ten may be farther off.
    """
    draw, errors = random.Random(0), []
    for _ in range(60):
        before = {job: math.exp(draw.gauss(math.log(15), 1)) for job in demo.expected}
        plan = dataclasses.replace(demo, expected=before) if known else demo
        speed = math.exp(draw.uniform(-math.log(3), math.log(3)))
        stages = {job.partition("/")[0] for job in before}
        of_stage = {stage: math.exp(draw.gauss(0, 0.3)) for stage in sorted(stages)}
        true = {
            job: seconds * speed * of_stage[job.partition("/")[0]] * math.exp(draw.gauss(0, 0.25))
            for job, seconds in before.items()
        }
        errors.append(at_a_quarter(plan, *run(plan, true, draw)))
    errors.sort()
    print(f"\nmedian {statistics.median(errors):.3f}, nine of ten below {errors[54]:.3f}")
    assert statistics.median(errors) < typical
    assert errors[54] < most


def test_lines_where_there_is_no_terminal_and_the_end_of_a_log_once(tmp_path):
    pipeline = Pipeline(tmp_path, targets=["losses/tiny/seed-0.parquet"])
    assert pipeline.run(overlay="models: {tiny: {training: {batch: 70000}}}", check=False) == 1
    assert pipeline.output.count("seed-0.log ends:\nmodels.tiny.training.batch: found 70000") == 1
    assert "\x1b" not in pipeline.output
    said = re.findall(r"^\d+ of \d+ jobs done.*$", pipeline.output, re.MULTILINE)
    minutes = re.search(r"Elapsed time: (\d+):(\d+):", pipeline.output)
    assert len(said) <= 2 * (60 * int(minutes[1]) + int(minutes[2]) + 1)
    pipeline.run("-n")
    assert "jobs done" not in pipeline.output


def test_a_terminal_shows_jobs_and_the_time_left(tmp_path):
    ours, its = pty.openpty()
    command = [
        sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--cores", "2",
        "--configfile", ROOT / "config" / "tiny.yaml",
    ]  # fmt: skip
    # the block is drawn once a second: a job of some seconds, on any machine
    command += ["--config", "theory={gradient-flow: {samples: 10000000}}", "--"]
    with subprocess.Popen(
        [*command, "results/tiny/theory/gradient-flow.parquet"],
        cwd=tmp_path,
        stdout=its,
        stderr=its,
        stdin=subprocess.DEVNULL,
    ) as call:
        os.close(its)
        printed = b""
        try:
            while part := os.read(ours, 65536):
                printed += part
        except OSError:  # the other end is closed
            pass
    assert call.returncode == 0
    words = printed.decode(errors="replace")
    assert re.search(
        r"0 of 1 jobs done, about \d+ s left, until \d\d:\d\d \(a rough estimate: 1 of", words
    )
    assert "  Computing gradient-flow: " in words
    # every block was taken away again
    assert len(re.findall(r"^.*\d of 1 jobs done", words, re.MULTILINE)) <= words.count("\x1b[J")
