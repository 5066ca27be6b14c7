"""The time that a run has left: estimates, their pace, and jobs that wait for each other."""

import json
from types import SimpleNamespace

import pytest

from manybody.io import store
from manybody.io.atomic import sha256, write_json
from manybody.io.progress import Report
from manybody.pipeline import time_left
from manybody.pipeline.time_left import GUESS, OVERHEAD, SHORT, Plan, pace

NOTHING = ({}, {}, {})  # has happened: nothing runs, reports, is finished


def plan(seconds, after=None, cores=2, threads=None, **known) -> Plan:
    after = {job: set((after or {}).get(job, "")) for job in seconds}
    return Plan(dict(seconds), after, {job: 1 for job in seconds} | (threads or {}), cores, **known)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (dict(seconds=dict(a=10, b=20)), 20),
        (dict(seconds=dict(a=10, b=20), cores=1), 30),
        (dict(seconds=dict(a=10, b=20), after=dict(b="a")), 30),
        # a chain of 30 seconds beside 15 of others
        (dict(seconds=dict(a=10, b=10, c=10, d=15), after=dict(b="a", c="b")), 30),
        (dict(seconds=dict(a=30, b=20), threads=dict(a=2)), 50),
        (dict(seconds=dict(a=30, b=20), threads=dict(a=8)), 50),
        # b is behind a, c fills the other core
        (dict(seconds=dict(a=10, b=10, c=20), after=dict(b="a")), 20),
        (dict(seconds={}), 0),
    ],
)
def test_cores_and_what_waits_for_what_are_respected(given, left):
    assert plan(**given).left(*NOTHING) == left


def test_finished_jobs_give_the_pace_of_the_others():
    found = plan({"train/a": 1000, "train/b": 1000, "plot/c": 1000}, cores=1)
    before = found.left(*NOTHING)
    left = found.left({}, {}, {"train/a": 2000})
    assert before == 3000
    # the same stage nearly twice, another by what is known of all
    assert 2 * 1000 * 1.8 < left < 2 * 2000
    assert found.left({}, {}, {"train/a": 500}) < 1200


def test_a_running_job_knows_better_towards_its_end():
    found = plan({"a": 100})
    assert found.left({"a": 30.0}, {}, {}) == 70
    at_its_start = found.left({"a": 30.0}, {"a": Report("1/100", 0.01, 2000.0)}, {})
    at_its_end = found.left({"a": 30.0}, {"a": Report("99/100", 0.99, 3.0)}, {})
    assert 70 < at_its_start < 100
    assert 3 < at_its_end < 4
    # nothing is known of a job that takes longer than expected, but it is not over
    assert found.left({"a": 500.0}, {}, {}) >= 50
    assert found.left({"a": 500.0}, {"a": Report("6/100", 0.06, 9000.0)}, {}) == 9000


def test_jobs_of_the_store_say_nothing_of_the_pace_of_others():
    found = plan(
        {"train/a": 2, "train/b": 2, "train/c": 100}, cores=1, stored={"train/a", "train/b"}
    )
    assert found.left({}, {}, {"train/a": 20.0}) == 102


def test_the_pace_is_that_of_the_estimates_until_something_is_known():
    assert pace([])("train/a") == 1
    assert pace([("train/b", 3.0, 6.0)])("train/a") < 1.3
    slow = pace([("train/b", 6000.0, 12000.0)])
    assert slow("train/a") == pytest.approx(2, rel=0.02)
    assert slow("plot/c") == pytest.approx(2, rel=0.02)


class Named(dict):
    """As Snakemake's lists: names to values, iterated as values."""

    def __iter__(self):
        return iter(self.values())


@pytest.fixture
def jobs(tmp_path):
    """Jobs of Snakemake as `plan` takes them: a tokenizer, two trainings, a test of the first."""
    (tmp_path / "text.txt").write_text("text")

    def job(given, output, **params):
        files = Named({str(number): str(tmp_path / name) for number, name in enumerate(given)})
        return SimpleNamespace(
            input=files, output=[str(tmp_path / output)], params=params, threads=1
        )

    recipe = {"steps": 100, "batch": 8}
    return {
        "tokenize/docs": job(["text.txt"], "docs/tokens.txt"),
        "train/a": job(["docs/tokens.txt"], "models/a/one/weights.txt", recipe=recipe),
        "train/b": job(["docs/tokens.txt"], "models/b/one/weights.txt", recipe=recipe),
        "test/a": job(["models/a/one/weights.txt"], "losses/a.txt"),
    }


