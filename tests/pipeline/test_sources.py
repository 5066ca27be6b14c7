"""What the jobs of each kind of source need and are granted."""

import configs
import pytest

from manybody.pipeline.check import check
from manybody.pipeline.paths import Paths
from manybody.pipeline.sources import Sources


@pytest.fixture(scope="module")
def asked():
    config = configs.load("truths.yaml")
    return Sources(Paths(config), check(config))


def test_sources_that_are_drawn_of_others(asked):
    folder = "results/truths/sequences/planted"
    assert asked.drawn_from("marginals-2") == [f"{folder}/hamiltonian.safetensors"]
    assert asked.module("marginals-2") == "manybody.data.cut"
    assert asked.drawn_from("tree-2") == []
    assert asked.sizes_of("marginals-2") == asked.sizes_of("planted") != {}


def test_true_conditionals_come_from_a_hamiltonian_or_from_rules(asked):
    known = {asked.true_conditionals(name)[0] for name in asked.evaluations_with_truth()}
    folder = "results/truths/sequences"
    assert f"{folder}/planted/hamiltonian.safetensors" in known
    assert f"{folder}/tree/test.parquet" in known
    unknown = asked.config["evaluations"].keys() - set(asked.evaluations_with_truth())
    assert {asked.entry("evaluations", name)["source"] for name in unknown} == {"docs"}


def test_only_a_text_has_a_tokenizer(asked):
    assert asked.file_beside("docs", "tokenizer.json").endswith("/docs/tokenizer.json")
    assert asked.file_beside("planted", "tokenizer.json") == []
    assert asked.file_beside("docs", "special.json") == []
    assert asked.trained_tokenizers() == asked.made_by("encode_sequences") == ["docs"]


def test_more_threads_only_for_many_chains(asked):
    counts = asked.entry("sources", "interactions-3")["sequences"]
    counts |= {"train": 1000, "validation": 500, "test": 500}
    assert asked.sampling_threads("interactions-3") == 1
    counts["test"] += 1
    assert asked.sampling_threads("interactions-3") == 4


def test_the_passage_of_a_spectrum_is_decoded_where_it_has_one():
    config = configs.load()
    asked = Sources(Paths(config), check(config))
    spectra = config["spectra"]
    text = next(name for name, entry in spectra.items() if entry["source"] == "docs")
    spectra[text]["passage"] = None
    assert asked.words_of(text) == []
    spectra[text]["passage"] = 0
    assert asked.words_of(text) == "results/sequences/docs/tokenizer.json"
