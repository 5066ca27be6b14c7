"""What --use-conda says where there is no conda, and which rules it has environments for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pipelines import ROOT, Pipeline
from repository import copy
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings
from test_environment import scripts_of_rules

FIGURE = "figures/simplicity/gradient_flow.pdf"


@pytest.fixture
def commands(tmp_path) -> Path:
    """A folder with all the commands of PATH but conda."""
    folder = tmp_path / "commands"
    folder.mkdir()
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        for file in place.iterdir() if place.is_dir() else ():
            if file.name != "conda" and not (folder / file.name).is_symlink():
                (folder / file.name).symlink_to(file)
    return folder


@pytest.mark.parametrize("option", ["--use-conda", "--software-deployment-method=conda"])
def test_without_conda_the_error_says_what_to_do(tmp_path, commands, option):
    pipeline = Pipeline(tmp_path, targets=[FIGURE], PATH=str(commands))
    assert pipeline.run("-n", option, check=False) == 1
    said = " ".join(pipeline.output.split())
    assert "--use-conda: expected the command `conda` in PATH, found none" in said
    assert "leave --use-conda out, after `make env` and `. .venv/bin/activate`" in said
    assert "install Miniforge" in said
    assert "Traceback" not in said
    assert "conda info" not in said  # which Snakemake would have tried and said
    assert not (tmp_path / "results").exists()


def test_without_the_option_no_conda_is_needed(tmp_path, commands):
    assert "compute_theory" in Pipeline(tmp_path, targets=[FIGURE], PATH=str(commands)).counted()


def test_every_rule_that_snakemake_runs_has_an_environment(tmp_path, monkeypatch):
    """As Snakemake itself reads the rules, at smoke scale, which has them all."""
    monkeypatch.chdir(tmp_path)
    with SnakemakeApi(OutputSettings(quiet={"all"})) as api:
        loaded = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(configfiles=[ROOT / "config" / "smoke.yaml"]),
            snakefile=ROOT / "Snakefile",
        )
        rules = list(loaded._workflow.rules)
    found = set()
    for rule in rules:
        if rule.script is None:
            assert rule.norun or rule.name == "install_peers", (
                f"{rule} runs something without a script, in no environment"
            )
            continue
        environment = (Path(str(rule.snakefile)).parent / rule.conda_env).resolve()
        assert environment.parent == ROOT / "envs", rule
        assert environment.is_file(), rule
        found.add((Path(rule.script).stem, environment.stem))
    # test_environment.py compares their imports with what the environments have.
    assert found == set(scripts_of_rules())


def test_the_dockerfile_has_the_environments_as_they_are(tmp_path):
    """It holds their text, and folders named by its digest, where Snakemake looks for them."""
    clone = copy(tmp_path)
    path = os.pathsep.join([str(clone / "envs"), os.environ["PATH"]])
    made = subprocess.run(
        [sys.executable, "-m", "snakemake", "--containerize", "--", f"results/{FIGURE}"],
        cwd=clone,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    expected = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert made.stdout == expected, "the environments have changed: make lock"