AFTER = {"train/a": {"tokenize/docs"}, "train/b": {"tokenize/docs"}, "test/a": {"train/a"}}


def keep(folder, name, job, seconds, contents):
    """Puts a job's result into the store, as if it had run with inputs of these contents."""
    output = type(folder)(job.output[0])
    given = {number: [contents[path]] for number, path in job.input.items()}
    made = store.version(folder, output, job.params, given)
    made.mkdir(parents=True)
    about = {"stage": name.partition("/")[0], "counts": store.counts(job.params)}
    files = {output.name: contents.setdefault(job.output[0], f"contents of {name}")}
    write_json(made / store.MADE, {"files": files, "seconds": seconds, **about})


@pytest.fixture
def planned(tmp_path, jobs):
    contents = {str(tmp_path / "text.txt"): sha256(tmp_path / "text.txt")}

    def of(changed=(), **kept):
        for name, seconds in kept.items():
            keep(tmp_path, name.replace("_", "/"), jobs[name.replace("_", "/")], seconds, contents)
        after = {name: AFTER.get(name, set()) for name in jobs}
        return time_left.plan(tmp_path, jobs, after, 2, False, changed)

    return of


def test_results_in_the_store_are_known_along_the_chain_of_jobs(planned):
    found = planned(tokenize_docs=10.0, train_a=500.0, test_a=30.0)
    assert found.stored == {"tokenize/docs", "train/a", "test/a"}
    assert found.expected["test/a"] == SHORT
    # another model of the same stage, with as much work
    assert found.expected["train/b"] == 500 + OVERHEAD
    assert found.guessed == {"train/b"}


def test_a_job_that_keeps_nothing_makes_the_same_again_unless_its_parameters_changed(
    planned, tmp_path, jobs
):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/tokens.txt").write_text("tokens")
    contents = {str(tmp_path / "docs/tokens.txt"): sha256(tmp_path / "docs/tokens.txt")}
    keep(tmp_path, "train/a", jobs["train/a"], 500.0, contents)
    assert planned().stored == {"train/a"}
    assert planned(changed={"tokenize/docs"}).stored == set()


def test_what_ran_with_another_input_takes_what_it_took_then(planned, tmp_path, jobs):
    planned(tokenize_docs=10.0, train_a=500.0, test_a=30.0)
    (tmp_path / "text.txt").write_text("another text")
    jobs["train/a"].params["recipe"] = {"steps": 200, "batch": 8}
    jobs["train/b"].params["recipe"] = {"steps": 200}  # of all sequences, which are not counted
    found = planned()
    assert found.expected["tokenize/docs"] == 10 + OVERHEAD
    assert found.expected["train/a"] == 2 * 500 + OVERHEAD
    assert found.expected["test/a"] == 30 + OVERHEAD
    assert found.expected["train/b"] == GUESS + OVERHEAD


def test_the_nearest_jobs_of_a_stage_are_asked_first(planned, jobs, tmp_path):
    seed = SimpleNamespace(**vars(jobs["train/b"]))
    seed.output = [str(tmp_path / "models/b/two/weights.txt")]
    jobs["train/b2"] = seed
    found = planned(tokenize_docs=1.0, train_a=500.0, train_b=50.0)
    assert found.expected["train/b2"] == 50 + OVERHEAD


def test_of_a_stage_that_never_ran_the_seconds_are_guessed(planned, jobs):
    found = planned()
    assert found.expected == dict.fromkeys(jobs, GUESS + OVERHEAD)
    assert found.guessed == jobs.keys()


def test_a_price_stands_in_where_nothing_ran(planned, tmp_path):
    (tmp_path / "price.json").write_text(json.dumps({"tokenize/docs": 700.0, "train/a": 900.0}))
    found = planned(tokenize_docs=10.0)
    assert found.stored == {"tokenize/docs"}  # what ran here says more
    assert found.expected["train/a"] == 900 + OVERHEAD
    assert found.expected["train/b"] == GUESS + OVERHEAD
    assert found.guessed == {"train/b", "test/a"}
