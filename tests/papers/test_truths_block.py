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
    assert len(runs) == 6
    assert len(found.clones) == 14


def student(number=0):
    return lambda config: config["figures"]["simplicity"]["truths"]["students"][number]


def rungs(config):
    student()(config)["clones"][0]["targets"].pop()


def other_spectrum(config):
    student()(config)["spectrum"] = "tree-truths"


def fewer_runs(config):
    config["spectra"]["planted-truths"]["seeds"] = [0, 1]


def some_positions(config):
    config["evaluations"]["tree-truths"]["positions"] = 0.5


def no_target(config):
    student(1)(config)["exact"][0]["targets"][1] = "level-7"


def no_law(config):
    config["evaluations"]["of-text"] = {
        "source": "docs", "model": "bert", "seeds": [0], "positions": "all", "steps": "all",
        "targets": {"test": {"split": "test", "sequences": 20},
                    "validation": {"split": "validation", "sequences": 20}},
    }  # fmt: skip
    config["spectra"]["of-text"] = config["spectra"]["bert"] | {"seeds": [0]}
    student()(config).update(
        evaluation="of-text",
        spectrum="of-text",
        exact=[{"label": "text", "targets": ["test", "validation"]}],
        clones=[],
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (rungs, "students[0].clones[0].targets: found 2; expected 3, as"),
        (
            other_spectrum,
            "students[0].spectrum: found tree-truths, of source tree, model tree-bert",
        ),
        (
            fewer_runs,
            "of seeds [0, 1]; expected seeds [0, 1, 2], as evaluations.planted-truths has",
        ),
        (some_positions, "students[1].evaluation: found tree-truths, of some positions"),
        (no_target, "students[1].exact[0].targets[1]: found level-7; expected one of the targets"),
        (no_law, "students[0].evaluation: found of-text, of source docs; expected a Hamiltonian"),
    ],
)
def test_what_does_not_fit_is_named(config, change, said):
    change(config)
    assert said in refusal(config)
