"""The audit of what is installed: licences without a network, vulnerabilities where known."""

import importlib.metadata
import json
import re
import subprocess
import sys
from email.message import Message
from pathlib import Path

import pytest
from test_environment import module

ENVS = Path(__file__).resolve().parents[3] / "envs"
LOCKS = ["requirements-cpu.txt", "requirements-cuda.txt"]


@pytest.fixture(scope="module")
def audit():
    return module("audit")


@pytest.fixture
def lock(tmp_path):
    def write(*lines):
        path = tmp_path / "requirements.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


def version(name):
    return importlib.metadata.version(name)


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_a_digest(audit, name):
    packages = audit.locked(ENVS / name)
    lines = (ENVS / name).read_text().splitlines()
    assert len(packages) == sum("==" in line and not line.startswith("#") for line in lines) > 100
    assert all(digest for _, _, digest in packages)


def test_licences_are_listed_without_a_network(audit, capsys, monkeypatch):
    monkeypatch.setattr(audit.shutil, "which", lambda _: None)
    monkeypatch.setattr(audit.subprocess, "run", None)
    audit.main(ENVS / LOCKS[0])
    out = capsys.readouterr().out
    assert f"numpy {version('numpy')}: BSD-3-Clause" in out
    assert "known vulnerabilities: NOT CHECKED" in out


def test_an_installed_version_that_is_not_the_locked_one_is_named(audit, capsys):
    assert audit.list_licences([("numpy", version("numpy"), True)]) == 0
    assert audit.list_licences([("numpy", "0.1", True)]) == 1
    assert (
        f"not the locked version: numpy {version('numpy')}, locked 0.1" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([("License-Expression", "MIT"), ("License", "other")], "MIT"),
        ([("Classifier", "License :: OSI Approved :: BSD License")], "BSD License"),
        ([("Classifier", "License :: OSI Approved"), ("License", "ISC")], "ISC"),
        ([("License", "x" * 500)], "not declared in its metadata"),
        ([("License", "UNKNOWN")], "not declared in its metadata"),
        ([], "not declared in its metadata"),
    ],
)
def test_the_licence_is_the_one_that_is_declared(audit, fields, expected):
    about = Message()
    for key, value in fields:
        about[key] = value
    assert audit.licence(about) == expected


ANSWERS = {
    "none": (
        json.dumps({"dependencies": [{"name": "a", "version": "1", "vulns": []}]}),
        0,
        "0 in 1",
    ),
    "one": (
        json.dumps(
            {"dependencies": [{"name": "a", "version": "1", "vulns": [
                {"id": "CVE-1", "fix_versions": ["2"]}]}]}
        ),
        1,
        "a 1: CVE-1, fixed in 2",
    ),
    "another index": (
        json.dumps({"dependencies": [{"name": "a", "skip_reason": "not found"}]}),
        0,
        "NOT CHECKED, the service knows none of 1 packages",
    ),
    "no network": ("", 0, "NOT CHECKED, pip-audit could not answer: no route"),
}  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS)
def test_vulnerabilities_are_those_that_pip_audit_knows(audit, answer, capsys, monkeypatch):
    out, count, said = ANSWERS[answer]
    asked = []

    def run(command, **_):
        asked.extend(Path(command[command.index("--requirement") + 1]).read_text().splitlines())
        return subprocess.CompletedProcess(command, 1, out, "warning\nno route")

    monkeypatch.setattr(audit.shutil, "which", lambda _: "/bin/pip-audit")
    monkeypatch.setattr(audit.subprocess, "run", run)
    assert audit.list_vulnerabilities(audit.locked(ENVS / LOCKS[0])) == count
    assert said in capsys.readouterr().out
    # Each as its public release, which services know and pip-audit can read.
    assert len(asked) > 100
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in asked), asked
    assert f"torch=={version('torch').partition('+')[0]}" in asked


def test_a_package_without_digest_is_named(audit, lock, capsys, monkeypatch):
    monkeypatch.setattr(audit.shutil, "which", lambda _: None)
    assert audit.main(lock(f"numpy=={version('numpy')}"))
    assert "without: numpy" in capsys.readouterr().out


def test_a_file_that_locks_nothing_is_refused(lock):
    command = [sys.executable, ENVS / "audit.py", lock("nothing")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "locks no package" in done.stderr
