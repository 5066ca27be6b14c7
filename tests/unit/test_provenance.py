"""The code digest follows what a script imports, and ignores what cannot change a number."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import manybody.provenance as provenance

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "workflow" / "scripts"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the package whose files a test may edit."""
    shutil.copytree(ROOT / "workflow" / "src", tmp_path / "src")
    monkeypatch.setattr(provenance, "ROOT", tmp_path / "src")
    return tmp_path / "src" / "manybody"


def digest(*modules, script="train_model.py", plotting=False):
    provenance._imports.cache_clear()
    provenance._syntax.cache_clear()
    return provenance.code_digest(SCRIPTS / script, modules, plotting)


def test_an_edit_changes_the_digest_of_what_imports_it(tree):
    before = digest("manybody.models.bert"), digest("manybody.models.gpt")
    path = tree / "models" / "bert.py"
    path.write_text(path.read_text() + "\nSIZE = 3\n")
    after = digest("manybody.models.bert"), digest("manybody.models.gpt")
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_docstrings_and_comments_do_not_count(tree):
    before = digest("manybody.models.bert")
    path = tree / "training.py"
    path.write_text("# a comment\n" + path.read_text().replace('"""', '"""Other words. ', 1))
    assert digest("manybody.models.bert") == before


def test_plots_count_for_figures_only(tree):
    before = digest("manybody.models.bert"), digest(script="plot_figure.py", plotting=True)
    path = tree / "plotting" / "style.py"
    path.write_text(path.read_text() + "\nEXTRA = 1\n")
    after = digest("manybody.models.bert"), digest(script="plot_figure.py", plotting=True)
    assert before[0] == after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize(
    ("script", "modules", "plotting"),
    [
        ("collect_corpus.py", (), False),
        ("train_tokenizer.py", (), False),
        ("encode_sequences.py", (), False),
        ("train_model.py", ("manybody.models.factored",), False),
        ("train_model.py", ("manybody.models.gpt",), False),
        ("sample_clones.py", ("manybody.models.bert",), False),
        ("sample_clones.py", ("manybody.models.factored",), False),
        ("evaluate_model.py", ("manybody.models.bert",), False),
        ("write_scorecard.py", (), False),
    ],
)
def test_the_closure_is_what_is_really_imported(script, modules, plotting):
    """Imports everything in the static closure and looks at what the package loaded besides."""
    closure = provenance.import_closure(SCRIPTS / script, modules, plotting)
    program = (
        "import sys, importlib\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(*sorted(m for m in sys.modules if m.split('.')[0] == 'manybody'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *closure],
        env={"PYTHONPATH": str(ROOT / "workflow" / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert loaded - set(closure) <= provenance.SILENT
