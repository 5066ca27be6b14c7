"""Trees, code laws and cuts: how they fit to the sources they are made of."""

import pytest
from configs import load, refusal

from manybody.config.corpora import sized
from manybody.io.tables import read_targets
from manybody.models import labels
from manybody.papers import style
from manybody.pipeline.check import check

SEQUENCES = {"train": 20, "validation": 10, "test": 10}
CUT = {"kind": "cut", "source": "many-body", "at": 2, "kept": "marginals"}
TREE = {"kind": "tree", "depth": 4, "level": 0, "vocabulary": 4, "rules": {"deviation": 1.0}}

CODE = {"kind": "code", "length": 9, "terms": [{"sites": [0, 2], "information": 0.2}]} | {
    "groups": [{"order": 3, "count": 2, "coupling": -0.5}]
}


def with_sources(**made):
    config = load()
    for name, source in made.items():
        config["sources"][name] = {**source, "sequences": SEQUENCES, "seed": 0}
    return config


def test_sizes_are_those_of_the_source_that_is_behind():
    checked = check(with_sources(cut=CUT, tree=TREE, code=CODE))
    assert sized("cut", checked) is checked.sources["many-body"]
    assert (sized("tree", checked).vocabulary, sized("tree", checked).length) == (4, 16)
    assert (sized("code", checked).vocabulary, sized("code", checked).length) == (2, 9)


def test_an_evaluation_tests_on_a_source_of_the_same_sizes():
    config = with_sources(tree=TREE, same=CODE | {"vocabulary": 5, "length": 10})
    targets = {}
    config["evaluations"]["staircase"] = {
        "source": "many-body", "model": "many-body-n2", "seeds": [0], "positions": "all",
        "steps": "all", "targets": targets,
    }  # fmt: skip
    targets["leaves"] = {"source": "same", "split": "test", "sequences": 10}
    check(config)
    targets["leaves"]["sequences"] = 11
    assert "leaves.sequences: found 11; expected at most 10" in refusal(config)
    targets["leaves"] |= {"source": "tree", "sequences": 10}
    said = refusal(config)
    assert "targets.leaves.source: found tree with |V| = 4, L = 16; expected |V| =" in said
    targets["leaves"]["source"] = "nothing"
    assert "targets.leaves.source: found nothing, but there is no sources.nothing" in refusal(
        config
    )


def test_a_target_of_another_source_is_called_by_its_name():
    found = read_targets({"a": {"source": "leaves", "split": "test"}, "b": {"split": "test"}}, {})
    assert [labels.target(found[name]) for name in "ab"] == ["leaves", "original text"]
    assert [labels.short(found[name]) for name in "ab"] == ["leaves", "original"]
    assert style.colour(found["a"]) == style.colour(found["b"])


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("cut", CUT | {"at": 4}, "cut.at: found 4; expected less than the 4 of source many-body"),
        (
            "cut",
            CUT | {"source": "potts", "at": 1},
            "cut.source: found potts with |V|^L = 20^20; expected at most 16777216 states",
        ),
        ("tree", TREE | {"level": 5}, "tree.level: found 5; expected at most the depth 4"),
        ("code", CODE | {"length": 8}, "code.length: found 8; expected at least 9, the sites"),
        ("code", CODE | {"vocabulary": 9}, "code.vocabulary: found 9; expected a prime"),
        ("code", CODE | {"keep": [2, 4]}, "code.keep: found [2, 4]; expected some of [2, 3]"),
        (
            "code",
            CODE | {"terms": [{"sites": [0, 1], "information": 0.7}]},
            "code: found a term of information 0.7; expected less than ln |V| = 0.6931; lower it",
        ),
        (
            "code",
            CODE | {"terms": [{"sites": [0, 1], "information": 0.1, "coupling": 1.0}]},
            "code.terms[0].coupling: found 1.0 with information 0.1; expected nothing; leave",
        ),
        (
            "code",
            {"kind": "code", "length": 9},
            "code.terms: missing, as groups are; expected one of them; give terms or groups",
        ),
    ],
)
def test_what_does_not_fit_is_refused(name, source, said):
    assert f"sources.{said}" in refusal(with_sources(**{name: source}))
