"""The code digest follows what a script imports, and ignores what cannot change a number."""

import json
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

from manybody import papers
from manybody.data.kinds import KINDS
from manybody.io import code_digest as digests
from manybody.models import ARCHITECTURES

SCRIPTS = ROOT / "workflow" / "scripts"
THEORY = ROOT / "workflow" / "src" / "manybody" / "theory"
THEORIES = [
    ".".join(path.relative_to(THEORY.parents[1]).with_suffix("").parts)
    for path in THEORY.rglob("*.py")
    if path.stem != "__init__"
]


@pytest.fixture(scope="module")
def before():
    """The digests of the package as it is."""
    return digests_now()


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the package whose files a test may edit."""
    shutil.copytree(ROOT / "workflow" / "src", tmp_path / "src")
    monkeypatch.setitem(digests.ROOTS, "manybody", tmp_path / "src")
    return tmp_path / "src" / "manybody"


OF_FIGURES = {
    "make_figure.py", "write_page.py", "write_scorecard.py", "print_advice.py", "write_families.py",
    "use_families.py",
}  # fmt: skip
FIGURES = [(paper, figure) for paper in papers.PAPERS for figure in papers.figures(paper)]


def digests_now():
    """Of every figure; of trainings of two architectures; of all stages together.

    A stage may import any architecture, any source and any theory by name.
    """
    digest = digests.code_digest.__wrapped__  # not what was read before an edit
    named = [*(kind.module for kind in KINDS.values()), *THEORIES, "manybody.training.lbfgs"]
    named += [
        name for package in ARCHITECTURES.values() for name in (package, f"{package}.network")
    ]
    stages = {
        digest(script, tuple(named))
        for script in SCRIPTS.glob("*.py")
        if script.name not in OF_FIGURES
    }
    found = {"stages": stages}
    for name in ("bert", "gpt"):
        modules = (f"manybody.models.{name}", f"manybody.models.{name}.network")
        found[name] = digest(SCRIPTS / "train_model.py", modules)
    for paper, figure in FIGURES:
        modules = (papers.module_name(paper, figure), *ARCHITECTURES.values())
        found[f"{paper}/{figure}"] = digest(SCRIPTS / "make_figure.py", modules)
    return found


EDITS = {  # file: old text, new text, jobs whose digest changes
    "an import of a network": (
        "models/bert/network.py", "\nimport ", "\nSIZE = 3\nimport ", {"bert", "stages"}
    ),
    "a comment": ("training/loop.py", "\nimport ", "\n# a comment\nimport ", set()),
    "a docstring": ("training/loop.py", '"""', '"""Other words. ', set()),
    "the style": (
        "papers/style.py", "\nimport ", "\nEXTRA = 1\nimport ", {"/".join(one) for one in FIGURES}
    ),
    "a caption": (
        "papers/potts/recovery.py", "Inverse Potts: ", "From data: ", {"potts/recovery"}
    ),
    "a claim": (
        "papers/potts/recovery.py", "SLOPE = (-1.0, 0.15)", "SLOPE = (-1.0, 0.2)",
        {"potts/recovery"},
    ),
    "a comment in a claim": (
        "papers/simplicity/fig3.py", "    return [quality", "    # one\n    return [quality",
        set(),
    ),
    "a picture": (
        "papers/potts/fig3.py", "figure = style.new(2, 3.5)", "figure = style.new(2, 3.6)",
        {"potts/fig3"},
    ),
    "a description of a figure's key": (
        "papers/potts/recovery.py", "Curve of kind recovery.", "A curve.", {"potts/recovery"}
    ),
    "a description of a source's key": (
        "data/kinds.py", "Seed of the draw.", "Other.", set()
    ),
    "a description of a model's key": (
        "models/keys.py", "What it was trained for.", "Other.", set()
    ),
    "a description of a key of the config": ("config/clones.py", 'key("', 'key("Other: ', set()),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_changes_the_digest_of_what_imports_it(before, tree, edit):
    """Docstrings and comments do not count; what is said of a figure is that figure's alone."""
    path, old, new, changed = EDITS[edit]
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
