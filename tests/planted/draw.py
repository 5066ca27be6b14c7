"""Draws places at which to plant a bug, from the numerical statements of all modules.

    python tests/planted/draw.py SEED COUNT [FOLDER ...] > bugs.json

Each is one change to one expression: a sign, a factor, an index, an axis, a seed, a split, a bound,
`and` for `or`, `all` for `any`, `abs` left out; or two inputs of a rule in each other's place. At
most two lie in one module. Folders of the package, or `rules`, confine them. `run.py` plants them
one by one.
"""

import ast
import json
import random
import re
import sys
from itertools import accumulate, pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "workflow" / "src" / "manybody"
RULES = ROOT / "workflow" / "rules"
INPUT = re.compile(r"^        (\w+)=(.+),$", re.MULTILINE)  # of a rule, on one line
MOST = 2  # bugs in one module
SPLITS = {"train": "test", "test": "train", "validation": "train"}
SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add}
FACTORS = {ast.Mult: ast.Div, ast.Div: ast.Mult}
LOGIC = {ast.And: ast.Or, ast.Or: ast.And}
QUANTIFIERS = {"all": "any", "any": "all"}
BOUNDS = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.Lt, ast.GtE: ast.Gt}


def changes(node: ast.AST):
    """(what it is, the expression that changes, what stands there then) of `node` alone."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if not _is_text(left) and not _is_text(right):
            for what, table in (("sign", SIGNS), ("factor", FACTORS)):
                if type(op) in table:
                    yield what, node, ast.BinOp(left, table[type(op)](), right)
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield "sign", node, operand
        case ast.Compare(left=left, ops=[op], comparators=right) if type(op) in BOUNDS:
            yield "bound", node, ast.Compare(left, [BOUNDS[type(op)]()], right)
        case ast.Subscript(slice=ast.Constant(value=int(place)) as slice_):
            yield "index", slice_, ast.Constant(place + 1)
        case ast.Subscript(slice=ast.Constant(value=str(split)) as slice_) if split in SPLITS:
            yield "split", slice_, ast.Constant(SPLITS[split])
        case ast.keyword(arg="axis", value=ast.Constant(value=int(axis)) as value):
            yield "axis", value, ast.Constant(int(axis == 0))
        case ast.keyword(arg="seed" | "init_seed", value=value):
            if not isinstance(value, ast.Constant):
                yield "seed", value, ast.Constant(0)
        case ast.BoolOp(op=op, values=values):
            yield "logic", node, ast.BoolOp(LOGIC[type(op)](), values)
        case ast.Call(func=ast.Name("abs"), args=[inner]):
            yield "abs", node, inner
        case ast.Call(func=ast.Name(name), args=arguments) if name in QUANTIFIERS:
            yield "quantifier", node, ast.Call(ast.Name(QUANTIFIERS[name]), arguments, [])
        case ast.Constant(value=float(factor)) if factor:
            yield "factor", node, ast.Constant(2 * factor)


def numerical(node: ast.AST):
    """All nodes below one, but for text and messages of errors."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.JoinedStr | ast.Raise):
            yield from numerical(child)


def _is_text(node: ast.AST) -> bool:
    """Whether an operand is text or a path, or a list: those are joined, not added or divided."""
    words = isinstance(node, ast.Constant | ast.JoinedStr) and not _number(node)
    return words or isinstance(node, ast.List) or "Path" in ast.dump(node)


def _number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def bugs_of(module: Path) -> list[dict]:
    """Every change that one module's source allows; `start` and `stop` count bytes."""
    source, file = module.read_bytes(), str(module.relative_to(ROOT))
    lines = source.splitlines(keepends=True)
    begins = [0, *accumulate(map(len, lines))]
    found = []
    for node in numerical(ast.parse(source)):
        for what, old, changed in changes(node):
            start = begins[old.lineno - 1] + old.col_offset
            stop = begins[old.end_lineno - 1] + old.end_col_offset
            new = ast.unparse(changed)
            bug = {
                "file": file, "line": old.lineno, "what": what, "start": start, "stop": stop,
                "old": source[start:stop].decode(),
                "new": new if isinstance(changed, ast.Constant) else f"({new})",
            }  # fmt: skip
            found.append(bug | {"text": lines[old.lineno - 1].decode().strip()})
    return found


def swaps_of(rules: Path) -> list[dict]:
    """Every pair of neighbouring inputs of a rule, of which each gets the other's files."""
    source, found = rules.read_text("utf-8"), []
    for block in re.finditer(r"^    input:\n((?:        .*\n)+)", source, re.MULTILINE):
        for one, other in pairwise(INPUT.finditer(block[1])):
            start, stop = block.start(1) + one.start(), block.start(1) + other.end()
            bug = {
                "file": str(rules.relative_to(ROOT)), "what": "swapped inputs", "text": one[0],
                "line": source.count("\n", 0, start) + 1, "old": source[start:stop],
            }  # fmt: skip
            between = block[1][one.end() : other.start()]
            bug["new"] = f"        {one[1]}={other[2]},{between}        {other[1]}={one[2]},"
            offset = len(source[:start].encode())
            bug |= {"start": offset, "stop": offset + len(bug["old"].encode())}
            found.append(bug | {"tests": ["tests/pipeline/test_wiring.py"]})
    return found


def draw(seed: int, count: int, folders: tuple[str, ...] = ()) -> list[dict]:
    """Modules in any order, a kind of change that the module has not had, any place of it."""
    random_ = random.Random(seed)
    within = [PACKAGE / one for one in folders if one != "rules"] if folders else [PACKAGE]
    modules = sorted(path for one in within for path in one.rglob("*.py"))
    modules += sorted(RULES.glob("*.smk")) if "rules" in folders or not folders else []
    modules *= MOST
    chosen: list[dict] = []
    for module in random_.sample(modules, len(modules)):
        taken = {(bug["file"], bug["what"]) for bug in chosen}
        every = swaps_of(module) if module.suffix == ".smk" else bugs_of(module)
        left = [bug for bug in every if (bug["file"], bug["what"]) not in taken]
        if left and len(chosen) < count:
            what = random_.choice(sorted({bug["what"] for bug in left}))
            chosen.append(random_.choice([bug for bug in left if bug["what"] == what]))
    return chosen


if __name__ == "__main__":
    asked = draw(int(sys.argv[1]), int(sys.argv[2]), tuple(sys.argv[3:]))
    json.dump(asked, sys.stdout, indent=1)
