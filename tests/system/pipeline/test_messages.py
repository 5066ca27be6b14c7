"""Mistakes of a first day: what snakemake says of each, once, in words, as soon as it can."""

import gzip
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pipelines import Pipeline
from repository import ROOT

OWN = """
corpora:
  mine:
    kind: file
    files: [{}]
    boundary: line
    split: {{train: 0.8, validation: 0.1, test: 0.1}}
sources: {{text: {{corpus: mine}}}}
"""
NOTES = OWN.format("notes.txt")
LOSSES = "results/tiny/losses/tiny/seed-0.parquet"
FAMILY = """
sources:
  family:
    kind: alignment
    file: famly.fasta
    format: fasta
    alphabet: rna
    identity: 0.8
    split: {train: 0.8, validation: 0.1, test: 0.1}
    seed: 0
"""
TENSOR = """
sources:
  spins: {couplings: {file: couplings.safetensors}}
"""

# For each: an overlay, what is asked for, and what is said before any job.
BEFORE = {
    "M1 a text that does not exist": (
        OWN.format("note.txt"),
        LOSSES,
        ["corpora.mine.files[0]: found note.txt, which does not exist", "did you mean notes.txt?"],
    ),
    "M2 an empty text": (
        OWN.format("notes.txt, empty.txt"),
        LOSSES,
        ["corpora.mine.files[1]: found empty.txt, which is empty", "fill it, or name another one"],
    ),
    "M5 a misspelt key": (
        "models: {tiny: {training: {stepps: 100}}}",
        LOSSES,
        ["models.tiny.training.stepps: this key is not known", "did you mean steps?"],
    ),
    "no YAML": (
        "corpora: {pydocs: [unclosed",
        LOSSES,
        ["more.yaml, line 2, column 1: ", "close the brace"],
    ),
    "a key that comes twice": (
        "models: {n2: {layers: 3}}\n\nmodels: {n4: {layers: 3}}",
        LOSSES,
        ["more.yaml, line 3: found the key models again, after line 1"],
    ),
    "a name that leaves the folder": (
        "models: {'../../out': {architecture: energy, order: 2, parameters: source}}",
        LOSSES,
        ["models: found the name '../../out'", "rename it"],
    ),
    "M6 a clone of what is not trained": (
        "clones: {tiny: {model: potts-true}}",
        LOSSES,
        ["clones.tiny.model: found potts-true, of architecture energy", "that is trained"],
    ),
    "M7 a sweep that is not saved": (
        "evaluations: {tiny: {targets: {clone: {sweep: 7}}}}",
        LOSSES,
        ["evaluations.tiny.targets.clone.sweep: found 7", "2, 6"],
    ),
    "M8 an unknown figure": (
        "{}",
        "results/tiny/figures/simplicity/gradient-flow.pdf",
        [
            "results/tiny/figures/simplicity/gradient-flow.pdf: no rule makes it",
            "in results/tiny/figures as .pdf, .png and .csv",
            "simplicity/fig4",
            "did you mean results/tiny/figures/simplicity/gradient_flow.pdf?",
        ],
    ),
    "a figure in another folder of results": (
        "{}",
        "results/figures/potts/fig3.pdf",
        ["did you mean results/tiny/figures/potts/fig3.pdf?"],
    ),
    "a sweep as a file": (
        "{}",
        "results/tiny/clones/text/tiny/sweep-6.parquet",
        ["did you mean results/tiny/clones/text/tiny/manifest.json, which comes with all that it"],
    ),
    "a figure that several papers have": (
        "{}",
        "fig2",
        [
            "fig2: no rule makes it; expected the name of a rule, such as scorecard, of a figure "
            "that one paper has",
            "did you mean results/tiny/figures/simplicity/fig2.pdf or "
            "results/tiny/figures/potts/fig2.pdf or results/tiny/figures/multi-index/fig2.pdf?",
        ],
    ),
    "a misspelt rule": ("{}", "scorecrd", ["expected the name of a rule", "mean scorecard?"]),
    "a folder without text": (
        OWN.format("nothing"),
        LOSSES,
        ["corpora.mine.files[0]: found nothing, a folder without any text", "put texts there"],
    ),
    "a packed text": (
        OWN.format("notes.txt.gz"),
        LOSSES,
        ["corpora.mine.files[0]: found notes.txt.gz, a gzip archive", "unpack it (gunzip)"],
    ),
    "an alignment that does not exist": (
        FAMILY,
        "results/tiny/sequences/family/train.parquet",
        ["sources.family.file: found famly.fasta", "did you mean family.fasta?"],
    ),
    "a truth that does not exist": (
        "figures: {potts: {contacts: {truth: known.csv}}}",
        "results/tiny/figures/potts/contacts.pdf",
        ["figures.potts.contacts.truth: found known.csv, which does not exist", "correct the path"],
    ),
    "a tensor that does not exist": (
        TENSOR,
        "results/tiny/sequences/spins/train.parquet",
        ["sources.spins.couplings.file: found couplings.safetensors, which does not exist"],
    ),
}
for name, (key, value, more, said) in {
    "M3 a vocabulary above the text": (
        "vocabulary", 60000, "", "expected less than 3",
    ),
    "M4 a length above the text": (
        "length", 12000, "models: {tiny: {training: {batch: 2000}}}", "each of three splits",
    ),
    "M4 a length above the batch": ("length", 5000, "", "models.tiny.training.batch: found 64"),
}.items():  # fmt: skip
    overlay = NOTES.replace("{corpus: mine}", f"{{corpus: mine, {key}: {value}}}") + more
    BEFORE[name] = (overlay, LOSSES, [f"sources.text.{key}", str(value), said])

