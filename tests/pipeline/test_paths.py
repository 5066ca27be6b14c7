"""Paths that rules make of the config, and what they refuse."""

import configs
import pytest

from manybody.pipeline.check import ConfigError
from manybody.pipeline.paths import Paths

REFERENCED = {"source": "docs", "model": "n4", "step": {"loss_of": {"model": "n2", "seed": 3}}}


@pytest.fixture(scope="module")
def paths():
    return Paths(configs.load())


def test_everything_lies_in_the_folder_of_results():
    paths = Paths({**configs.load(), "results": "elsewhere"})
    templates = {name: path for name, path in vars(paths).items() if name != "config"}
    assert all(path.startswith("elsewhere") for path in templates.values())
    assert len(set(templates.values())) == len(templates)


def test_a_run_and_the_clones_of_it(paths):
    model = "results/models/docs/n4/seed-0/manifest.json"
    assert paths.model_path("docs", "n4", 0) == model
    assert paths.clone_path("n4") == "results/clones/docs/n4/manifest.json"
    assert paths.model_of("clones", "n4") == model


def test_the_loss_that_picks_a_checkpoint_is_of_another_run():
    config = configs.load()
    config["clones"]["picked"] = {**config["clones"]["n4"], **REFERENCED}
    paths = Paths(config)
    assert paths.clone_reference("picked") == "results/models/docs/n2/seed-3/manifest.json"
    assert paths.clone_reference("n4") == []


def test_targets_are_splits_clones_and_what_chains_started_from():
    config = configs.load()
    config["evaluations"]["mixed"] = {
        "source": "docs",
        "model": "bert",
        "targets": {
            "test": {"split": "test"},
            "other": {"split": "validation", "source": "planted"},
            "clone": {"clone": "n4", "sweep": 20},
            "original": {"initial": "n2"},
        },
    }
    paths = Paths(config)
    assert paths.evaluated_targets("mixed") == [
        "results/sequences/docs/test.parquet",
        "results/sequences/planted/validation.parquet",
        "results/clones/docs/n4/manifest.json",
        "results/clones/docs/n2/manifest.json",
    ]
    assert (
        paths.model_of("evaluations", "mixed", "1")
        == "results/models/docs/bert/seed-1/manifest.json"
    )


def test_a_spectrum_names_its_sequences(paths):
    assert paths.split_of("spectra", "n4", "test") == "results/sequences/docs/test.parquet"


@pytest.mark.parametrize(
    "ask",
    [
        lambda paths: paths.model_path("docs", "n44", 0),
        lambda paths: paths.clone_path("n44"),
        lambda paths: paths.evaluated_targets("n44"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_those_that_are(paths, ask):
    with pytest.raises(ConfigError, match=r"config has no \w+: n44; it has .*, "):
        ask(paths)
