"""The crossed design on a text of one's own: a slice of real text, few steps, short chains."""

import yaml
from configs import CONFIG
from pipelines import Pipeline

from manybody.papers import claims

LETTERS = 600_000
TARGETS = {
    "raw-n1": 2,
    "raw-n2": 2,
    "raw-wide-1": 2,
    "raw-n4": 2,
    "raw-bert": 2,
    "gibbs-n2": 2,
    "gibbs-n4": 2,
    "gibbs-bert": 2,
    "raw-n2-60": 3,
    "raw-n2-noise": 3,
}
OTHERS = ("bigrams", "trigrams", "noise-10")


def overlay(file) -> dict:
    """What docs/your-corpus.md has in mine.yaml, and of each part of the design a little."""
    few = {"train": 16, "validation": 16, "test": 16}
    training = {"steps": 60, "batch": 32, "warmup": 5, "validation": 64}
    training["checkpoints"] = {"logarithmic": 4, "listed": [40]}
    generators = {
        "n1": "n1",
        "n2": "n2",
        "n2-wide": "n2-wide",
        "n4": "n4",
        "bert": "bert-generator",
    }
    clones = {name.removesuffix("-60") for name in TARGETS}
    sweeps = {name: [2, 3] if name in ("raw-n2", "raw-n2-noise") else [2] for name in clones}
    tested = {name: {"clone": name.removesuffix("-60"), "sweep": n} for name, n in TARGETS.items()}
    tested |= {name: {"source": name, "split": "test", "sequences": 16} for name in OTHERS}
    tested["original"] = {"initial": "raw-n1"}
    student = {"source": "docs", "model": "bert", "seeds": [0, 1], "positions": 0.4}
    series = [
        {"label": label, "targets": [name for name in TARGETS if name in names]}
        for label, names in (
            ("raw", ("raw-n1", "raw-n2", "raw-wide-1", "raw-n4", "raw-bert")),
            ("Gibbs", ("gibbs-n2", "gibbs-n4", "gibbs-bert")),
        )
    ]
    return {
        "results": "results/controls",
        "corpora": {"letters": {"kind": "file", "files": [str(file)], "boundary": "marker"}},
        "sources": {"docs": {"corpus": "letters"}} | {name: {"sequences": few} for name in OTHERS},
        "models": {name: {"training": training} for name in (*generators.values(), "bert")},
        "clones": {name: {"chains": 16, "sweeps": at} for name, at in sweeps.items()},
        "evaluations": {
            "controls": None,
            "mini": {**student, "steps": "all", "targets": tested},
            **{
                f"generator-{name}": {"targets": {"test": {"sequences": 64}}} for name in generators
            },
        },
        "spectra": {
            "bert": {"seeds": [0, 1], "steps": [40, 60], "sequences": 64, "forwards": 1500}
        },
        "figures": {
            "simplicity": {
                **dict.fromkeys(("fig1", "fig4", "fig5")),
                "controls": {
                    "evaluation": "mini",
                    "generators": [f"generator-{name}" for name in generators],
                    "series": [*series, {"label": "n-grams", "targets": ["bigrams", "trigrams"]}],
                    "twins": [["raw-n2-60", "raw-n2-noise"]],
                    "noise": ["noise-10"],
                    "late": [40, 60],
                },
            }
        },
    }


def test_the_crossed_design_of_a_slice_of_text(tmp_path, data_folder):
    text = (data_folder / "tinystories" / "tinystories_train_sample_2MiB.txt").read_text()
    (tmp_path / "slice.txt").write_text(text[:LETTERS])
    own = (CONFIG / "own-text.yaml").read_text()
    pipeline = Pipeline(tmp_path / "run", own, scale="controls")
    asked = yaml.safe_dump(overlay(tmp_path / "slice.txt"))
    pipeline.run(overlay=asked, targets=["controls"])
    drawn = (pipeline.results / "figures" / "simplicity" / "controls.csv").read_text()
    assert all(label in drawn for label in ("raw", "Gibbs", "n-grams"))
    found = claims.read(pipeline.results / "figures" / "simplicity" / "controls.claims.csv")
    assert found
    assert all(claim.verdict in claims.VERDICTS for claim in found)
    assert (pipeline.results / "simplicity-controls.html").is_file()
    assert pipeline.leftovers() == []
    # no text but the slice
    assert [path.name for path in (pipeline.results / "corpora").iterdir()] == ["letters"]