# What only a job can know: the sentence is in its log, and shown once.
IN_JOBS = {
    "one document": (
        OWN.format("one.txt"),
        "corpora.mine.split: the ",
        "split comes out empty (documents: ",
    ),
    "a Parquet file without a column": (
        OWN.format("stories.parquet"),
        "corpora.mine.column: missing; expected one of the columns of stories.parquet: story",
        "name one",
    ),
    "M3 a vocabulary that the text cannot fill": (
        NOTES.replace("{corpus: mine}", "{corpus: mine, vocabulary: 9000}"),
        "sources.text.vocabulary: found 9000, at which ",
        "change it, or give more text",
    ),
    "M4 a length above a split": (
        NOTES.replace("{corpus: mine}", "{corpus: mine, length: 3500}")
        + "models: {tiny: {training: {batch: 600}}}",
        "sources.text.length: found 3500",
        "take a smaller length, or give this split more text",
    ),
    "M10 a batch above the data": (
        NOTES + "models: {tiny: {training: {batch: 70000}}}",
        "models.tiny.training.batch: found 70000",
        "lower it, or give the source more data or a smaller length",
    ),
    "M11 more chains than test sequences": (
        NOTES + "clones: {tiny: {chains: 40000}}",
        "clones.tiny.chains: found 40000 that start at different test sequences; expected at most",
        "lower it, give the test split more text, or take chain_init: unigram",
    ),
}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """A folder of one's own with texts, good and bad."""
    folder = tmp_path_factory.mktemp("first day")
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 7))) for _ in range(300)]
    notes = "".join(" ".join(draw.choices(words, k=12)) + "\n" for _ in range(500))
    (folder / "notes.txt").write_text(notes)
    (folder / "empty.txt").touch()
    (folder / "one.txt").write_text("a single document without an end " * 100)
    (folder / "notes.txt.gz").write_bytes(gzip.compress(notes.encode()))
    (folder / "nothing").mkdir()
    (folder / "nothing" / ".hidden").write_text(notes)
    (folder / "family.fasta").write_text(">a\nACGU\n>b\nACGU\n")
    pq.write_table(pa.table({"story": notes.splitlines()}), folder / "stories.parquet")
    return Pipeline(folder)


@pytest.mark.parametrize("case", BEFORE)
def test_what_config_and_files_show_is_said_before_any_job(pipeline, case):
    overlay, target, words = BEFORE[case]
    assert pipeline.run(overlay=overlay, targets=[target], check=False) == 1
    for part in words:
        assert part in pipeline.output, pipeline.output
    for part in ("Traceback", "Job stats", 'File "', "Exception"):
        assert part not in pipeline.output


@pytest.mark.parametrize("case", IN_JOBS)
def test_what_a_job_finds_is_said_once_without_a_traceback(pipeline, case):
    overlay, start, end = IN_JOBS[case]
    # One after another: two splits of a text may fail alike.
    assert pipeline.run(overlay=overlay, targets=[LOSSES], cores=1, check=False) == 1
    (said,) = [line for line in pipeline.output.splitlines() if line.startswith(start)]
    assert end in said
    assert "Traceback" not in pipeline.output
    (log,) = {line for line in pipeline.output.splitlines() if line.startswith("Logfile ")}
    assert said in (pipeline.folder / log.split()[1].rstrip(":")).read_text()


