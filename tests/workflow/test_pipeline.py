"""The whole pipeline at smoke scale: from text to figures, and what reruns after a change."""

import csv
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from manybody import scorecard

ROOT = Path(__file__).resolve().parents[2]
FIGURES = {
    "simplicity": ("fig1", "fig2", "fig3", "fig4", "fig5", "gradient_flow", "table1"),
    "potts": ("fig2", "fig3", "recovery", "contacts"),
}
EVERY = [(paper, figure) for paper, figures in FIGURES.items() for figure in figures]


class Checkout:
    """A copy of the repository's own files, in which snakemake runs and files may be edited."""

    def __init__(self, folder: Path):
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def snakemake(self, *arguments, overlay="", check=True):
        """Runs snakemake at smoke scale, with the YAML text `overlay` laid over the config."""
        mine = self.folder / "mine.yaml"
        mine.write_text(overlay or "{}")
        configs = ("--configfile", "config/smoke.yaml", mine.name)
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "2", *configs, *arguments],
            cwd=self.folder,
            env={**os.environ, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
        self.output = done.stdout + done.stderr
        if check:
            assert done.returncode == 0, self.output[-8000:]
        return done.returncode

    def planned(self, overlay="") -> set[str]:
        """The messages of the jobs that a dry run would start."""
        self.snakemake("-n", overlay=overlay)
        return set(re.findall(r"^Job \d+: (.*)$", self.output, re.MULTILINE))

    def counted(self, *arguments) -> dict[str, int]:
        """How many jobs of each rule a dry run would start, but for the target rules."""
        self.snakemake("-n", *arguments)
        table = self.output.rpartition("Job stats:")[2]
        counts = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}
        return {rule: n for rule, n in counts.items() if rule not in ("all", "total")}

    def edit(self, name, change):
        """Edits a file for the duration of a `with` block."""
        return Edit(self.folder / name, change)


class Edit:
    def __init__(self, path, change):
        self.path, self.change = path, change

    def __enter__(self):
        self.before, self.times = self.path.read_bytes(), self.path.stat()
        changed = self.change(self.before.decode())
        assert changed != self.before.decode()
        self.path.write_text(changed)

    def __exit__(self, *_):
        self.path.write_bytes(self.before)
        os.utime(self.path, ns=(self.times.st_atime_ns, self.times.st_mtime_ns))


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    checkout = Checkout(tmp_path_factory.mktemp("checkout"))
    begin = time.monotonic()
    checkout.snakemake()
    print(f"\nsmoke pipeline: {time.monotonic() - begin:.0f} s")
    return checkout


def rows(path):
    with path.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


@pytest.mark.parametrize(("paper", "figure"), EVERY)
def test_every_figure_is_there_with_its_numbers_and_claims(smoke, paper, figure):
    results = smoke.folder / "results" / "smoke"
    stem = results / "figures" / paper / figure
    assert stem.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert stem.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    drawn = rows(stem.with_suffix(".csv"))
    assert drawn
    expected = ["series", "text"] if figure == "table1" else None
    assert list(drawn[0]) == (expected or ["panel", "series", "seed", "x", "y", "y_err"])
    checks = rows(results / "checks" / paper / f"{figure}.csv")
    for check in checks:
        assert check["kind"] in {"exact", "statistical", "paper"}
        assert check["holds"] in scorecard.ANSWERS[check["kind"]]


def test_the_scorecard_gathers_every_claim(smoke):
    results = smoke.folder / "results" / "smoke"
    text = (results / "scorecard.md").read_text(encoding="utf-8")
    for path in (results / "checks").rglob("*.csv"):
        for check in rows(path):
            assert check["claim"].split("|")[0].strip() in text


def test_no_gate_fails(smoke):
    """Identities and statistical rows hold at any scale; what the papers claim need not."""
    assert scorecard.gates((smoke.folder / "results" / "smoke" / "checks").rglob("*.csv")) == []


def test_a_contradicted_gate_ends_the_run_with_its_name_and_all_files(smoke):
    results = smoke.folder / "results" / "smoke"
    table = results / "checks" / "multi-index" / "fig5.csv"
    judge = ("--rerun-triggers", "mtime", "--", "scorecard")
    kept = table.read_bytes()
    text = kept.decode("utf-8")
    wrong = text.replace(",confirmed", ",contradicted", 1)
    assert wrong != text
    try:
        table.write_text(wrong, encoding="utf-8")
        assert smoke.snakemake(*judge, check=False) == 1
        name = next(row["claim"] for row in rows(table) if row["holds"] == "contradicted")
        assert f"fig5.csv: {name}" in smoke.output
        assert name in (results / "scorecard.md").read_text(encoding="utf-8")
        assert not (results / "gates.json").exists()
    finally:
        table.write_bytes(kept)
        smoke.snakemake(*judge)
    assert (results / "gates.json").exists()


