"""Prose from docstrings: what is kept, that nothing is imported, that digests are checked."""

import sys
from importlib import metadata

import child
import pytest
import yaml
from configs import load
from corpora import collected

from manybody.data import SourceError, pydocs

SOURCE = '''
raise SystemExit("imported")

def function(x):
    """Return the sum of all the values that were given here.

    The first paragraph of
    this text goes on over
    several lines of the docstring.

    Parameters
    ----------
    x : array
        The values whose sum is returned, in any order whatever.
    y : int, a line that is no sentence and has no full stop

    >>> function([1, 2]) + function(3) * 4
    3
    """

class Thing:
    """A thing that is found only once although written down twice."""

    async def method(self):
        """A thing that is found only once although written down twice."""
        """A string that is no docstring and that nobody wants to read."""

    def other(self):
        "short."
'''
KEPT = [
    "A thing that is found only once although written down twice.",
    "Return the sum of all the values that were given here.",
    "The first paragraph of this text goes on over several lines of the docstring.",
    "The values whose sum is returned, in any order whatever.",
]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed distribution `sample-text` with one module."""
    metadata_of = "Metadata-Version: 2.1\nName: sample-text\nVersion: 1.2\n"
    files = {
        "sample_text/__init__.py": SOURCE,
        "sample_text/tests/test_it.py": '"""This sentence in a test has to be left out."""',
        "sample_text/data.txt": "This sentence stands in no module and has to be left out.",
        "sample_text-1.2.dist-info/METADATA": metadata_of,
    }
    for name, content in files.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    record = "".join(f"{name},,\n" for name in [*files, "../bin/script.py"])
    (tmp_path / "site/sample_text-1.2.dist-info/RECORD").write_text(record)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return "sample-text"


def test_prose_is_what_the_docstrings_say_and_nothing_is_imported(package):
    assert sorted(pydocs.located_prose(package)) == KEPT
    assert "sample_text" not in sys.modules


def test_docstrings_are_found_in_every_block_that_a_statement_can_have():
    blocks = (
        "if x:\n{}else:\n{}",
        "for i in x:\n{}else:\n{}",
        "while x:\n{}",
        "with x:\n{}",
        "try:\n{}except A:\n{}else:\n{}finally:\n{}",
        "match x:\n case 1:\n{}",
        "def f():\n{}",
        "async def f():\n{}",
        "class C:\n{}",
    )
    source, count = "", 0
    for block in blocks:
        names = range(count, count + block.count("{}"))
        source += block.format(*(f'  def g():\n   """{name}"""\n' for name in names))
        count += len(names)
    assert sorted([int(text) for text in pydocs.docstrings(source.encode())]) == list(range(count))


def corpus(packages, seed):
    return pydocs.shuffled(pydocs.modules(packages), seed)


def test_the_corpus_is_deduplicated_and_shuffled_by_the_seed_alone(package):
    found = corpus({package: None}, 0)
    assert sorted(found) == KEPT
    assert corpus({package: pydocs.digest(KEPT)}, 0) == found
    orders = {tuple(pydocs.shuffled(reversed(KEPT), seed)) for seed in range(20)}
    assert len(orders) > 5
    assert tuple(found) in orders


def test_another_prose_is_refused_with_package_digests_and_way_out(package):
    with pytest.raises(SourceError) as refusal:
        corpus({package: "0" * 64}, 0)
    said = str(refusal.value)
    for part in ("sample-text 1.2", pydocs.digest(KEPT), "0" * 64, "pydocs sample-text"):
        assert part in said


def test_a_package_that_is_not_there_is_named():
    with pytest.raises(SourceError, match=r"package no-such-thing-here, .* is not installed"):
        corpus({"no-such-thing-here": None}, 0)


def test_a_file_that_does_not_parse_is_named(package, tmp_path):
    (tmp_path / "site/sample_text/__init__.py").write_text("def broken(:\n")
    with pytest.raises(SourceError, match=r"__init__.py of package sample-text cannot be read"):
        sorted(pydocs.located_prose(package))


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("one line", ["one line"]),
        ("first\n    second\n\n    third\n", ["first second", "third"]),
        ("\n    first\n      hanging\n    back", ["first", "hanging", "back"]),
        ("first\n\n\tone tab\n        eight  spaces", ["first", "one tab eight spaces"]),
        ("", []),
        ("   \n \n", []),
    ],
)
def test_paragraphs(docstring, expected):
    assert list(pydocs.paragraphs(docstring)) == expected


@pytest.mark.parametrize(
    ("paragraph", "kept"),
    [
        ("This is a sentence of eight plain words.", True),
        ("This is a sentence of `eight` words, (yes) don't stop!", True),
        ("only seven words are in this one.", False),
        ("this has no capital letter at its beginning.", False),
        ("This has no full stop at its very end", False),
        ("Here x = 3 + y ** 2 and z[0] = 4 / 5 - 6.", False),
    ],
)
def test_prose_is_mostly_words(paragraph, kept):
    assert pydocs.is_prose(paragraph) == kept


def test_the_command_prints_the_lines_for_the_config(package):
    assert yaml.safe_load(child.run("-m", "manybody.data.pydocs", package)) == {
        "seed": 0,
        "packages": {package: pydocs.digest(KEPT)},
        "sha256": pydocs.digest(corpus({package: None}, 0)),
    }


def test_the_digest_of_the_whole_corpus_is_checked(package, tmp_path):
    corpus = {
        "kind": "pydocs", "packages": {package: pydocs.digest(KEPT)}, "sha256": "1" * 64,
        "split": {"train": 0.4, "validation": 0.3, "test": 0.3},
    }  # fmt: skip
    with pytest.raises(SourceError, match=f"sha256: the prose has sha256 .* expects {'1' * 64}"):
        collected(tmp_path, corpus)
    # One module is one group; of 4 documents some seeds leave a split empty.
    corpus |= {"sha256": None, "deduplicate": False, "seed": 2}
    stored = [one for documents in collected(tmp_path, corpus).values() for one in documents]
    assert sorted(stored) == KEPT


def test_prose_of_a_locked_package_is_the_configs():
    packages = load()["corpora"]["pydocs"]["packages"]
    name = "mpmath"  # the smallest; the demo itself checks them all
    assert metadata.version(name)
    assert pydocs.digest(sorted(pydocs.located_prose(name))) == packages[name]
