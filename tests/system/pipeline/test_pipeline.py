"""The whole pipeline at smoke scale: from text to figures, and what reruns after a change."""

import csv
import html
import itertools
import os
import random
import re
import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import repository
from pipelines import Pipeline

from manybody import papers
from manybody.data.documents import Documents
from manybody.io.sequences import Sequences
from manybody.measure import cards
from manybody.papers import claims
from manybody.report import document

FIGURES = {
    "simplicity": ("fig1", "fig2", "fig3", "fig4", "fig5", "gradient_flow", "table1"),
    "potts": ("fig2", "fig3", "recovery", "contacts"),
    "multi-index": ("fig1", "fig2", "fig3", "fig5"),
}
AFTER = {"Gathering the scorecard", "Writing the page of the run"}  # of any figure
EVERY = [(paper, figure) for paper, figures in FIGURES.items() for figure in figures]


class Checkout(Pipeline):
    """A copy of the repository's own files, whose files may be edited, at smoke scale.

    Its environment is behind a link in it, so that both paths hold what the folder's name does.
    """

    def __init__(self, folder: Path):
        super().__init__(repository.copy(folder), scale="smoke", root=folder)
        (folder / ".venv").symlink_to(sys.prefix)
        self.python = str(folder / ".venv" / "bin" / "python")

    def planned(self, overlay="") -> set[str]:
        """The messages of the jobs that a dry run would start."""
        self.run("-n", overlay=overlay)
        return set(re.findall(r"^Job \d+: (.*)$", self.output, re.MULTILINE))

    @contextmanager
    def edit(self, name, change):
        """Edits a file for the duration of a `with` block."""
        path = self.folder / name
        before, times = path.read_text(), path.stat()
        path.write_text(change(before))
        assert path.read_text() != before
        try:
            yield
        finally:
            path.write_text(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    checkout = Checkout(tmp_path_factory.mktemp("the user's clone"))
    begin = time.monotonic()
    checkout.run()
    print(f"\nsmoke pipeline: {time.monotonic() - begin:.0f} s")
    return checkout


def rows(path):
    with path.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


@pytest.mark.parametrize(("paper", "figure"), EVERY)
def test_every_figure_is_there_with_its_numbers_and_claims(smoke, paper, figure):
    stem = smoke.results / "figures" / paper / figure
    assert stem.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert stem.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    drawn = rows(stem.with_suffix(".csv"))
    assert drawn
    expected = ["series", "text"] if figure == "table1" else None
    assert list(drawn[0]) == (expected or ["panel", "series", "seed", "x", "y", "y_err"])
    for claim in claims.read(stem.with_name(f"{figure}.claims.csv")):
        assert claim.id.startswith(f"{paper}/{figure}/")


# --- what was fed to what: manifests are compared with the files that they are made of


def sequences_of(smoke, source, split):
    return Sequences.open(smoke.results / f"sequences/{source}/{split}.parquet")


def test_splits_share_no_document_and_no_stream(smoke):
    for folder in (smoke.results / "corpora").iterdir():
        seen = {}
        for split in ("train", "validation", "test"):
            text = "".join(
                f"{piece.text}\0" if piece.last else piece.text
                for piece in Documents(folder / f"{split}.parquet")
            )
            seen[split] = set(text.split("\0")) - {""}
        for one, two in itertools.combinations(seen.values(), 2):
            assert not one & two
    for source in ("docs", "many-body", "potts", "family"):
        parts = [sequences_of(smoke, source, split).tokens for split in ("train", "validation",
                                                                        "test")]  # fmt: skip
        for one, two in itertools.combinations(parts, 2):
            # Of one stream, chain by chain, they would be the same sequences.
            count = min(len(one), len(two))
            assert (one[:count] == two[:count]).all(axis=1).mean() < 0.1
    parts = [sequences_of(smoke, "family", split).tokens for split in ("train", "test")]
    assert not set(map(bytes, parts[0])) & set(map(bytes, parts[1]))


def test_page_and_scorecard_gather_every_claim_and_figure(smoke):
    page = html.unescape((smoke.results / "index.html").read_text(encoding="utf-8"))
    scorecard = (smoke.results / "scorecard.md").read_text(encoding="utf-8")
    for path in (smoke.results / "figures").rglob("*.claims.csv"):
        for claim in claims.read(path):
            assert claim.cited in page
            assert claim.cited.replace("|", "\\|") in scorecard
    for paper, figure in EVERY:
        assert f'href="figures/{paper}/{figure}.pdf"' in page
    assert page.count("<article") >= len(EVERY)
    assert page.count("data:image/png;base64,") == page.count("<article") + document.FIRST
    assert len(page) < 10_000_000


def test_every_clone_has_its_card_on_the_page_and_in_captions(smoke):
    page = (smoke.results / "index.html").read_text(encoding="utf-8")
    known = [card for path in (smoke.results / "cards").iterdir() for card in cards.read(path)]
    manifests = (smoke.results / "clones").rglob("manifest.json")
    clones = {f"{path.parts[-3]}-{path.parts[-2]}" for path in manifests}
    assert clones <= {f"{card.source}-{card.name}" for card in known}
    for card in known:
        assert f'id="clone-{card.source}-{card.name}"' in page
    fig4 = page.partition('id="simplicity-fig4"')[2].partition("</article>")[0]
    assert fig4.count('href="#clone-docs-') >= 3


def test_nothing_half_written_is_left(smoke):
    assert smoke.leftovers() == []


def test_a_second_call_has_nothing_to_do(smoke):
    begin = time.monotonic()
    smoke.run()
    assert "Nothing to be done" in smoke.output
    print(f"\nsecond call: {time.monotonic() - begin:.1f} s")


def test_every_rule_of_the_pipeline_ran(smoke):
    """Benchmarks, their peers, advice, the price and what reads models of others are
    run on request; every other rule that is not a target is part of the smoke run."""
    smoke.run("--list-rules")
    rules = set(re.findall(r"^\w+$", smoke.output, re.MULTILINE))
    ran = set(smoke.counted("--forceall"))
    assert {"train_model", "make_figure"} <= ran
    targets = {
        "all", "scorecard", "simplicity", "potts", "multi_index", "generators", "clones",
        "students", "advise", "price", "families",
    }  # fmt: skip
    asked = {
        "benchmark_part", "install_peers", "write_advice", "read_series", "take_tokenizer",
        "evaluate_truth", "fit_families", "use_families", "write_families",
    }  # fmt: skip
    short = {figure for paper in papers.PAPERS for figure in papers.figures(paper)}
    assert rules - ran - (short - targets) == targets | asked


def test_a_key_of_a_figure_redraws_that_figure_only(smoke):
    with smoke.edit(
        "config/config.yaml",
        lambda text: text.replace("      wide: order-3-wide\n", "", 1),
    ):
        assert smoke.planned() == AFTER | {"Making simplicity fig4"}


@pytest.mark.parametrize("figure", ["simplicity/fig3", "potts/fig2", "multi_index/fig5"])
def test_editing_a_figure_s_module_makes_that_figure_anew_and_no_other(smoke, figure):
    module = f"workflow/src/manybody/papers/{figure}.py"
    made = "Making " + figure.replace("_", "-").replace("/", " ")
    with smoke.edit(module, lambda text: text + "\nEXTRA = 1\n"):
        assert smoke.planned() == AFTER | {made}


def test_what_a_model_says_of_itself_makes_figures_anew(smoke):
    module = "workflow/src/manybody/models/gpt/__init__.py"
    with smoke.edit(module, lambda text: text + "\nEXTRA = 1\n"):
        assert {"Making simplicity fig4", *AFTER} <= smoke.planned()


def test_a_hyper_parameter_reruns_its_model_and_what_follows(smoke):
    jobs = smoke.planned("models: {n4: {training: {learning_rate: 0.002}}}")
    assert {job for job in jobs if job.startswith("Training")} == {"Training n4 on docs, seed 0"}
    assert {job for job in jobs if job.startswith("Sampling")} == {
        f"Sampling {clone} of docs" for clone in ("n4", "n4-early", "n4-norm", "n4-unigram")
    }
    tested = {job for job in jobs if job.startswith("Evaluating")}
    assert "Evaluating n4, seed 0" in tested
    assert "Evaluating n2, seed 0" not in tested


def test_editing_a_model_retrains_that_architecture_only(smoke):
    with smoke.edit(
        "workflow/src/manybody/models/gpt/network.py", lambda text: text + "\nEXTRA = 1\n"
    ):
        jobs = smoke.planned()
    trained = {job for job in jobs if job.startswith("Training")}
    assert trained == {"Training gpt on docs, seed 0", "Training gpt on docs, seed 1"}
    assert not [job for job in jobs if job.startswith("Sampling")]


def test_docstrings_and_plots_retrain_nothing(smoke):
    with smoke.edit(
        "workflow/src/manybody/training/loop.py",
        lambda text: "# a comment\n" + text.replace('"""', '"""In other words: ', 1),
    ):
        smoke.run("-n")
    assert "Nothing to be done" in smoke.output


def test_the_report_shows_every_figure(smoke, tmp_path):
    smoke.run("--report", str(tmp_path / "report.html"))
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for paper, figure in EVERY:
        assert f"{paper}/{figure}.png" in text
    assert "index.html" in text
    assert min(re.findall(r"\b[a-z]{1,20} \((?:PNG|PDF)\)", text)) == "image (PNG)"  # shown first


@pytest.mark.slow
def test_half_a_cache_of_compiled_loops_changes_no_bit(smoke):
    """The loops of the heat bath and of three layers, which it lacks, run for two more clones."""
    like = "seed: 0, step: last, energy: raw, gauge: none, chain_init: test, chains: 8, sweeps: [2]"
    like += ", order: permuted, chain_seed: 5, precision: float32, threads: 1"
    two = f"{{source: docs, model: n2, sampler: heat-bath, {like}}}"
    three = f"{{source: many-body, model: many-body-n3, {like}}}"
    made = [f"results/smoke/clones/{of}/manifest.json" for of in ("docs/two", "many-body/three")]
    asked = dict(overlay=f"clones: {{two: {two}, three: {three}}}", targets=["all", *made])
    smoke.run(**asked)
    expected, compiled = smoke.artifacts(), sorted(smoke.folder.rglob("*.nbi"))
    assert len(compiled) > 40
    for index in random.Random(0).sample(compiled, len(compiled) // 2):
        index.unlink()
    shutil.rmtree(smoke.results)
    smoke.run(**asked)
    assert smoke.artifacts() == expected
