"""What jobs are estimated to take, from the jobs of the demo."""

import pandas as pd
import pytest
import repository
from configs import load

from manybody.config import costs
from manybody.files.atomic import read_json

DOCS = repository.ROOT / "docs"


@pytest.fixture(scope="module")
def config():
    return load("own-text.yaml")


def jobs(config, clones=("n2", "bert"), runs=(("own-bert", 0),)):
    return {job["stage"] + job["name"]: job for job in costs.jobs(config, runs, clones)}


def test_each_job_is_there_once(config):
    found = costs.jobs(config, [("own-bert", 0), ("own-bert", 1), ("own-n2", 0)], ["n2"])
    assert [(job["stage"], job["name"]) for job in found] == [
        ("train_model", "docs.bert.seed-0"),
        ("train_model", "docs.bert.seed-1"),
        ("train_model", "docs.n2.seed-0"),
        ("sample_clones", "docs.n2"),
        ("evaluate_model", "own-bert.seed-0"),
        ("evaluate_model", "own-bert.seed-1"),
        ("evaluate_model", "own-n2.seed-0"),
    ]


def test_a_job_of_the_demo_takes_what_was_measured(config):
    """Of equal jobs (three students) it is the quickest."""
    measured = read_json(costs.MEASURED)
    job = jobs(config)["train_modeldocs.bert.seed-0"]
    alike = [m["seconds"] for m in measured if m["amount"] == job["amount"]]
    seconds, megabytes = costs.estimated(job)
    assert seconds in alike
    assert 300 < megabytes < 800


def test_twice_the_steps_or_chains_take_twice_as_long(config):
    before = jobs(config)
    config = load("own-text.yaml")
    config["models"]["bert"]["training"]["steps"] *= 2
    config["clones"]["bert"]["chains"] *= 2
    after = jobs(config)
    for name in ("train_modeldocs.bert.seed-0", "sample_clonesdocs.bert"):
        once, twice = (costs.estimated(found[name])[0] for found in (before, after))
        assert twice - costs.START == pytest.approx(2 * (once - costs.START))
    assert after["evaluate_modelown-bert.seed-0"] != before["evaluate_modelown-bert.seed-0"]
    same = "train_modeldocs.n2.seed-0"
    assert after[same] == before[same]


def test_longer_blocks_cost_clones_more_than_their_length(config):
    before = jobs(config)
    config = load("own-text.yaml")
    config["sources"]["docs"]["length"] = 32
    for name, ratio in (("docs.n2", 4), ("docs.bert", 8)):
        job = jobs(config)[f"sample_clones{name}"]
        assert job["amount"] == ratio * before[f"sample_clones{name}"]["amount"]
        assert costs.estimated(job)[1] > costs.estimated(before[f"sample_clones{name}"])[1]


@pytest.mark.parametrize("unit", ["seconds", "megabytes"])
@pytest.mark.parametrize("stage", ["train_model", "sample_clones", "evaluate_model"])
def test_stages_of_another_run_of_the_demo_took_what_is_estimated(stage, unit):
    """A run that is not the one in `costs.json`."""
    config = load()
    measured = pd.read_csv(DOCS / "costs-demo.csv").set_index(["stage", "job"]).loc[stage]
    runs = [(name, seed) for name, one in config["evaluations"].items() for seed in one["seeds"]]
    jobs = [one for one in costs.jobs(config, runs, config["clones"]) if one["stage"] == stage]
    jobs = [one for one in jobs if one["name"] in measured.index]
    assert len(jobs) == len(measured) > 2
    now = pd.DataFrame(map(costs.estimated, jobs), columns=["seconds", "megabytes"])[unit]
    both = (
        (now.sum(), measured[unit].sum())
        if unit == "seconds"
        else (now.max(), measured[unit].max())
    )
    assert 1 / 1.5 < both[0] / both[1] < 1.5