@pytest.fixture
def limited(tmp_path):
    """A Python that may write only where its user may, even where that is root."""
    path = tmp_path / "python"
    drop = "setpriv --bounding-set=-dac_override,-dac_read_search" if os.geteuid() == 0 else ""
    path.write_text(f'#!/bin/sh\nexec {drop} {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path


def elsewhere(folder: Path, python: Path | str, *arguments, root=ROOT, **variables):
    """Status and words of a call from `folder`, with `python`."""
    command = [python, "-m", "snakemake", "--snakefile", root / "Snakefile", "--cores", "1"]
    done = subprocess.run(
        [*command, "--configfile", ROOT / "config" / "tiny.yaml", *arguments, "--", LOSSES],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert "Traceback" not in done.stdout
    return done.returncode, done.stdout


@pytest.mark.parametrize("closed", ["results", ".", "tmp"])
def test_a_folder_that_cannot_be_written_is_refused_before_any_job(tmp_path, limited, closed):
    folder = tmp_path / "here"
    (folder / closed).mkdir(parents=True)
    (folder / closed).chmod(0o555)
    status, output = elsewhere(folder, limited, TMPDIR=str(folder / "tmp"))
    (folder / closed).chmod(0o755)
    assert status == 1
    assert (f"--directory {ROOT}" if closed == "." else "another one") in output
    assert f"{folder / closed} cannot be written; expected a folder of your own" in output
    assert "Job stats" not in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "results links to {}/gone, which is not there; expected a folder of your own"),
        (
            ["--workflow-profile", "slrm"],
            "found slrm, which does not exist; expected one of default",
        ),
    ],
)
def test_results_that_link_to_nothing_and_no_profile_are_refused(tmp_path, arguments, said):
    (tmp_path / "results").symlink_to(tmp_path / "gone")
    assert said.format(tmp_path) in elsewhere(tmp_path, sys.executable, *arguments)[1]


def test_a_call_from_elsewhere_says_where_results_go(tmp_path):
    status, output = elsewhere(tmp_path, sys.executable, "-n", "--config", "results=./results/tiny")
    assert status == 0
    assert f"Results go to {tmp_path}/results/tiny" in output
    assert f"cd {ROOT}, or --directory {ROOT}" in output


def test_a_clone_whose_path_has_braces_is_refused_by_name(tmp_path):
    (tmp_path / "a{b}").symlink_to(ROOT)
    status, output = elsewhere(tmp_path, sys.executable, root=tmp_path / "a{b}")
    assert status == 1
    assert f"found the clone in {tmp_path}/a{{b}}; expected a path without braces" in output


@pytest.mark.parametrize("package", ["pydantic", "torch"])
def test_a_python_without_the_packages_is_refused_before_any_job(tmp_path, package):
    # Snakemake's own plugins import some of them, so that they cannot be taken away altogether.
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\nfind = util.find_spec\n"
        f"util.find_spec = lambda name, *more: None if name == {package!r} else find(name, *more)\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    status, output = elsewhere(tmp_path, sys.executable, PYTHONPATH=path)
    assert status == 1
    assert f"the Python that runs snakemake, {sys.executable}, has no {package}" in output
    assert "`make env` and `. .venv/bin/activate`" in output
    assert "--use-conda" in output
    assert "Job stats" not in output


@pytest.mark.parametrize("profile", ["profiles/default", "profiles/slurm"])
def test_a_config_file_that_does_not_exist_is_named_before_snakemake_reads_it(tmp_path, profile):
    command = [sys.executable, "-m", "snakemake", "-s", ROOT / "Snakefile", "--configfile"]
    done = subprocess.run(
        [*command, ROOT / "config" / "smok.yaml", "--workflow-profile", ROOT / profile],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"did you mean {ROOT}/config/smoke.yaml?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_figure_is_asked_for_by_its_name(pipeline):
    planned = pipeline.counted(targets=["gradient_flow"])
    assert planned == {"compute_theory": 1, "make_figure": 1, "gradient_flow": 1}
