"""`pip install .`: a wheel of the package alone, what it needs, and the notebooks that use it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from test_environment import ENVS, ROOT, WORKFLOW, distribution, lock, names_imported

NOTEBOOKS = ROOT / "docs" / "notebooks"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRA = PROJECT["optional-dependencies"]["families"]
NEEDS = {need.name: need for need in map(Requirement, PROJECT["dependencies"] + EXTRA)}
PROGRAM = """
import sys, numpy as np, manybody as mb
assert mb.__file__.startswith(sys.argv[1]), mb.__file__
from manybody.data.potts import stored_colours
U = stored_colours()
tokens = mb.sample_potts([[0.0, 1.0], [1.0, 0.0]], -U, 1.0, sequences=50, sweeps=5)
print(mb.fit_couplings(tokens, len(U), iterations=5).loss)
"""


def test_needs_are_what_the_package_imports():
    files = (WORKFLOW / "src" / "manybody").rglob("*.py")
    assert set(NEEDS) == {distribution(name) for file in files for name in names_imported(file)}


@pytest.mark.parametrize("name", NEEDS)
def test_bounds_are_those_of_the_lock(name):
    locked = lock.parse((ENVS / "requirements-cuda.txt").read_text(encoding="utf-8"))[name].version
    bounds = {clause.operator: clause.version for clause in NEEDS[name].specifier}
    assert bounds[">="] == locked
    assert bounds["<"] == str(int(locked.split(".")[0]) + 1)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the wheel of a copy of the checkout, and `target`, which it is installed in."""
    folder = tmp_path_factory.mktemp("package")
    copy = folder / "checkout"
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(WORKFLOW / "src", copy / "workflow" / "src", ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, copy)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps"]
    wheel = [*pip, "wheel", *offline, "--no-build-isolation", "-w", str(folder), str(copy)]
    subprocess.run(wheel, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    target = ["--target", str(folder / "target"), str(built)]
    subprocess.run([*pip, "install", *offline, *target], check=True)
    return folder


def run(folder, cwd, *command):
    """What Python prints where nothing but the installed package is on its path."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "target")}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, text=True, capture_output=True
    )


@pytest.mark.long
def test_a_wheel_is_built_offline_and_works_from_where_it_lies(installed, tmp_path):
    (built,) = installed.glob("*.whl")
    with zipfile.ZipFile(built) as opened:
        inside = {name for name in opened.namelist() if ".dist-info/" not in name}
        (metadata,) = (n for n in opened.namelist() if n.endswith("METADATA"))
        text = opened.read(metadata).decode()
    source = WORKFLOW / "src"
    files = (path for path in (source / "manybody").rglob("*") if path.is_file())
    package = {str(path.relative_to(source)) for path in files if "__pycache__" not in path.parts}
    assert inside == package
    assert {"manybody/py.typed", "manybody/example/family.fasta"} < package
    assert sum(n.endswith("model/checkpoint-4000/model.safetensors") for n in inside) == 1
    example = (path for path in (source / "manybody" / "example").rglob("*") if path.is_file())
    assert sum(path.stat().st_size for path in example) < 300_000
    assert len(re.findall(r"^Requires-Dist: ", text, re.MULTILINE)) == len(NEEDS)
    said = run(installed, tmp_path, "-c", PROGRAM, str(installed / "target"))
    assert said.returncode == 0, said.stderr
    assert 0 < float(said.stdout.split()[-1]) < 4


@pytest.mark.long
def test_wheel_and_source_are_of_one_version_and_pass_their_checks(installed):
    making = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    made = [sys.executable, "-c", making, str(installed / "dist")]
    subprocess.run(made, cwd=installed / "checkout", check=True, capture_output=True)
    (source,), (built,) = (installed / "dist").iterdir(), installed.glob("*.whl")
    assert source.name == f"manybody-{PROJECT['version']}.tar.gz"
    assert built.name == f"manybody-{PROJECT['version']}-py3-none-any.whl"
    with tarfile.open(source) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"LICENSE", "workflow/src/manybody/example/model/tokenizer.json"} < names
    assert not [name for name in names if name.startswith("tests")]
    checks = {
        "check-wheel-contents": ["--config", str(ROOT / "pyproject.toml"), str(built)],
        "twine": ["check", "--strict", str(built), str(source)],
    }
    there = [[found, *given] for name, given in checks.items() if (found := shutil.which(name))]
    for command in there:
        said = subprocess.run(command, capture_output=True, text=True)
        assert said.returncode == 0, said.stdout
    if len(there) < len(checks):
        pytest.skip(f"{len(there)} of {', '.join(checks)} are there")


@pytest.mark.long
def test_commands_run_on_the_example_outside_the_repository(installed, tmp_path):
    program = str(installed / "target" / "bin" / "manybody")
    copied = run(installed, tmp_path, program, "example", "my files")
    assert copied.returncode == 0, copied.stderr
    said = []
    for line in copied.stdout.splitlines():
        name, *command = shlex.split(line)
        assert name == "manybody"
        ran = run(installed, tmp_path, program, *command)
        assert ran.returncode == 0, ran.stderr[-2000:]
        said.append(ran.stdout)
    # All twelve pairs in contact are among the best L / 2 = 20; the objects of sentences follow
    # from two words together.
    assert "60 ± 11 % are in contact" in said[0]
    share, error = re.search(r"M_2 / Var g = (\S+) ± (\S+) \(measured\)", said[1]).groups()
    assert float(share) > 3 * float(error)
    assert (tmp_path / "family-family" / "index.html").is_file()
    assert (tmp_path / "spectrum.png").is_file()
    again = run(installed, tmp_path, program, "example", "my files")
    assert "found my files, which is there already" in again.stderr


USER = """
import manybody as mb

model = mb.build_model("gpt", 3, 4, layers=1, heads=1, width=2, mlp=3)
reveal_type(mb.losses(model, [[1, 2, 0, 1]]))
mb.losses(model, vocabulary=3)
mb.lossses
"""


@pytest.mark.long
def test_a_checker_of_types_knows_what_is_installed(installed, tmp_path):
    pytest.importorskip("mypy", reason="the checker of types is not installed")
    (tmp_path / "user.py").write_text(USER)
    mypy = ["-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "user.py"]
    environment = {**os.environ, "MYPYPATH": str(installed / "target")}
    said = subprocess.run(
        [sys.executable, *mypy], cwd=tmp_path, env=environment, text=True, capture_output=True
    ).stdout
    assert "numpy.dtype[numpy.float64]]" in said
    assert 'Unexpected keyword argument "vocabulary" for "losses"' in said
    assert 'has no attribute "lossses"' in said


def outputs(path: Path) -> tuple[str, int]:
    """What the cells of a notebook print, and how many figures they show."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    found = [output for cell in cells for output in cell.get("outputs", ())]
    printed = "".join("".join(output.get("text", "")) for output in found)
    return printed, sum("image/png" in output.get("data", ()) for output in found)


def notebooks() -> list:
    """All notebooks; of them one is quick enough for every run."""
    names = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
    slow = [name for name in names if name != "couplings.ipynb"]
    return ["couplings.ipynb", *(pytest.param(name, marks=pytest.mark.slow) for name in slow)]


@pytest.mark.long
@pytest.mark.parametrize("name", notebooks())
def test_a_notebook_runs_with_what_is_installed_and_says_what_it_said(installed, tmp_path, name):
    execute = str(NOTEBOOKS / "execute.py")
    ran = run(installed, tmp_path, execute, str(NOTEBOOKS / name), str(tmp_path / name))
    assert ran.returncode == 0, ran.stderr[-2000:]
    (printed, figures), (expected, shown) = outputs(tmp_path / name), outputs(NOTEBOOKS / name)
    assert figures == shown == 1
    # Letters of a clone hang on the machine's last digits, and the text on the Python.
    numbers, known = (re.findall(r"\d+(?:\.\d+)?", text) for text in (printed, expected))
    assert len(known) > 5
    np.testing.assert_allclose(list(map(float, numbers)), list(map(float, known)), 0.2, 0.05)
