"""What the tests of --use-conda share: a stand-in for conda, and a Snakemake all alone."""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# helpers of other folders: the tiny pipeline, and what scripts import
sys.path[:0] = [
    str(folder) for folder in (HERE, HERE.parent / "faults", HERE.parent / "environment")
]


@pytest.fixture(scope="session")
def conda(tmp_path_factory):
    """A folder with the command bin/conda, which answers from a channel of python and pip."""
    pytest.importorskip("rattler", reason="no stand-in for conda: py-rattler is not installed")
    import channel

    asked = wanted()
    here = platform.python_version()
    if not here.startswith(asked["python"] + "."):
        pytest.skip(f"envs/*.yaml ask for Python {asked['python']}, to pack there is {here} only")
    root = tmp_path_factory.mktemp("conda")
    try:
        channel.make(root / "channels" / "conda-forge", pip=asked["pip"])
    except channel.NoIndex as reason:
        pytest.skip(f"pip {asked['pip']} cannot be fetched from the package index: {reason}")
    (root / "bin").mkdir()
    shutil.copy(HERE / "activate", root / "bin" / "activate")
    command = shlex.join([sys.executable, str(HERE / "standin.py"), str(root)])
    (root / "bin" / "conda").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (root / "bin" / "conda").chmod(0o755)
    yield root
    shutil.rmtree(root)


def wanted() -> dict[str, str]:
    """What all environment files ask of conda itself: releases by name."""
    found = {}
    for path in (ROOT / "envs").glob("*.yaml"):
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))["dependencies"]
        found |= dict(re.split("=+", entry) for entry in entries if isinstance(entry, str))
    assert set(found) == {"python", "pip"}  # which the channel has
    return found


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """A virtual environment with the locked Snakemake and what it needs, and nothing else."""
    from test_environment import ENVS, lock

    packages = lock.parse((ENVS / "requirements-cpu.txt").read_text(encoding="utf-8"))
    needs = sorted(lock.closure(packages, ["snakemake"]))
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys._base_executable, "-m", "venv", folder / "venv"], check=True)
    pins = [f"{name}=={packages[name].version}" for name in needs]
    python = folder / "venv" / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", *pins],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"Snakemake cannot be fetched from the package index: {done.stderr[-500:]}")
    yield python
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def environment(conda) -> dict[str, str]:
    """Variables for a call of Snakemake that finds the stand-in, and no package but its own."""
    kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    # Python compiles what it imports; all of torch would take a minute.
    alone = {"PYTHONNOUSERSITE": "1", "PIP_NO_COMPILE": "1"}
    return {**kept, **alone, "PATH": f"{conda / 'bin'}{os.pathsep}{os.environ['PATH']}"}
