"""SIGKILL at random moments of a job, of Snakemake, or of both; then the same command again."""

import shutil
import time

import numpy as np
import pytest
from pipeline import VICTIMS, Tiny

# A trial is a folder in which one call after another is killed, a seed each, and the last one not.
FAST = [(1, 2, 3), (4, 5, 6)]
SLOW = [(7, 8), (9, 10), (11, 12), (13, 14), (15, 16), (17, 18), (19, 20)]
# Of the undisturbed run, which compiles and has one core: about what a call takes to its end.
SHARE = 0.25


def kill_somebody(pipeline: Tiny, seed: int, until: float) -> str:
    """Starts a call and kills a part of it within about `until` seconds; what was killed."""
    draw, victim = np.random.default_rng(seed), VICTIMS[seed % len(VICTIMS)]
    share, choice = draw.uniform(0.1, 1.0), int(draw.integers(100))
    while True:
        call, begin = pipeline.start(), time.monotonic()
        while call.poll() is None:
            moment = time.monotonic() - begin
            if moment > share * until and pipeline.kill(call, victim, choice):
                pipeline.finish(call)
                print(f"seed {seed}: {victim} killed after {moment:.1f} s")
                return victim
            time.sleep(0.01)
        # It was done before: once more, and sooner.
        assert pipeline.finish(call) == 0, pipeline.output[-4000:]
        shutil.rmtree(pipeline.results)
        until /= 2


@pytest.mark.parametrize(
    "seeds", [*FAST, *(pytest.param(trial, marks=pytest.mark.slow) for trial in SLOW)]
)
def test_random_kills_change_no_byte(whole, folder, seeds):
    expected = whole.artifacts()
    pipeline = Tiny(folder)
    for number, seed in enumerate(seeds):
        # The more calls there were, the less is left to do.
        assert kill_somebody(pipeline, seed, SHARE * whole.seconds / (1 + number / 2))
        # Nothing stands under a final name but what an undisturbed run writes there.
        found = pipeline.artifacts()
        assert found.items() <= expected.items(), found.items() - expected.items()
        pipeline.unlock()
    pipeline.go_on()
    assert pipeline.artifacts() == expected
    assert pipeline.leftovers() == []


@pytest.mark.slow
@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_bytes_depend_neither_on_cores_nor_on_the_order_of_jobs(whole, folder, order):
    """One core was the undisturbed run; here two, or one job at a time from the last target on."""
    pipeline = Tiny(folder)
    if order == "forwards":
        pipeline.run(cores=2)
    else:
        for target in reversed(pipeline.targets):
            pipeline.run(cores=1, targets=[target])
    assert pipeline.artifacts() == whole.artifacts()
