"""Bad configs through the command line: refused at once, in words, before any job starts."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import repository

ROOT = Path(__file__).resolve().parents[3]
SNAKEMAKE = [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile"]
# For each: lines of an overlay, or a config file that replaces it, and what is said.
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


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return repository.copy(tmp_path_factory.mktemp("checkout"))


def snakemake(folder, overlay):
    """(exit status, output, seconds of the processor) of the pipeline with an overlay."""
    (folder / "mine.yaml").write_text(overlay + "\n")
    before = os.times()
    done = subprocess.run(
        [*SNAKEMAKE, "mine.yaml"],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    after = os.times()
    taken = after.children_user + after.children_system
    taken -= before.children_user + before.children_system
    return done.returncode, done.stdout + done.stderr, taken


@pytest.mark.parametrize("case", CASES)
def test_a_bad_config_is_refused_before_any_job(checkout, case):
    overlay, expected = CASES[case]
    status, output, taken = snakemake(checkout, overlay)
    # How long it takes depends on the machine: it stands in docs/reliability.md, not in a test.
    print(f"\n{case}: {taken:.1f} s")
    assert status == 1
    assert "the config cannot be used:" in output
    for part in expected:
        assert part in output, output
    assert "Traceback" not in output
    assert "Job stats" not in output
    assert [path.name for path in (checkout / "results").iterdir()] == ["README.md"]


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        ("corpora: {pydocs: [unclosed", "Config file is not valid JSON or YAML"),
        ("corpora: {letters: {kind: file, files: [nowhere.txt], boundary: line, "
         "split: {train: 0.8, validation: 0.1, test: 0.1}}}\n"
         "sources: {docs: {corpus: letters}}", "nowhere.txt"),
    ],
)  # fmt: skip
def test_what_is_no_yaml_or_names_no_file_is_refused_before_any_job(checkout, overlay, expected):
    status, output, _ = snakemake(checkout, overlay)
    assert status == 1
    assert expected in output, output
    assert "Traceback" not in output
    assert not list(checkout.glob("results/corpora/*/*"))


@pytest.mark.slow
def test_file_names_are_not_executed_by_jobs(checkout):
    """A whole job on files whose names a shell would act on."""
    names = ["with spaces.txt", 'it\'s "quoted".txt', "$(touch pwned).txt", "`touch pwned`.txt"]
    folder = checkout / "my 'own' $(touch pwned) texts"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("".join(f"{name} document {i}\n" for i in range(40)))
    files = [f"{folder.name}/{name}" for name in names]
    overlay = f"""
results: results/hostile
corpora:
  letters:
    kind: file
    files: {json.dumps(files)}
    boundary: line
    split: {{train: 0.8, validation: 0.1, test: 0.1}}
"""
    (checkout / "hostile.yaml").write_text(overlay)
    target = "results/hostile/corpora/letters/train.parquet"
    begin = time.monotonic()
    done = subprocess.run(
        [*SNAKEMAKE, "hostile.yaml", "--", target],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    print(f"\n{time.monotonic() - begin:.1f} s")
    assert done.returncode == 0, done.stderr[-3000:]
    assert (checkout / target).is_file()
    assert not [found for found in checkout.rglob("*") if found.name == "pwned"]
