"""`pip install .`: a wheel of the package alone, and what it says that it needs."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
from packaging.requirements import Requirement
from test_environment import ENVS, ROOT, WORKFLOW, distribution, lock, names_imported

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDS = {need.name: need for need in map(Requirement, PROJECT["dependencies"])}
PROGRAM = """
import sys, numpy as np, manybody as mb
assert mb.__file__.startswith(sys.argv[1]), mb.__file__
from manybody.sources.potts import stored_colours
U = stored_colours()
tokens = mb.sample_potts([[0.0, 1.0], [1.0, 0.0]], -U, 1.0, sequences=50, sweeps=5)
print(mb.fit_couplings(tokens, len(U), iterations=5).loss)
"""


def test_needs_are_what_the_package_imports():
    files = (WORKFLOW / "src" / "manybody").rglob("*.py")
    imported = {distribution(name) for file in files for name in names_imported(file)}
    assert set(NEEDS) == imported


@pytest.mark.parametrize("name", NEEDS)
def test_bounds_are_those_of_the_lock(name):
    locked = lock.parse((ENVS / "requirements-cuda.txt").read_text(encoding="utf-8"))[name].version
    bounds = {clause.operator: clause.version for clause in NEEDS[name].specifier}
    assert bounds[">="] == locked
    assert bounds["<"] == str(int(locked.split(".")[0]) + 1)


@pytest.mark.long
def test_a_wheel_is_built_offline_and_works_from_where_it_lies(tmp_path):
    copy = tmp_path / "checkout"
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(WORKFLOW / "src", copy / "workflow" / "src", ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps"]
    wheel = [*pip, "wheel", *offline, "--no-build-isolation", "-w", str(tmp_path), str(copy)]
    subprocess.run(wheel, check=True, capture_output=True)
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as opened:
        inside = {name for name in opened.namelist() if ".dist-info/" not in name}
        (metadata,) = (n for n in opened.namelist() if n.endswith("METADATA"))
        text = opened.read(metadata).decode()
    source = WORKFLOW / "src"
    package = (path for path in (source / "manybody").rglob("*") if path.suffix in (".py", ".json"))
    assert inside == {str(path.relative_to(source)) for path in package}
    assert len(re.findall(r"^Requires-Dist: ", text, re.MULTILINE)) == len(NEEDS)
    target = tmp_path / "target"
    subprocess.run([*pip, "install", *offline, "--target", str(target), str(built)], check=True)
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(target)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(target)}, text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    assert 0 < float(said.stdout.split()[-1]) < 4
