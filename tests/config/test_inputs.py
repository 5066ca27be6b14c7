"""What a figure's block asks for, by the names of the config."""

import pytest
from configs import load
from figure_inputs import needs

from manybody.config.figures import multi_index, simplicity

EVALUATIONS = {
    "bert": {"seeds": [0, 1], "targets": {"n2": {"clone": "n2"}, "o": {"initial": "n2"}}},
    "n2-test": {"seeds": [0], "targets": {"own": {"clone": "n2-norm"}}},
}
SOURCES = {"potts": {"length": 10}, "family": {}}
CONFIG = {"evaluations": EVALUATIONS, "sources": SOURCES}
FIG3 = {
    "evaluation": "bert",
    "seeds": [1],
    "generators": ["n2-test"],
    "test": "own",
    "chains": ["n4"],
    "pairs": [],
    "control": "o",
}
HEADLINE = [
    {
        "evaluation": name,
        "control": "o",
        "generators": ["n2-test"],
        "test": "own",
        "comparisons": [{"late": ["n2"], "early": ["n2"]}],
    }
    for name in ("bert", "n2-test")
]
PART = {
    "source": "potts",
    "networks": [{"model": "n1", "seeds": [0, 2]}],
    "protocols": [{"model": "n1", "seeds": [2, 3]}],
    "lines": ["pair"],
    "truth": "true",
}
EACH_ONCE = [["potts", *run] for run in (["n1", 0], ["n1", 2], ["n1", 3], ["pair", 0], ["true", 0])]
STAIRCASE = {
    "models": EACH_ONCE,
    "displacements": [["potts", "n1"]],
    "sources": {"potts": {"length": 10}},
    "theory": [],
}
POTTS = {
    "source": "potts",
    "optimum": "true",
    "runs": [{"label": "free", "candidates": ["slow", "fast"], "seeds": [0, 1], "longer": "long"}],
    "interpolation": [{"a": 0, "candidates": ["a0"], "seeds": [3]}],
    "exact": "identities",
}
MAPS = [["potts", model, seed] for model in ("slow", "fast") for seed in (0, 1)]
REST = [["potts", *run] for run in (["a0", 3], ["true", 0], ["long", 0], ["long", 1])]
CONTACTS = {"source": "family", "model": "map", "seed": 2, "truth": {"hamiltonian": "potts"}}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        # A student comes with its seeds, its generators and all clones.
        (
            FIG3,
            {
                "runs": [["bert", 1], ["n2-test", 0]],
                "clones": ["n2", "n2-norm", "n4"],
                "targets": {name: entry["targets"] for name, entry in EVALUATIONS.items()},
            },
        ),
        (FIG3 | {"wide_generator": "n2-test"}, {"runs": [["bert", 1], ["n2-test", 0]]}),
        (
            {"evaluation": "bert", "ladder": ["n2", "o"], "control": "o"},
            {"runs": [["bert", 0], ["bert", 1]]},
        ),
        ({"corpora": HEADLINE}, {"runs": [["bert", 0], ["bert", 1], ["n2-test", 0]]}),
        ({"clones": ["n4"], "sweep": 1, "passages": [0]}, {"clones": ["n4"]}),
        # A staircase comes with each run once.
        (PART, STAIRCASE),
        ({"parts": [PART, PART]}, STAIRCASE),
        (PART | {"exact": "identities"}, {"theory": ["identities"]}),
        ({"theory": "flow"}, {"theory": ["flow"]}),
        # The Potts figures ask for the runs of every candidate.
        (
            POTTS,
            {
                "maps": MAPS,
                "equations": [*MAPS, ["potts", "a0", 3]],
                "models": MAPS + REST,
                "theory": ["identities"],
            },
        ),
        (
            CONTACTS,
            {
                "contacts": [["family", "map", 2]],
                "truth": [{"hamiltonian": "potts"}],
                "sources": {"family": {}},
                "models": [],
            },
        ),
    ],
)
def test_a_figure_asks_for_what_its_block_names(block, expected):
    found = needs(block, CONFIG)
    assert {kind: found[kind] for kind in expected} == expected


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
    block = simplicity.SimplicityFig3.model_validate(FIG3 | {"evaluation": "berd"})
    with pytest.raises(KeyError, match="berd"):
        block.inputs(CONFIG)


def test_theory_is_what_the_roles_name():
    theory = {"sgd": "descent", "gamp": "messages"}
    block = multi_index.MultiIndexFig2.model_validate({"theory": theory})
    assert block.inputs({})["theory"] == ["messages", "descent"]
