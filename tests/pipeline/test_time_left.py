"""The time that a run has left: estimates, their pace, and jobs that wait for each other."""

import json

import pytest
from configs import load

from manybody.io.progress import Report
from manybody.pipeline import costs, time_left
from manybody.pipeline.time_left import OVERHEAD, SHORT, Plan, expected, pace

NOTHING = ({}, {}, {}, set())  # has happened: nothing runs, reports, is finished, was fetched


def plan(seconds, after=None, cores=2, threads=None, priority=None) -> Plan:
    def of_all(given, else_):
        return {job: (given or {}).get(job, else_) for job in seconds}

    after = {job: set((after or {}).get(job, "")) for job in seconds}
    return Plan(dict(seconds), after, of_all(threads, 1), of_all(priority, 0), cores)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (dict(seconds=dict(a=10, b=20)), 20),
        (dict(seconds=dict(a=10, b=20), cores=1), 30),
        (dict(seconds=dict(a=10, b=20), after=dict(b="a")), 30),
        # a chain of 30 seconds beside 15 of others
        (dict(seconds=dict(a=10, b=10, c=10, d=15), after=dict(b="a", c="b")), 30),
        (dict(seconds=dict(a=10, b=20), threads=dict(a=2)), 30),
        (dict(seconds=dict(a=10, b=20), threads=dict(a=8)), 30),
        # b is behind a, c fills the other core
        (dict(seconds=dict(a=10, b=10, c=20), after=dict(b="a")), 20),
        # a late start of what is long
        (dict(seconds=dict(a=10, b=10, c=30), priority=dict(a=1, b=1)), 40),
        (dict(seconds={}), 0),
    ],
)
def test_cores_and_what_waits_for_what_are_respected(given, left):
    assert plan(**given).left(*NOTHING) == left


def test_finished_jobs_give_the_pace_of_the_others():
    found = plan({"train/a": 1000, "train/b": 1000, "plot/c": 1000}, cores=1)
    before = found.left(*NOTHING)
    left = found.left({}, {}, {"train/a": 2000}, set())
    assert before == 3000
    # the same stage nearly twice, another by what is known of all
    assert 2 * 1000 * 1.8 < left < 2 * 2000
    assert found.left({}, {}, {"train/a": 500}, set()) < 1200


def test_a_running_job_knows_better_towards_its_end():
    found = plan({"a": 100})
    assert found.left({"a": 30.0}, {}, {}, set()) == 70
    at_its_start = found.left({"a": 30.0}, {"a": Report("1/100", 0.01, 2000.0)}, {}, set())
    at_its_end = found.left({"a": 30.0}, {"a": Report("99/100", 0.99, 3.0)}, {}, set())
    assert 70 < at_its_start < 100
    assert 3 < at_its_end < 4
    # nothing is known of a job that takes longer than expected, but it is not over
    assert found.left({"a": 500.0}, {}, {}, set()) >= 50


def test_what_needs_only_fetched_results_is_fetched():
    found = plan(dict(a=100, b=100, c=100, d=100), after=dict(b="a", c="b", d="ax"), cores=1)
    found.after["d"] = {"a", "e"}
    found.expected["e"], found.after["e"], found.threads["e"], found.priority["e"] = 50, set(), 1, 0
    left = found.left({}, {}, {"a": 1.0}, {"a"})
    assert left == SHORT + SHORT + 50 + 100
    # a job that was fetched says nothing of the pace of those that are computed
    assert found.left({}, {}, {"a": 100.0}, set()) == pytest.approx(350)


def test_the_pace_is_that_of_the_estimates_until_something_is_known():
    assert pace([])("train/a") == 1
    assert pace([("train/b", 3.0, 6.0)])("train/a") < 1.3
    slow = pace([("train/b", 6000.0, 12000.0)])
    assert slow("train/a") == pytest.approx(2, rel=0.02)
    assert slow("plot/c") == pytest.approx(2, rel=0.02)


def test_what_ran_here_counts_before_the_demo(tmp_path):
    config, jobs = load(), {"sample_clones/docs/n2": "clones", "sample_clones/docs/n4": "more"}
    outputs = {job: tmp_path / name / "manifest.json" for job, name in jobs.items()}
    known = {job: costs.estimated(costs.described(config, job))[0] for job in jobs}
    assert expected(config, outputs) == ({job: t + OVERHEAD for job, t in known.items()}, 0)

    made = tmp_path / "store/clones/manifest.json/0123/made.json"
    made.parent.mkdir(parents=True)
    made.write_text(json.dumps({"files": {}, "seconds": 500.0}))
    found, here = expected(config, outputs)
    first, second = jobs
    assert here == 1
    assert found[first] == 500 + OVERHEAD
    # the other one by the demo's time, at the pace of the first
    slower = (found[second] - OVERHEAD) / known[second]
    assert 2 < slower < 500 / known[first]
    assert time_left.TRUST > 0
