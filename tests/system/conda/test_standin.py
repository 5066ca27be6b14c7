"""The stand-in for conda: it makes what an environment file asks for, and nothing silently else."""

import json
import subprocess
import sys

import pytest

PINNED = "packaging==25.0"  # small, and not the release that pip would take
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
FILE = """
channels: [conda-forge, nodefaults]
dependencies: [python={python}, pip=25, {{pip: [{pip}]}}]
"""
RULES = """
rule one:
    output:
        "one.json",
    conda:
        "one.yaml"
    script:
        "one.py"
"""
SCRIPT = """
import json, sys, packaging
with open(snakemake.output[0], "w") as out:
    json.dump([sys.prefix, packaging.__file__, packaging.__version__], out)
"""


def call(conda, *arguments, **options):
    command = [str(conda / "bin" / "conda"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, **options)


def env_file(folder, pip=PINNED, python=HERE):
    path = folder / "one.yaml"
    path.write_text(FILE.format(pip=pip, python=python))
    return path


def test_a_rule_runs_in_an_environment_with_a_pip_section(tmp_path, environment):
    env_file(tmp_path)
    (tmp_path / "Snakefile").write_text(RULES)
    (tmp_path / "one.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--use-conda"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    prefix, file, version = json.loads((tmp_path / "one.json").read_text())
    assert prefix.startswith(str(tmp_path / ".snakemake" / "conda"))
    assert file.startswith(prefix)
    assert version == PINNED.split("==")[1]


def test_packages_that_no_channel_has_are_refused(tmp_path, conda):
    path = env_file(tmp_path, python="2.7")
    done = call(conda, "env", "create", "--file", path, "--prefix", tmp_path / "env")
    assert done.returncode != 0
    assert "python" in done.stderr
    path.write_text("channels: [bioconda]\ndependencies: [samtools]\n")
    done = call(conda, "env", "create", "--file", path, "--prefix", tmp_path / "env")
    assert done.returncode != 0
    assert "no channel bioconda" in done.stderr


def test_a_package_that_pip_does_not_find_is_an_error(tmp_path, conda):
    path = env_file(tmp_path, pip="packaging==0.0.1")
    done = call(conda, "env", "create", "--file", path, "--prefix", tmp_path / "env")
    assert done.returncode != 0
    assert "packaging==0.0.1" in done.stdout + done.stderr
    assert "Pip failed" in done.stderr


@pytest.mark.parametrize("arguments", [["list"], ["env", "remove"], ["create"], []])
def test_what_it_does_not_know_is_refused(conda, arguments):
    done = call(conda, *arguments)
    assert done.returncode != 0
    assert "has no command" in done.stderr
