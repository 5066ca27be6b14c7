"""`make env` with stand-in wheels: no network, no torch."""

import ast
import base64
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RELEASE = "2.13.0"


def wheel(folder: Path, name: str, version: str, requires: tuple[str, ...] = ()) -> str:
    """Write a wheel with one module that knows its version; its lock entry comes back."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {r}\n" for r in requires)
    files = {
        f"{name.replace('-', '_')}.py": f"__version__ = {version!r}\n",
        f"{about}/METADATA": metadata,
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        record = ""
        for file, text in files.items():
            archive.writestr(file, text)
            hashed = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            record += f"{file},sha256={hashed.decode().rstrip('=')},{len(text)}\n"
        archive.writestr(f"{about}/RECORD", record + f"{about}/RECORD,,\n")
    return entry(path, name, version)


def entry(path: Path, name: str, version: str) -> str:
    equals = "===" if name == "torch" else "=="
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name}{equals}{version} \\\n    --hash=sha256:{digest}\n"


class Machine:
    """A machine with a folder of wheels, the two locks and no index."""

    def __init__(self, folder: Path) -> None:
        self.wheels, self.locks, self.venv = (
            folder / n for n in ("wheels", "own locks", "its 'venv'")
        )
        self.plugins = folder / "plugins"  # on PYTHONPATH of every Python started
        for made in (self.wheels, self.locks, self.plugins):
            made.mkdir()
        shared = wheel(self.wheels, "setuptools", "84.2.1") + wheel(self.wheels, "numpy", "2.4.6")
        cpu = wheel(self.wheels, "torch", f"{RELEASE}+cpu", ("numpy",))
        cuda = wheel(self.wheels, "torch", RELEASE, ("numpy", "triton==3.7.1"))
        cuda += wheel(self.wheels, "triton", "3.7.1")
        self.lock("cpu").write_text(shared + cpu)
        self.lock("cuda").write_text(shared + cuda)

    def lock(self, build: str) -> Path:
        return self.locks / f"requirements-{build}.txt"

    def command(self, *variables: str) -> list[str]:
        names = [f"PYTHON={sys.executable}", f"VENV={self.venv}", f"LOCKS={self.locks}"]
        return ["make", "--no-print-directory", "env", *names, *variables]

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "MAKE", "MFLAGS"))}
        own = {
            "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1",
            "PIP_FIND_LINKS": str(self.wheels), "PYTHONPATH": str(self.plugins),
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        return {k: v for k, v in kept.items() if k not in ("TORCH", "VENV", "LOCKS")} | own

    def start(self, *variables: str) -> subprocess.Popen:
        return subprocess.Popen(
            self.command(*variables),
            cwd=ROOT,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def make(self, *variables: str) -> subprocess.CompletedProcess:
        process = self.start(*variables)
        output, _ = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, output)

    def installed(self) -> dict[str, str]:
        """The version of each distribution in the environment, pip left out."""
        found = self.venv.glob("lib/python*/site-packages/*.dist-info")
        pairs = (p.name.removesuffix(".dist-info").rsplit("-", 1) for p in found)
        return {name: version for name, version in pairs if name != "pip"}


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_cpu_build_is_taken_where_pip_would_and_a_second_call_starts_at_once(machine):
    first = machine.make()
    assert first.returncode == 0, first.stdout
    expected = {"setuptools": "84.2.1", "numpy": "2.4.6", "torch": f"{RELEASE}+cpu"}
    assert machine.installed() == expected
    assert [*machine.venv.rglob("numpy.*.pyc")]  # else every start would compile it anew

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    second = machine.make()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (second.returncode, second.stdout) == (0, "")
    # CPU seconds, so that a busy machine does not fail this; starting pip alone takes more
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.4


def test_an_environment_behind_a_link_is_used_but_not_replaced_and_needs_no_home(machine):
    behind = machine.venv.with_name("scratch")
    machine.venv.symlink_to(behind)
    assert machine.make("TORCH=cpu").returncode == 0
    assert json.loads((behind / "manybody.json").read_text())["folder"] == str(behind)
    next(behind.rglob("manybody_cache.py")).unlink()  # as in one of an earlier installer
    assert (machine.make().returncode, machine.make().stdout) == (0, "")
    machine.lock("cpu").write_text(machine.lock("cpu").read_text() + "# another\n")
    answer = machine.make()
    assert answer.returncode != 0
    assert f"is a link to {behind}, an environment with other packages" in answer.stdout
    asked = [machine.venv / "bin/python", "-c", "import os; print(os.getenv('XDG_CACHE_HOME', ''))"]
    for given, folder in (
        ({"HOME": "/proc/none", "TMPDIR": machine.locks}, machine.locks),
        ({"HOME": "/proc/none", "XDG_CACHE_HOME": "/chosen"}, Path("/")),
        ({"HOME": machine.locks}, Path()),  # not set
    ):
        assert Path(subprocess.check_output(asked, env=given, text=True).strip()).parent == folder


@pytest.mark.parametrize("name", ['a"b', "a$b"])
def test_a_path_that_activate_cannot_hold_is_refused_by_name(machine, name):
    machine.venv = machine.venv.with_name(name.replace("$", "$$"))
    answer = machine.make()
    assert answer.returncode != 0
    assert f"{name} holds {name[1]}" in answer.stdout


def test_cuda_build_is_taken_where_pip_finds_no_other_and_once_by_two_calls(machine):
    (machine.wheels / f"torch-{RELEASE}+cpu-py3-none-any.whl").unlink()
    calls = [machine.start(), machine.start()]
    outputs = [call.communicate()[0] for call in calls]
    assert [call.returncode for call in calls] == [0, 0], outputs
    assert sorted(bool(output) for output in outputs) == [False, True]
    assert f"no CPU build of torch {RELEASE}" in "".join(outputs)
    assert machine.installed()["torch"] == RELEASE
    assert machine.installed()["triton"] == "3.7.1"


def test_override_wins_and_an_install_that_was_killed_is_made_again(machine):
    killed = machine.start("TORCH=cuda")
    deadline = time.monotonic() + 60
    while not (machine.venv / "bin" / "python").exists():
        assert time.monotonic() < deadline, "the environment was not begun within a minute"
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()

    # pip sees both builds here and would take +cpu, which sorts after the plain release
    again = machine.make("TORCH=cuda")
    assert again.returncode == 0, again.stdout
    assert machine.installed()["torch"] == RELEASE
    assert machine.installed()["triton"] == "3.7.1"
    # and the choice stays until it is made otherwise
    assert machine.make().stdout == ""


def test_a_wheel_whose_digest_is_not_in_the_lock_is_refused(machine):
    wheel(machine.wheels, "numpy", "2.4.6", ("surprise",))
    answer = machine.make("TORCH=cpu")
    assert answer.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in answer.stdout
    assert "requirements-cpu.txt, the list for the cpu build of torch" in answer.stdout
    assert "TORCH=cuda" in answer.stdout
    assert "torch" not in machine.installed()


NO_ENSUREPIP = "import sys\nsys.modules['ensurepip'] = None  # importing it raises ImportError\n"
OTHER_PYTHON = "import sys\nsys.version_info = ({}, 'final', 0)\n"
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.mark.parametrize(
    ("plugin", "variables", "said"),
    [
        (NO_ENSUREPIP, [], ["lacks ensurepip", f"install python{HERE}-venv"]),
        *[
            (
                OTHER_PYTHON.format(version),
                [],
                ["the locked packages are for Python 3.11 to 3.13", "make env PYTHON=python3.11"],
            )
            for version in ("3, 10, 12", "3, 14, 0")
        ],
        (
            "",
            ["PYTHON=no-such-python"],
            ["no no-such-python here", "apt-get install python3 python3-venv"],
        ),
        ("", ["TORCH=gpu"], ["TORCH=gpu: expected cpu or cuda"]),
    ],
)
def test_what_no_environment_can_be_made_of_is_told_with_the_way_out(
    machine, plugin, variables, said
):
    (machine.plugins / "sitecustomize.py").write_text(plugin)
    answer = machine.make(*variables)
    assert answer.returncode != 0
    for part in said:
        assert part in answer.stdout
    assert not machine.venv.exists()


def test_installer_uses_the_standard_library_only():
    tree = ast.parse((ROOT / "envs" / "install.py").read_text(encoding="utf-8"))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert names <= sys.stdlib_module_names
