"""The pipeline as a module of another workflow, which has rules, files and a config of its own."""

import os
import subprocess
import sys

import pytest
from pipelines import ROOT

THEIRS = """
configfile: "config.yaml"

module manybody:
    snakefile: "{snakefile}"
    config: config["manybody"]

use rule * from manybody as manybody_*

use rule make_figure from manybody as manybody_make_figure with:
    priority: 7

rule all:
    default_target: True
    input: "rows.txt"

rule clones:  # the name of a rule of the module
    output: temp("clones.txt")
    shell: "touch {{output}}"

rule count_rows:
    input: "clones.txt", table=f"{{manybody.RESULTS}}/figures/simplicity/gradient_flow.csv"
    output: "rows.txt"
    shell: "wc -l < {{input.table}} > {{output}}"
"""
CONFIG = """
theirs: 3
manybody:
  results: results/manybody
  theory: {gradient-flow: {samples: 200}}
"""


@pytest.fixture
def call(tmp_path):
    """Calls Snakemake on the other workflow; a package that is installed would raise."""
    (tmp_path / "Snakefile").write_text(THEIRS.format(snakefile=ROOT / "workflow" / "Snakefile"))
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "installed" / "manybody").mkdir(parents=True)
    (tmp_path / "installed" / "manybody" / "__init__.py").write_text("raise RuntimeError('old')")

    def snakemake(*arguments):
        ran = subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "1", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return ran.returncode, ran.stdout

    return snakemake


def test_another_workflow_draws_a_figure_and_goes_on_with_its_table(call, tmp_path):
    code, said = call()
    assert code == 0, said
    table = tmp_path / "results/manybody/figures/simplicity/gradient_flow.csv"
    assert int((tmp_path / "rows.txt").read_text()) == len(table.read_text().splitlines()) > 200
    assert not (tmp_path / "clones.txt").exists()
    # Their temporary file is not taken for one that is lost.
    code, said = call("-n")
    assert code == 0, said
    assert "Nothing to be done" in said


@pytest.mark.parametrize(
    ("overlay", "said"),
    [
        ("manybody: {theory: {gradient-flow: {sample: 3}}}", "theory.gradient-flow.sample"),
        ("manybody: {theirs: 3}", "theirs"),
    ],
)
def test_what_it_gives_is_checked_as_any_config(call, tmp_path, overlay, said):
    (tmp_path / "more.yaml").write_text(overlay)
    code, output = call("-n", "--configfile", "more.yaml")
    assert code == 1
    assert said in output
    assert "Traceback" not in output
