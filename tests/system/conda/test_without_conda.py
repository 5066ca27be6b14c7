"""What --use-conda says where there is no conda, and which rules it has environments for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings
from test_environment import scripts_of_rules

ROOT = Path(__file__).resolve().parents[3]


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


def dry_run(folder: Path, commands: Path, *arguments: str) -> subprocess.CompletedProcess:
    """`snakemake -n` of one figure, with the folder `commands` for PATH."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "-n"]
    command += ["--workflow-profile", "none", "--configfile", str(ROOT / "config" / "tiny.yaml")]
    return subprocess.run(
        [*command, *arguments, "--", "results/tiny/figures/simplicity/gradient_flow.pdf"],
        cwd=folder,
        env={**os.environ, "PATH": str(commands), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("option", ["--use-conda", "--software-deployment-method=conda"])
def test_without_conda_the_error_says_what_to_do(tmp_path, commands, option):
    done = dry_run(tmp_path, commands, option)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1
    assert "--use-conda: expected the command `conda` in PATH, found none" in said
    assert "leave --use-conda out, after `make env` and `. .venv/bin/activate`" in said
    assert "install Miniforge" in said
    assert "Traceback" not in said
    assert "conda info" not in said  # which Snakemake would have tried and said
    assert not (tmp_path / "results").exists()


def test_without_the_option_no_conda_is_needed(tmp_path, commands):
    done = dry_run(tmp_path, commands)
    assert done.returncode == 0, done.stderr
    assert "compute_theory" in done.stdout


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
