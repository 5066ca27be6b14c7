"""The code digest follows what a script imports, and ignores what cannot change a number."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manybody.io import code_digest as digests

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "workflow" / "scripts"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the package whose files a test may edit."""
    shutil.copytree(ROOT / "workflow" / "src", tmp_path / "src")
    monkeypatch.setitem(digests.ROOTS, "manybody", tmp_path / "src")
    return tmp_path / "src" / "manybody"


def digests_now():
    """Of a script that trains, for two architectures, and of one that draws."""
    digests._read.cache_clear()
    digest = digests.code_digest.__wrapped__  # not what was read before an edit
    return {
        "bert": digest(SCRIPTS / "train_model.py", ("manybody.models.bert.network",)),
        "gpt": digest(SCRIPTS / "train_model.py", ("manybody.models.gpt.network",)),
        "figure": digest(SCRIPTS / "plot_figure.py", (), True),
    }


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        ("models/bert/network.py", "\nimport ", "\nSIZE = 3\nimport ", {"bert"}),
        ("training/loop.py", "\nimport ", "\n# a comment\nimport ", set()),
        ("training/loop.py", '"""', '"""Other words. ', set()),
        ("plotting/style.py", "\nimport ", "\nEXTRA = 1\nimport ", {"figure"}),
    ],
)
def test_an_edit_changes_the_digest_of_what_imports_it(tree, path, old, new, changed):
    """Docstrings and comments do not count, and plots count for figures only."""
    before = digests_now()
    text = (tree / path).read_text()
    assert old in text
    (tree / path).write_text(text.replace(old, new, 1))
    after = digests_now()
    assert {name for name in after if after[name] != before[name]} == changed


JOBS = {  # script: modules that its rule names besides
    "collect_corpus.py": (),
    "train_tokenizer.py": (),
    "encode_sequences.py": (),
    "measure_overlap.py": (),
    "measure_ngrams.py": (),
    "train_model.py": ("manybody.models.factored", "manybody.models.factored.network"),
    "sample_clones.py": ("manybody.models.bert", "manybody.models.bert.network"),
    "evaluate_model.py": ("manybody.models.gpt", "manybody.models.gpt.network"),
    "write_scorecard.py": (),
}
IMPORT_ALL = """
import importlib, json, sys
loaded = {}
for script, closure in json.load(sys.stdin).items():
    for name in [name for name in sys.modules if name.split(".")[0] == "manybody"]:
        del sys.modules[name]
    for name in closure:
        importlib.import_module(name)
    loaded[script] = [name for name in sys.modules if name.split(".")[0] == "manybody"]
print(json.dumps(loaded))
"""


@pytest.fixture(scope="module")
def closures():
    """The static closure of each script, and what importing all of it loads of the package.

    One process for all, in which libraries are loaded once and the package anew each time.
    """
    static = {
        script: digests.import_closure(SCRIPTS / script, modules)
        for script, modules in JOBS.items()
    }
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        input=json.dumps(static),
        env={"PYTHONPATH": str(ROOT / "workflow" / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = json.loads(done.stdout)
    return {script: (set(static[script]), set(loaded[script])) for script in JOBS}


@pytest.mark.long
@pytest.mark.parametrize("script", JOBS)
def test_the_closure_is_what_is_really_imported(closures, script):
    static, loaded = closures[script]
    assert static <= loaded
    assert loaded - static <= digests.SILENT
