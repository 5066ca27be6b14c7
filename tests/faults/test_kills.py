"""SIGKILL at random moments of a job, of Snakemake, or of both; then the same command again."""

import shutil
import time

import numpy as np
import pytest
from pipeline import JOBS, VICTIMS, Pipeline

# Seeds of the trials and the number of kills in each: 6 and, with the slow ones, 20.
FAST = [(1, 3), (2, 3)]
SLOW = [(3, 2), (4, 2), (5, 2), (6, 2), *((seed, 1) for seed in range(7, 13))]


def whole_or_absent(pipeline: Pipeline, expected: dict[str, str]) -> None:
    """Nothing stands under a final name but what an undisturbed run writes there."""
    found = pipeline.artifacts()
    assert found.items() <= expected.items(), found.items() - expected.items()


def kill_somebody(pipeline: Pipeline, draw: np.random.Generator, until: float) -> str:
    """Starts a call and kills a part of it within about `until` seconds; what was killed."""
    victim = VICTIMS[draw.integers(len(VICTIMS))]
    share, choice = draw.uniform(0.05, 1.0), int(draw.integers(100))
    while True:
        call, begin = pipeline.start(), time.monotonic()
        while call.poll() is None:
            moment = time.monotonic() - begin
            if moment > share * until and pipeline.kill(call, victim, choice):
                pipeline.finish(call)
                print(f"{victim} killed after {moment:.1f} s")
                return victim
            time.sleep(0.01)
        # It was faster than the undisturbed run, whose loops were compiled: once more, sooner.
        assert pipeline.finish(call) == 0, pipeline.output[-4000:]
        shutil.rmtree(pipeline.results)
        until /= 2


@pytest.mark.parametrize(
    ("seed", "kills"), [*FAST, *(pytest.param(*trial, marks=pytest.mark.slow) for trial in SLOW)]
)
def test_random_kills_change_no_byte(whole, folder, seed, kills):
    expected = whole.artifacts()
    pipeline, draw = Pipeline(folder), np.random.default_rng(seed)
    for _ in range(kills):
        assert kill_somebody(pipeline, draw, 0.7 * whole.seconds / kills)
        whole_or_absent(pipeline, expected)
        pipeline.unlock()
    pipeline.go_on()
    assert pipeline.artifacts() == expected
    assert pipeline.leftovers() == []


def test_there_are_six_kills_in_the_fast_tests_and_twenty_in_all():
    assert sum(kills for _, kills in FAST) == 6
    assert sum(kills for _, kills in FAST + SLOW) == 20


def test_the_tiny_pipeline_is_tiny(whole):
    assert f"{JOBS} of {JOBS} steps (100%) done" in whole.output
    assert whole.leftovers() == []


@pytest.mark.slow
@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_bytes_depend_neither_on_cores_nor_on_the_order_of_jobs(whole, folder, order):
    """One core was the undisturbed run; here two, or one job at a time from the last target on."""
    pipeline = Pipeline(folder)
    if order == "forwards":
        pipeline.run(cores=2)
    else:
        for target in reversed(pipeline.targets):
            pipeline.run(cores=1, targets=[target])
    assert pipeline.artifacts() == whole.artifacts()
