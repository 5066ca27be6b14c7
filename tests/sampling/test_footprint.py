"""Memory that a clone's job asks for, from the config, and that its sampler reads of a model."""

import json

import pytest
from configs import load, parsed

from manybody import models
from manybody.sampling import backends, footprint, metropolis

TEXT = {"vocabulary": 500, "length": 36}
FACTORED = dict(architecture="factored", bias=True, variant="exact")
BERT = dict(architecture="bert", layers=2, heads=4, width=64, mlp=128)


def entries(name):
    """(clone, model, source) of the clones that a config samples, models' training left out."""
    config = load(name)
    for clone in (config["clones"][found] for found in json.loads(parsed(name))["clones"]):
        model = dict(config["models"][clone["model"]])
        for key in ("training", "init_seed"):
            model.pop(key, None)
        yield clone, model, config["sources"][clone["source"]]


def job(clone, model, source):
    return footprint.job_megabytes(model, source, clone)


def test_the_lab_s_deepest_clone_has_room_for_its_group():
    jobs = {clone["model"]: (clone, model, source) for clone, model, source in entries("lab.yaml")}
    clone, model, source = jobs["lab-n6"]
    built = models.build(model | {key: source[key] for key in ("vocabulary", "length")})
    group = min(clone["chains"], metropolis.group_size(built, "raw"))
    shared, each = backends.bytes_needed(built, "raw")
    needed = (shared + group * each) / 1e6
    assert group == clone["chains"]  # all 310 chains move together
    assert needed < 1000
    assert needed + footprint.PROCESS < job(*jobs["lab-n6"]) < 1.1 * needed + footprint.PROCESS
    assert job(*jobs["lab-n2"]) < 3000


def test_every_job_of_the_demo_has_what_it_was_measured_to_take():
    """831 MB for BERT's 160 chains, less for all others."""
    for clone, model, source in entries("config.yaml"):
        assert 1.5 * 831 < job(clone, model, source) < 3500, clone["model"]


def test_jobs_of_the_papers_scale_stay_within_the_limit_of_a_group():
    limit = footprint.PROCESS + footprint.MEMORY / 1e6
    for clone, model, source in entries("paper.yaml"):
        found = job(clone, model, source)
        # The weights come on top: 1.9 GB at rank 4000, in single and double precision.
        weights = 1950 if clone["model"] == "paper-n2-wide" else 500
        assert footprint.PROCESS < found < limit + weights, clone["model"]
        if clone["model"] == "paper-n4":
            assert found > limit  # 620 chains do not move together


def test_more_chains_take_more_up_to_the_limit():
    model, source = FACTORED | dict(layers=6, rank=64), {"kind": "text", **TEXT}
    few, many, most = (
        footprint.job_megabytes(
            model, source, {"energy": "raw", "precision": "float32", "chains": chains}
        )
        for chains in (100, 200, 10_000)
    )
    _, each = footprint.group_bytes(models.about(model | TEXT), "raw")
    assert many - few == pytest.approx(100 * each / 1e6, abs=1)
    assert most - footprint.PROCESS - footprint.MEMORY / 1e6 < 10


def test_an_alignment_and_a_tabulated_model_get_a_fixed_amount():
    clone = {"energy": "raw", "precision": "float32", "chains": 10}
    assert footprint.job_megabytes(BERT, {"kind": "alignment"}, clone) == footprint.FIXED
    energy = {"architecture": "energy"}
    assert footprint.job_megabytes(energy, {"kind": "potts", **TEXT}, clone) == footprint.FIXED
