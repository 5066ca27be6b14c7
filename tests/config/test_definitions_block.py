"""The entries that measure other definitions of order, and the figure that compares them."""

import pytest
from configs import load, refusal

from manybody.config.spectra import enumerable
from manybody.pipeline.check import check


@pytest.fixture
def config():
    return load("definitions.yaml")


def test_what_is_planted_is_enumerated_and_text_is_not(config):
    checked = check(config)
    assert enumerable(checked.sources["planted"])
    assert not enumerable(checked.sources["docs"])
    assert not enumerable(checked.sources["potts"])  # 20^20 states


def test_every_student_is_measured_at_its_own_runs(config):
    block = check(config).figures.simplicity.definitions
    found = block.inputs(config)
    assert {name for name, _ in found["spectra"]} == {
        name for one in block.students for name in one.named
    }
    assert {tuple(run) for run in map(tuple, found["runs"])} == {
        (name, seed)
        for name, seeds in {"gpt": 2, "bert": 3, "planted-bert": 3, "planted-gpt": 3}.items()
        for seed in range(seeds)
    }


@pytest.mark.parametrize(
    ("entry", "change", "said"),
    [
        ("gpt-n-grams", {"model": "bert"}, ".model: found bert, which predicts masked tokens"),
        ("gpt-n-grams", {"orders": 17}, ".orders: found 17; expected at most 16"),
        ("gpt-n-grams", {"orders": 8}, "n-grams are numbered; lower it"),
        ("gpt-n-grams", {"law": "text"}, ".law"),
        ("gpt-interactions", {"sizes": [0, 14]}, ".sizes: found 14; expected at most 13"),
        ("gpt-interactions", {"sizes": [-1]}, ".sizes"),
        ("gpt-interactions", {"sizes": [1, 1]}, ".sizes"),
        ("gpt-interactions", {"drawn": {"pairs": 5, "contexts": 3}}, "contexts: found 3; expected"),
        ("gpt-interactions", {"steps": [7]}, ".steps: found 7; expected checkpoints of gpt"),
        ("planted-gpt-n-grams", {"source": "potts"}, ".source: found potts of kind potts; expect"),
    ],
)
def test_what_cannot_be_measured_is_named(config, entry, change, said):
    config["spectra"][entry] |= change
    assert f"spectra.{entry}" in refusal(config)
    assert said in refusal(config)


def test_long_contexts_are_drawn(config):
    config["sources"]["docs"]["length"] = 18
    config["spectra"]["gpt-interactions"]["drawn"] = None
    said = "spectra.gpt-interactions.drawn: found null with sources.docs.length 18; expected at"
    assert said in refusal(config)


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("interactions", "bert-interactions", "found spectra.bert-interactions of bert on docs"),
        ("interactions", "gpt-n-grams", "students[2].interactions"),
        ("n_grams", "planted-gpt-n-grams", "found spectra.planted-gpt-n-grams of planted-gpt"),
        ("clones", {"evaluation": "bert", "control": "original", "ladder": ["order-3", "bert"]},
         "found evaluations.bert of bert on docs; expected the gpt on docs of spectra.gpt"),
        ("clones", {"evaluation": "gpt", "control": "original", "ladder": ["order-3", "order-5"]},
         "found order-5"),
    ],
)  # fmt: skip
def test_all_of_one_student_is_of_one_model(config, part, value, said):
    config["figures"]["simplicity"]["definitions"]["students"][2][part] = value
    assert said in refusal(config)
