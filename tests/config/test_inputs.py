"""What a figure's block asks for, by the names of the config."""

import copy

import pytest
from configs import load
from figure_inputs import needs

from manybody.config.figures import multi_index, simplicity

EVALUATIONS = {
    "bert": {"seeds": [0, 1], "targets": {"n2": {"clone": "n2"}, "o": {"initial": "n2"}}},
    "n2-test": {"seeds": [0], "targets": {"own": {"clone": "n2-norm"}}},
}
FIG3 = {
    "evaluation": "bert",
    "seeds": [1],
    "generators": ["n2-test"],
    "test": "own",
    "chains": ["n4"],
    "pairs": [],
    "control": "o",
}
PART = {
    "source": "potts",
    "networks": [{"model": "n1", "seeds": [0, 2]}],
    "protocols": [{"model": "n1", "seeds": [2, 3]}],
    "lines": ["pair"],
    "truth": "true",
}


def test_a_student_comes_with_its_seeds_its_generators_and_all_clones():
    config = {"evaluations": EVALUATIONS}
    found = needs(FIG3, config)
    assert found["runs"] == [["bert", 1], ["n2-test", 0]]
    assert found["clones"] == ["n2", "n2-norm", "n4"]
    assert found["targets"] == {name: entry["targets"] for name, entry in EVALUATIONS.items()}
    assert needs({**FIG3, "wide_generator": "n2-test"}, config)["runs"] == found["runs"]
    fig1 = {"evaluation": "bert", "ladder": ["n2", "o"], "control": "o"}
    assert needs(fig1, config)["runs"] == [["bert", 0], ["bert", 1]]
    parts = [
        {
            "evaluation": name,
            "control": "o",
            "generators": ["n2-test"],
            "test": "own",
            "comparisons": [{"late": ["n2"], "early": ["n2"]}],
        }
        for name in ("bert", "n2-test")
    ]
    assert needs({"corpora": parts}, config)["runs"] == [["bert", 0], ["bert", 1], ["n2-test", 0]]
    table = {"clones": ["n4"], "sweep": 1, "passages": [0]}
    assert needs(table, config)["clones"] == ["n4"]


def test_a_staircase_comes_with_each_run_once():
    config = {"sources": {"potts": {"length": 10}}}
    runs = [["n1", 0], ["n1", 2], ["n1", 3], ["pair", 0], ["true", 0]]
    for block in (PART, {"parts": [PART, PART]}):
        found = needs(block, config)
        assert found["models"] == [["potts", *run] for run in runs]
        assert found["displacements"] == [["potts", "n1"]]
        assert found["sources"] == config["sources"]
        assert not found["theory"]
    assert needs({**PART, "exact": "identities"}, config)["theory"] == ["identities"]
    assert needs({"theory": "flow"}, config)["theory"] == ["flow"]


def test_the_potts_figures_ask_for_the_runs_of_every_candidate():
    config = {"sources": {"potts": {}, "family": {}}}
    entry = {"label": "free", "candidates": ["slow", "fast"], "seeds": [0, 1], "longer": "long"}
    block = {"source": "potts", "optimum": "true", "runs": [entry], "exact": "identities"}
    block["interpolation"] = [{"a": 0, "candidates": ["a0"], "seeds": [3]}]
    found = needs(block, config)
    maps = [["potts", model, seed] for model in ("slow", "fast") for seed in (0, 1)]
    rest = [["a0", 3], ["true", 0], ["long", 0], ["long", 1]]
    assert found["maps"] == maps
    assert found["equations"] == [*maps, ["potts", "a0", 3]]
    assert found["models"] == maps + [["potts", *run] for run in rest]
    assert found["theory"] == ["identities"]
    contacts = {"source": "family", "model": "map", "seed": 2, "truth": {"hamiltonian": "potts"}}
    found = needs(contacts, config)
    assert found["contacts"] == [["family", "map", 2]]
    assert found["truth"] == [{"hamiltonian": "potts"}]
    assert found["sources"] == {"family": {}}
    assert not found["models"]


def test_claims_about_the_same_runs_are_those_of_one_figure():
    config = load()
    figures = config["figures"]["simplicity"]
    shared = {name: needs(block, config)["elsewhere"] for name, block in figures.items()}
    assert {name: other for name, other in shared.items() if other} == {
        "fig1": "fig4",
        "fig2_seeds": "fig2",
    }
    paper = load("paper.yaml")
    figures = paper["figures"]["simplicity"].values()
    assert {needs(block, paper)["elsewhere"] for block in figures} == {None}


def test_an_evaluation_that_is_not_there_is_named():
    block = copy.deepcopy(FIG3) | {"evaluation": "berd"}
    with pytest.raises(KeyError, match="berd"):
        simplicity.SimplicityFig3.model_validate(block).inputs({"evaluations": EVALUATIONS})


def test_theory_is_what_the_roles_name():
    theory = {"sgd": "descent", "gamp": "messages"}
    block = multi_index.MultiIndexFig2.model_validate({"theory": theory})
    assert block.inputs({})["theory"] == ["messages", "descent"]