def test_nothing_half_written_is_left(smoke):
    results = smoke.folder / "results"
    left = [p for p in results.rglob("*") if p.name.endswith(".tmp") or p.name == ".lease"]
    left += [p for p in results.rglob("resume") if p.is_dir() and any(p.iterdir())]
    assert left == []


def test_a_second_call_has_nothing_to_do(smoke):
    begin = time.monotonic()
    smoke.snakemake()
    assert "Nothing to be done" in smoke.output
    print(f"\nsecond call: {time.monotonic() - begin:.1f} s")


def test_every_rule_of_the_pipeline_ran(smoke):
    """Benchmarks are made on request; every other rule is part of the smoke run."""
    smoke.snakemake("--list-rules")
    rules = set(re.findall(r"^\w+$", smoke.output, re.MULTILINE))
    ran = set(smoke.counted("--forceall"))
    assert {"train_model", "plot_simplicity_fig4"} <= ran
    targets = {"all", "scorecard", "simplicity", "potts", "multi_index"}
    assert rules - ran == {*targets, "benchmark_part"}


def test_few_jobs_import_torch(smoke):
    counts = smoke.counted("--forceall")
    heavy = sum(counts[rule] for rule in ("train_model", "sample_clones", "evaluate_model"))
    assert 0 < heavy <= 45


def test_a_colour_redraws_its_figure_only(smoke):
    with smoke.edit(
        "config/config.yaml",
        lambda text: text.replace("    fig4:\n", "    fig4:\n      colours: {original: black}\n"),
    ):
        assert set(smoke.counted()) == {"plot_simplicity_fig4", "write_scorecard", "judge_gates"}


def test_one_figures_module_redraws_it_only(smoke):
    with smoke.edit(
        "workflow/src/manybody/plotting/simplicity/fig3.py", lambda text: text + "\nEXTRA = 1\n"
    ):
        assert set(smoke.counted()) == {"plot_simplicity_fig3", "write_scorecard", "judge_gates"}


def test_a_hyper_parameter_reruns_its_model_and_what_follows(smoke):
    jobs = smoke.planned("models: {n4: {training: {learning_rate: 0.002}}}")
    trained = {job for job in jobs if job.startswith("Training")}
    assert trained == {"Training n4 on docs, seed 0"}
    sampled = {job for job in jobs if job.startswith("Sampling")}
    assert sampled == {
        f"Sampling {clone} of docs" for clone in ("n4", "n4-early", "n4-norm", "n4-unigram")
    }
    tested = {job for job in jobs if job.startswith("Evaluating")}
    assert "Evaluating n4, seed 0" in tested
    assert "Evaluating n2, seed 0" not in tested


def test_editing_a_model_retrains_that_architecture_only(smoke):
    with smoke.edit("workflow/src/manybody/models/gpt.py", lambda text: text + "\nEXTRA = 1\n"):
        jobs = smoke.planned()
    trained = {job for job in jobs if job.startswith("Training")}
    assert trained == {"Training gpt on docs, seed 0", "Training gpt on docs, seed 1"}
    assert not [job for job in jobs if job.startswith("Sampling")]


def test_docstrings_and_plots_retrain_nothing(smoke):
    with smoke.edit(
        "workflow/src/manybody/training.py",
        lambda text: "# a comment\n" + text.replace('"""', '"""In other words: ', 1),
    ):
        smoke.snakemake("-n")
    assert "Nothing to be done" in smoke.output


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("models: {n2: {rnk: 3}}", ["models.n2.rnk", "did you mean rank"]),
        ("models: {bert: {heads: 5}}", ["models.bert.heads", "does not divide"]),
        ("clones: {n2: {model: n3}}", ["clones.n2.model", "did you mean"]),
    ],
)
def test_a_mistake_in_the_config_is_answered_in_sentences(smoke, change, expected):
    assert smoke.snakemake("-n", overlay=change, check=False) != 0
    for part in expected:
        assert part in smoke.output
    assert "Traceback" not in smoke.output


def test_one_figure_by_its_file_name(smoke):
    counts = smoke.counted("--forceall", "--", "results/smoke/figures/simplicity/fig3.pdf")
    assert {rule for rule in counts if rule.startswith("plot")} == {"plot_simplicity_fig3"}


def test_the_report_shows_every_figure(smoke, tmp_path):
    smoke.snakemake("--report", str(tmp_path / "report.html"))
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for paper, figure in EVERY:
        assert f"{paper}/{figure}.png" in text
    assert "scorecard" in text
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium here: that the report renders in a browser is not checked")
    shot = tmp_path / "shot.png"
    subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=8000",
            "--window-size=1400,1000",
            "--dump-dom",
            f"file://{tmp_path / 'report.html'}",
        ],
        stdout=shot.open("w"),
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=True,
    )
    page = shot.read_text(encoding="utf-8")
    assert set(FIGURES) <= set(re.findall(r"\w+", page))
