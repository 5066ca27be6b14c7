"""The figure of students of known laws: what its block must fit together."""

import pytest
from configs import load, refusal

from manybody.papers.simplicity import truths
from manybody.pipeline.check import check


@pytest.fixture
def config():
    return load("truths.yaml")


def test_the_truth_is_asked_about_the_students_sets(config):
    found = truths.Inputs.of(check(config).figures.simplicity.truths, config)
    assert [one.exact.evaluation for one in found.students] == ["planted-truths", "tree-truths"]
    runs, spectra = (
        [key for one in found.students for key in getattr(one, kind)]
        for kind in ("runs", "spectra")
    )
    assert [(key.evaluation, key.seed) for key in runs] == [
        (key.spectrum, key.seed) for key in spectra
    ]
    assert len(runs) == 3 + 5
    assert found.clones == []


STUDENTS = ("figures", "simplicity", "truths", "students")


def put(value, *path):
    """A change of the config at one place."""

    def change(config):
        for step in path[:-1]:
            config = config[step]
        config[path[-1]] = value

    return change


def no_law(config):
    config["evaluations"]["of-text"] = {
        "source": "docs", "model": "bert", "seeds": [0], "positions": "all", "steps": "all",
        "targets": {"test": {"split": "test", "sequences": 20},
                    "validation": {"split": "validation", "sequences": 20}},
    }  # fmt: skip
    config["spectra"]["of-text"] = config["spectra"]["bert"] | {"seeds": [0]}
    config["figures"]["simplicity"]["truths"]["students"][0].update(
        evaluation="of-text",
        spectrum="of-text",
        exact=[{"label": "text", "targets": ["test", "validation"]}],
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            put(["interactions-2", "test"], *STUDENTS, 0, "exact", 1, "targets"),
            "students[0].exact[1].targets: found 2; expected 3, as",
        ),
        (
            put("cuts, interactions kept", *STUDENTS, 0, "exact", 1, "label"),
            "students[0].exact[1].label: found 'cuts, interactions kept', as of a series before",
        ),
        (
            put("tree-truths", *STUDENTS, 0, "spectrum"),
            "students[0].spectrum: found tree-truths, of source tree, model tree-bert",
        ),
        (
            put([0, 1], "spectra", "planted-truths", "seeds"),
            "of seeds [0, 1]; expected seeds [0, 1, 2], as evaluations.planted-truths has",
        ),
        (
            put(0.5, "evaluations", "tree-truths", "positions"),
            "students[1].evaluation: found tree-truths, of some positions",
        ),
        (
            put("level-7", *STUDENTS, 1, "exact", 0, "targets", 1),
            "students[1].exact[0].targets[1]: found level-7; expected one of the targets",
        ),
        (no_law, "students[0].evaluation: found of-text, of source docs; expected a Hamiltonian"),
    ],
)
def test_what_does_not_fit_is_named(config, change, said):
    change(config)
    assert said in refusal(config)
