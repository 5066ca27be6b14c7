"""The list of planted bugs can be run: each has one place in the code, and tests that exist."""

import json
import re
from pathlib import Path

import pytest
import run

ROOT = Path(__file__).resolve().parents[2]
BUGS = json.loads(Path(__file__).with_name("bugs.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: Path(bug["file"]).stem)
def test_a_bug_has_one_place_and_a_test(bug):
    source = (ROOT / bug["file"]).read_bytes()
    assert run.planted(source, bug) != source
    assert bug["tests"]
    for name in bug["tests"]:
        path, _, function = name.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^def {function or 'test_'}", text, re.MULTILINE), name
