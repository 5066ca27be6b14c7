"""Bad configs through the command line: refused at once, in words, before any job starts."""

import pytest
import yaml
from pipelines import Pipeline

# For each: an overlay, and what is said.
CASES = {
    "missing key": (
        "clones: {mine: {source: docs, model: n2, seed: 0}}",
        ["clones.mine.step: missing; expected last or", "write for example step: last"],
    ),
    "misspelt key": (
        "models: {n2: {training: {stepps: 100}}}",
        ["models.n2.training.stepps: this key is not known", "did you mean steps?"],
    ),
    "misspelt block": ("modles: {}", ["modles: this key is not known", "did you mean models?"]),
    "wrong type": (
        "models: {n2: {layers: two}}",
        ["models.n2.layers: found 'two'", "expected an integer of at least 1", "layers: 1"],
    ),
    "out of range": (
        "sources: {docs: {vocabulary: 100}}",
        ["sources.docs.vocabulary: found 100", "an integer from 256 to 65536"],
    ),
    "not a number": (
        "models: {n2: {training: {learning_rate: .nan}}}",
        ["models.n2.training.learning_rate: found nan", "expected a number above 0"],
    ),
    "name of nothing": (
        "clones: {n2: {model: n3}}",
        ["clones.n2.model: found n3", "there is no models.n3", "did you mean n"],
    ),
    "wrong kind of theory": (
        "figures: {potts: {fig3: {theory: gradient-flow}}}",
        ["figures.potts.fig3.theory: found gradient-flow", "of kind replica", "take replica"],
    ),
    "inconsistent pair": (
        "models: {bert: {heads: 5}}",
        ["models.bert.heads: found 5, which does not divide width 64", "change either"],
    ),
    "precision that loops have not": (
        "clones: {n4: {precision: bfloat16}}",
        ["clones.n4.precision: found bfloat16 for n4", "expected float32", "set it"],
    ),
    "inconsistent blocks": (
        "curves: {recovery: {sizes: [10, 10000000]}}",
        ["curves.recovery.sizes: found 10000000", "training sequences of source potts"],
    ),
    "name that leaves the folder": (
        "models: {'../../out': {architecture: energy, order: 2, parameters: source}}",
        ["models: found the name '../../out'", "rename it"],
    ),
    "published split parted anew": (
        "corpora: {stories: {kind: tinystories, split: published, deduplicate: true, revision: "
        "0123456789abcdef0123456789abcdef01234567}}",
        ["corpora.stories.deduplicate: found true with a published split", "leave it out"],
    ),
    "block that is no mapping": ("models: []", ["models: found []", "expected a mapping"]),
}


# What no block of the config is to blame for.
UNREADABLE = {
    "no YAML": (
        "corpora: {pydocs: [unclosed",
        ["mine.yaml, line 2, column 1: ", "close the brace"],
    ),
    "a key that comes twice": (
        "models: {n2: {layers: 3}}\n\nmodels: {n4: {layers: 3}}",
        ["mine.yaml, line 3: found the key models again, after line 1"],
    ),
    "no file": (
        "corpora: {letters: {kind: file, files: [nowhere.txt], boundary: line, "
        "split: {train: 0.8, validation: 0.1, test: 0.1}}}\n"
        "sources: {docs: {corpus: letters}}",
        ["nowhere.txt"],
    ),
}


@pytest.mark.parametrize("case", [*CASES, *UNREADABLE])
def test_a_bad_config_is_refused_before_any_job(tmp_path, case):
    overlay, expected = (CASES | UNREADABLE)[case]
    pipeline = Pipeline(tmp_path, overlay, scale="config")
    assert pipeline.run(cores=1, check=False) == 1
    assert ("the config cannot be used:" in pipeline.output) == (case in CASES)
    for part in expected:
        assert part in pipeline.output, pipeline.output
    assert "Traceback" not in pipeline.output
    assert "Job stats" not in pipeline.output
    assert not (tmp_path / "results").exists()


def test_a_key_that_comes_twice_is_refused_without_a_profile_too(tmp_path):
    pipeline = Pipeline(tmp_path, "models: {}\nmodels: {}", scale="config")
    assert pipeline.run("-n", "--workflow-profile", "none", check=False) == 1
    assert "mine.yaml, line 2: found the key models again, after line 1" in pipeline.output
    assert "Traceback" not in pipeline.output


@pytest.mark.slow
def test_file_names_are_not_executed_by_jobs(tmp_path):
    """A whole job on files whose names a shell would act on."""
    names = ["with spaces.txt", 'it\'s "quoted".txt', "$(touch pwned).txt", "`touch pwned`.txt"]
    folder = tmp_path / "my 'own' $(touch pwned) texts"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("".join(f"{name} document {i}\n" for i in range(40)))
    corpus = {"kind": "file", "files": [f"{folder.name}/{name}" for name in names]}
    corpus |= {"boundary": "line", "split": {"train": 0.8, "validation": 0.1, "test": 0.1}}
    overlay = yaml.safe_dump({"corpora": {"letters": corpus}})
    Pipeline(tmp_path, overlay, ["corpora/letters/train.parquet"]).run()
    assert (tmp_path / "results/tiny/corpora/letters/train.parquet").is_file()
    assert not [found for found in tmp_path.rglob("*") if found.name == "pwned"]
