"""Modules, devices, processes and memory of the jobs of models and clones."""

import configs
import pytest

from manybody.pipeline.check import check
from manybody.pipeline.jobs import growing
from manybody.pipeline.models import Models
from manybody.pipeline.paths import Paths
from manybody.pipeline.sources import Sources
from manybody.sampling import footprint


def models(compute=None) -> Models:
    config = configs.load()
    config["compute"] |= compute or {}
    paths = Paths(config)
    return Models(paths, Sources(paths, check(config)))


@pytest.fixture(scope="module")
def demo():
    return models()


def fitted(asked: Models) -> str:
    return next(name for name in asked.trained_models(on_cpu=True) if asked.is_fitted(name))


def test_modules_are_those_of_the_architecture(demo):
    assert demo.model_modules("bert") == ["manybody.models.bert", "manybody.models.bert.network"]
    assert demo.training_modules("bert") == demo.model_modules("bert")
    assert demo.training_modules(fitted(demo))[-1] == "manybody.training.lbfgs"
    assert demo.clone_modules("n2", "n4") == demo.model_modules("n2")
    assert len(demo.clone_modules("n2", "bert")) == 4


def test_an_architecture_has_no_recipe(demo):
    entry = demo.entry("models", "bert")
    assert demo.architecture("bert") == {
        key: value for key, value in entry.items() if key not in ("training", "init_seed")
    }
    assert demo.training_stream("bert") == entry["training"].get("stream", "bert")


def test_each_model_is_trained_in_one_place_or_read():
    asked = models({"device": "cuda"})
    places = [
        asked.trained_models(on_cpu=True), asked.trained_models(on_cpu=False),
        asked.models_with("parameters"), asked.models_with("weights"),
    ]  # fmt: skip
    assert sorted(name for place in places for name in place) == sorted(asked.config["models"])
    assert "bert" in places[1]
    assert "many-body-true" in places[2]


def test_processes_are_those_of_the_device_that_they_share():
    asked = models({"device": "cuda", "gpus": 2, "processes": 2})
    fit, threads = fitted(asked), asked.entry("models", "bert")["training"]["threads"]
    assert asked.training_device("bert") == "cuda"
    assert asked.training_threads("bert") == 2 * threads
    assert asked.training_device(fit) == "cpu"
    assert asked.training_processes(fit) == 1


def test_weights_of_sequences_where_a_recipe_asks(demo):
    demo.entry("models", "n2")["training"]["sequence_weights"] = 0.8
    assert demo.sequence_weights("docs", "n2") == "results/sequences/docs/weights.parquet"
    assert demo.sequence_weights("docs", "n4") == []


def test_memory_of_chains_is_that_of_their_sizes_but_on_a_gpu(demo):
    clone = demo.entry("clones", "n4")
    sizes = {key: demo.entry("sources", "docs")[key] for key in ("vocabulary", "length")}
    needed = footprint.job_megabytes(demo.entry("models", "n4"), sizes, clone)
    assert demo.clone_megabytes("n4") == needed != footprint.FIXED
    on_gpu = models({"device": "cuda", "gpus": 1, "processes": 1})
    assert on_gpu.clone_megabytes("n4") == footprint.FIXED


def test_a_job_that_ran_out_gets_more():
    assert growing(2000)("wildcards", attempt=1) == 2000
    assert growing(2000)("wildcards", attempt=3) == 6000
    assert growing(len)("wildcards", attempt=2) == 18
