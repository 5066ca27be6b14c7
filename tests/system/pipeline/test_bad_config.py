"""Configs that are read by none of our code first, and names that a shell would act on."""

import pytest
import yaml
from pipelines import Pipeline


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
    corpus = {
        "kind": "file", "files": [f"{folder.name}/{name}" for name in names], "boundary": "line",
        "split": {"train": 0.8, "validation": 0.1, "test": 0.1},
    }  # fmt: skip
    overlay = yaml.safe_dump(
        {"corpora": {"letters": corpus}, "sources": {"docs": {"corpus": "letters"}}}
    )
    Pipeline(tmp_path, overlay, ["corpora/letters/train.parquet"]).run()
    assert (tmp_path / "results/tiny/corpora/letters/train.parquet").is_file()
    assert not [found for found in tmp_path.rglob("*") if found.name == "pwned"]
