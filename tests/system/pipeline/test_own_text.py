"""docs/your-corpus.md: a text of one's own, as the page says, on little text and few steps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import repository
import yaml
from configs import CONFIG, load
from pipelines import Pipeline

from manybody.data import pydocs

PAGE = repository.ROOT / "docs" / "your-corpus.md"
SMALL = """
models:
  n2: &few
    training:
      {steps: 40, batch: 32, warmup: 5, validation: 64, checkpoints: {logarithmic: 5, listed: [10]}}
  n4: *few
  bert-generator: *few
  bert: *few
  gpt: *few
clones: {n2: &chains {chains: 8}, n4: *chains, bert: *chains}
evaluations:
  own-n2: &test {targets: {test: {sequences: 64}}}
  own-n4: *test
  own-bert-generator: *test
  own-bert: {seeds: [0]}
spectra:
  n2: {sequences: 64, forwards: 1500, anchored: {size: 3, targets: 4}}
  n4: &draws {sequences: 64, forwards: 1500, steps: 2, anchored: {size: 3, targets: 4}}
  bert-generator: *draws
  bert: {<<: *draws, seeds: [0]}
  bert-unigram: *draws
  bert-model: *draws
  gpt: {<<: *draws, seeds: [0]}
figures: {simplicity: {fig1: null, fig4: {late_steps: [10, 40]}, fig5: null}}
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_at_most_five_lines_plan_the_figures_of_the_text_and_nothing_else(tmp_path):
    (mine,) = blocks("yaml")
    assert len(mine.splitlines()) <= 5
    (tmp_path / "letters.txt").write_text("some words\n\nsome more\n" * 99)
    pipeline = Pipeline(tmp_path, (CONFIG / "own-text.yaml").read_text(), scale="own-text")
    assert pipeline.counted(overlay=mine, targets=["all"]) == {
        "collect_corpus": 1,
        "train_tokenizer": 1,
        "encode_sequences": 3,
        "measure_ngrams": 1,
        "measure_overlap": 1,
        "train_model": 8,
        "sample_clones": 3,
        "describe_clones": 1,
        "evaluate_model": 8,
        "make_figure": 5,
        "write_scorecard": 1,
        "write_page": 1,
    }
    made = re.findall(r"^Job \d+: Making simplicity (.*)$", pipeline.output, re.MULTILINE)
    assert set(made) == {"fig1", "fig3", "fig4", "fig5", "table1"}


def called(folder: Path, command: str) -> str:
    """What a command says that is typed in `folder`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    call = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    said = call.stdout + call.stderr
    assert call.returncode == 0, said[-8000:]
    return said


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A checkout in which the page's commands were given one after another, and what they said."""
    folder = repository.copy(tmp_path_factory.mktemp("own"))
    packages = load("tiny.yaml")["corpora"]["tiny"]["packages"]
    (folder / "letters.txt").write_text("\n\n".join(pydocs.modules(packages)), encoding="utf-8")
    (mine,) = blocks("yaml")
    (folder / "mine.yaml").write_text(mine + SMALL)
    said = []
    for command in blocks("bash"):
        said.append(called(folder, command))
    return folder, said


def test_advice_is_printed_before_anything_long_and_kept(followed):
    folder, (said, *_) = followed
    advice = (folder / "results/letters/advice.md").read_text()
    assert advice in said
    assert "train_model" not in said.partition("# Advice on docs")[0]
    for part in ("## The text", "| 3 |", "`models.n2.training.learning_rate`", "| sample_clones |"):
        assert part in advice


def test_afterwards_it_says_what_came_out(followed):
    folder, (before, _, after, *_) = followed
    assert "## What came out" not in before
    page = (folder / "results/letters/index.html").read_text()
    for model in ("n2", "bert-generator"):
        said = re.search(rf"^- ({model} loses .*)$", after, re.MULTILINE)[1]
        assert said.endswith("train it longer, or as `advise` suggests.")
        assert said in page
    assert "n4, 70 sweeps: the chains do not agree" in after


def test_the_command_that_is_printed_adds_what_is_suggested(followed):
    folder, (said, *_) = followed
    suggested = yaml.safe_load((folder / "results/letters/advised.yaml").read_text())
    assert "learning_rate" in suggested["models"]["n2"]["training"]
    (command,) = re.findall(r"^    (snakemake .*)$", said, re.MULTILINE)
    assert command.endswith("config/own-text.yaml mine.yaml results/letters/advised.yaml")
    assert "Training n2 on docs" in called(folder, f"{command} -n")
    # Asked once more, it suggests what the config holds.
    called(folder, f"{command} -- advise")
    assert yaml.safe_load((folder / "results/letters/advised.yaml").read_text()) == suggested


def test_a_run_ends_with_sentences_that_the_page_begins_with(followed):
    folder, (advised, said, *_) = followed
    (found,) = [line for line in said.splitlines() if line.startswith("The test loss above that")]
    assert re.search(r"is -?\d\.\d+ \(-?\d\.\d+ to -?\d\.\d+\) for n = 2, order 3 and", found)
    assert "The test loss above" not in advised
    assert found in (folder / "results/letters/index.html").read_text()


def test_the_figures_are_those_of_the_text(followed):
    folder, _ = followed
    made = {path.name for path in (folder / "results/letters/figures").rglob("*.pdf")}
    assert made == {"fig3.pdf", "fig4.pdf", "spectrum.pdf", "table1.pdf"}
    results = folder / "results/letters"
    assert "on letters: |V| = 400" in (results / "figures/simplicity/fig4.claims.csv").read_text()
    assert (
        "Text letters: ``letters.txt``"
        in (results / "figures/simplicity/fig4.caption.rst").read_text()
    )
    assert (
        "<title>manybody: results/letters, letters (letters.txt)<"
        in (results / "index.html").read_text()
    )
