"""The registry of sources: each kind is a class of keys and a module, and in no other place."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import child
import pytest

from manybody.data import kinds
from manybody.data.options import Shares
from manybody.io.code_digest import import_closure

WORKFLOW = Path(__file__).resolve().parents[2] / "workflow"
PACKAGE = WORKFLOW / "src" / "manybody"
HEAVY = "numba", "numpy", "scipy", "torch", "tokenizers", "matplotlib"


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_a_kind_is_its_options_and_a_module(kind):
    options = kinds.KINDS[kind]
    assert get_args(options.model_fields["kind"].annotation) == (kind,)
    assert find_spec(options.module)
    rules = (WORKFLOW / "rules" / "sequences.smk").read_text(encoding="utf-8")
    assert f"\nrule {options.made_by}:" in rules


def test_options_load_nothing_heavy():
    code = f"""
import sys
from manybody.data import kinds
from manybody.config import corpora
print(*[name for name in {HEAVY} if name in sys.modules])
"""
    assert child.run("-c", code).split() == []


@pytest.mark.parametrize(
    "script", sorted((WORKFLOW / "scripts").glob("*.py")), ids=lambda script: script.stem
)
def test_options_are_in_the_digest_of_no_stage(script):
    closure = import_closure(script, tuple(options.module for options in kinds.KINDS.values()))
    names = [name for name in closure if name.startswith(("manybody.data.options", kinds.__name__))]
    assert not names


def test_no_other_room_tells_sources_apart_by_their_kind():
    """None compares a `kind` with one of the registry; figures may say which sources they draw."""
    found = []
    for room in ("config", "pipeline", "measure", "training", "report"):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                parts = list(ast.walk(node)) if isinstance(node, ast.Compare) else []
                names = {getattr(part, key, "") for part in parts for key in ("id", "attr")}
                values = [part.value for part in parts if isinstance(part, ast.Constant)]
                if "kind" in names and kinds.KINDS.keys() & set(values):
                    found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert [place for place in found if "figures" not in place] == []


def test_no_rule_names_a_kind():
    named = "|".join(sorted(kinds.KINDS))
    for path in sorted((WORKFLOW / "rules").glob("*.smk")):
        found = re.findall(rf'"kind"\]? ?[=,].*"(?:{named})"', path.read_text(encoding="utf-8"))
        assert not found, path.name


@pytest.mark.parametrize(("more", "refused"), [(5e-10, 0), (1.5e-9, 1)])
def test_shares_miss_a_sum_of_1_by_rounding_alone(more, refused):
    assert len([*Shares(train=0.9, validation=0.05, test=0.05 + more).problems()]) == refused
