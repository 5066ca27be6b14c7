"""What jobs are estimated to take, from the jobs of the demo."""

import pandas as pd
import pytest
import repository
from configs import load
from snakemake.utils import update_config

from manybody.io.atomic import read_json
from manybody.pipeline import costs

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
    """Of equal jobs (three students) it is one in the middle."""
    measured = read_json(costs.MEASURED)
    job = jobs(config)["train_modeldocs.bert.seed-0"]
    alike = [m["seconds"] for m in measured if "layers" in m and m["amount"] == job["amount"]]
    seconds, megabytes = costs.estimated(job)
    assert seconds in alike
    assert 300 < megabytes < 800


def test_a_model_that_was_trained_elsewhere_has_an_estimate_too():
    config = load("own-text.yaml")
    config["sources"]["docs"] = {"kind": "text", "corpus": "pydocs", "tokenizer": "theirs"}
    config["models"]["bert"] = {"architecture": "pretrained", "objective": "masked"}
    for job in ("evaluate_model/own-bert/seed-0", "take_tokenizer/docs", "read_series/docs/bert"):
        seconds, _ = costs.estimated(costs.described(config, job))
        assert 0 < seconds < 600


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


TWICE = {"models": {"potts-free": {"training": {"steps": 12000}}}}


@pytest.mark.parametrize(
    ("log", "change", "ratio"),
    [
        ("compute_theory/gamp", {"theory": {"gamp": {"runs": 6}}}, 2),
        ("compute_theory/sgd", {"theory": {"sgd": {"seed": 5}}}, 1),
        ("fit_curve/recovery", {"curves": {"recovery": {"sizes": [500]}}}, 1 / 7),
        ("train_model/potts/potts-free/seed-0", TWICE, 2),
        ("train_model/many-body/many-body-n3/seed-9", {}, 1),
    ],
)
def test_jobs_without_sizes_go_by_the_counts_of_their_entry(log, change, ratio):
    before, after = load(), load()
    update_config(after, change)
    once, twice = (costs.estimated(costs.described(config, log))[0] for config in (before, after))
    assert once > 5
    assert twice - costs.START == pytest.approx(ratio * (once - costs.START))


def test_a_seed_that_was_not_measured_takes_what_others_took():
    config, measured = load(), read_json(costs.MEASURED)
    log = "train_model/many-body/many-body-n3/seed-{}"
    known = [
        m["seconds"] for m in measured if m.get("name", "").startswith("many-body.many-body-n3.")
    ]
    assert len(known) == 8
    assert min(known) < costs.estimated(costs.described(config, log.format(9)))[0] < max(known)


def test_every_job_of_the_demo_was_measured_and_figures_are_light():
    config = load()
    for measured in read_json(costs.MEASURED):
        if "name" not in measured:
            continue
        log = f"{measured['stage']}/{measured['name'].replace('.seed', '/seed')}"
        for source in ("many-body", "planted", "potts"):
            log = log.replace(f"/{source}.", f"/{source}/")
        assert costs.estimated(costs.described(config, log))[0] == measured["seconds"], log
    assert costs.estimated(costs.described(config, "plot_figure/potts.fig2")) == costs.LIGHT


STAGES = ["train_model", "sample_clones", "evaluate_model"]


@pytest.mark.parametrize("unit", ["seconds", "megabytes"])
@pytest.mark.parametrize("stage", STAGES)
def test_stages_of_another_run_of_the_demo_took_what_is_estimated(stage, unit):
    """A run that is not the one in `costs.json`."""
    measured = pd.read_csv(DOCS / "costs-demo.csv").set_index("log").filter(like=stage, axis=0)
    assert len(measured) > 2
    jobs = [costs.described(load(), log) for log in measured.index]
    now = pd.DataFrame(map(costs.estimated, jobs), columns=["seconds", "megabytes"])[unit]
    total = {"seconds": "sum", "megabytes": "max"}[unit]
    assert 1 / 1.5 < now.agg(total) / measured[unit].agg(total) < 1.5


def test_chains_of_an_energy_that_was_not_measured_take_what_others_took():
    job = {"stage": "sample_clones", "family": "bert", "layers": 2, "size": 64, "amount": 10}
    known = [
        job | {"energy": energy, "seconds": seconds, "megabytes": 500}
        for energy, seconds in (("raw", 60.0), ("norm", 90.0))
    ]
    assert costs.estimated(job | {"energy": "norm"}, known)[0] == pytest.approx(90.0)
    assert costs.estimated(job | {"energy": "gibbs"}, known)[0] == pytest.approx(60.0)
