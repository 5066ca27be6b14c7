"""Config files that cannot be read, and keys that come twice: file, line and way out."""

import runpy
import shlex
import sys

import pytest
from configs import CONFIG

from manybody.config import files

TWICE = """\
base: &base {rank: 3}
models:
  n2: {<<: *base, rank: 4}
  n3: {<<: *base, <<: {bias: true}}
  n4:
    rank: 3
    training: [{steps: 4, batch: 2, steps: 5}]
    'rank': 4
'models': {}
1: one
'1': text
"""
CASES = {
    "twice": (
        TWICE,
        [
            "line 9: found the key models again, after line 2",
            "line 8: found the key models.n4.rank again, after line 6",
            "line 7: found the key models.n4.training.steps again, after line 7",
        ],
    ),
    "in what an alias repeats": ("a: &a {x: 1, x: 2}\n", ["line 1: found the key a.x again"]),
    "tab": (
        "models:\n\tn2: {}\n",
        ["line 2, column 1: found a tab; expected YAML; indent with spaces"],
    ),
    "tab at a value": (
        "results:\tresults/mine\n",
        ["line 1, column 9: found a tab; expected YAML"],
    ),
    "no value": ("a: 1\nb: {c: =}\n", ["line 2, column 8: could not determine a constructor"]),
    "a tag": ("a: !include b\n", ["line 1, column 4: could not determine a constructor"]),
    "no day": ("a: 2024-13-45\n", ["mine.yaml: month must be in 1..12"]),
    "brace": (
        "a: 1\nb: {c: [1, 2]\nd: 3\n",
        ["line 3, column 1: did not find", "brace, bracket or quote that opens in line 2"],
    ),
    "quote": ('a: "b\nc: 3\n', ["line 3, column 1: ", "quote that opens in line 1"]),
    "colon": ("a: b: c\n", ["line 1, column 5: mapping values are not", "mend it there"]),
    "JSON": ('{\n\t"results": "results/mine"\n}', []),
    "a number in base 8": (
        "sources:\n  mine: {vocabulary: 0400}\n",
        ["line 2: found sources.mine.vocabulary: 0400, which YAML reads as 256"],
    ),
    "a number in base 60, beside plain ones": (
        "a: [0, 10, -1, 0x1F, '010', 1:30]\n",
        ["line 1: found a: 1:30, which YAML reads as 90"],
    ),
    "JSON twice": ('{"a": 1,\n"a": 2}', ["line 2: found the key a again, after line 1"]),
    "no mapping": ("- a\n", ["mine.yaml: found no mapping; expected keys"]),
    "nothing": ("# a: 3\n", ["mine.yaml: found nothing; expected keys", "write {} for none"]),
    "an anchor in itself": ("a: &x\n  b: [*x]\n", ["mine.yaml: found an anchor", "its alias"]),
    "an anchor merged into itself": (
        "a: &x\n  <<: *x\n",
        ["mine.yaml: found an anchor", "its alias"],
    ),
    "control character": ("a: \x01\n", ["mine.yaml: ", "expected YAML in UTF-8"]),
    "another encoding": (
        "a: \xe9\n",
        ["mine.yaml: ", "expected YAML in UTF-8; save it as UTF-8"],
    ),
    "UTF-16": ("a\0:\0 \0001\0", ["mine.yaml: ", "expected YAML in UTF-8; save it as UTF-8"]),
    "two documents": ("a: 1\n---\nb: 2\n", ["line 2, column 1: found a second document, behind"]),
    "a space of print": ("# \xc2\xa0\na: {\xc2\xa0b: 1}\n", ["line 2: found U+00A0, a space"]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_in_a_config_file_is_said_with_its_line(tmp_path, case):
    text, expected = CASES[case]
    path = tmp_path / "mine.yaml"
    path.write_bytes(text.encode("latin-1"))
    said = files.problems([path])
    assert all(sentence.startswith(str(path)) for sentence in said)
    assert len(said) == sum(part.startswith(("line", "mine")) for part in expected)
    for part in expected:
        assert any(part in sentence for sentence in said), said


def test_the_configs_of_this_repository_have_no_such_fault():
    assert not files.problems(CONFIG.glob("*.yaml"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--configfile", "a.yaml", "b.yml", "--cores", "2"], "found b.yml, which does not exist"),
        (
            ["--configfile=a.yaml", "--configfiles", "a.yaml", "-n"],
            "found 2 times, of which snakemake takes the last; expected it once; write all behind "
            "one: --configfile a.yaml a.yaml",
        ),
        (
            ["--config", "results=a", "-n", "-C", "sources={docs: {length: 32}}"],
            "--config: found 2 times, of which snakemake takes the last; expected it once; write "
            "all behind one: --config results=a 'sources={docs: {length: 32}}'",
        ),
        (
            ["--configfile", "config/tiny.yaml"],
            f"; give {CONFIG / 'tiny.yaml'}, which is there",
        ),
        (["--configfile", "a.yaml", "fig4"], "if it is what is to be made, write -- before it"),
        (["--configfile", "a.yaml", "--", "fig4"], None),
        (
            ["--config", "results=results/a.b", "sources.docs.length=32"],
            "length=32; expected a key without dots; write --config 'sources={docs: {length: 32}}'",
        ),
        (["-n"], None),
    ],
)
def test_the_command_line_is_refused_before_snakemake_reads_it(
    tmp_path, monkeypatch, arguments, expected
):
    (tmp_path / "a.yaml").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["snakemake", *arguments])
    stopped = None
    try:
        runpy.run_path(files.__file__, run_name="__main__")
    except SystemExit as end:
        stopped = end.code
    assert stopped is None if expected is None else expected in stopped


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("--cores all --configfile a b -- advise", "--cores all --configfile a b {}"),
        ("--configfile=a advise --cores 2", "--cores 2 --configfile a {}"),
        ("advise -c 2 --config x=1", "-c 2 --config x=1 --configfile {}"),
        ("--configfile a {} -- advise", "--configfile a {}"),
    ],
)
def test_a_config_file_is_added_to_a_command(typed, expected):
    added = "my results/advised.yaml"
    arguments = [added if word == "{}" else word for word in typed.split()]
    said = files.command(arguments, added, "advise")
    assert said == f"snakemake {expected.format(shlex.quote(added))}"
