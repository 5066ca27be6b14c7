"""Draws places at which to plant a bug, from the numerical statements of all modules.

    python tests/planted/draw.py SEED COUNT > bugs.json

Each is one change to one expression: a sign, a factor, an index, an axis, a seed, a split or a
bound. At most two lie in one module. `run.py` plants them one by one.
"""

import ast
import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "workflow" / "src" / "manybody"
MOST = 2  # bugs in one module
SPLITS = {"train": "test", "test": "train", "validation": "train"}
OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
BOUNDS = {ast.Lt: ">", ast.Gt: "<", ast.LtE: "<", ast.GtE: ">"}


class Sites(ast.NodeVisitor):
    """Finds (start, stop, new text, what) of every change that one module's source allows."""

    def __init__(self, text: str):
        self.text, self.found = text, []
        starts = [0]
        for line in text.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self.visit(ast.parse(text))

    def _place(self, node: ast.AST) -> tuple[int, int]:
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _add(self, node: ast.AST, new: str, what: str) -> None:
        self.found.append((*self._place(node), new, what))

    def _between(self, left: ast.AST, right: ast.AST, new: str, what: str) -> None:
        """Replaces the operator that stands between two operands."""
        start, stop = self._place(left)[1], self._place(right)[0]
        gap = self.text.encode()[start:stop].decode()
        for old in ("//", "**", "<=", ">=", "+", "-", "*", "/", "<", ">"):
            if old in gap:
                changed = gap.replace(old, new, 1)
                self.found.append((start, stop, changed, what))
                return

    def visit_BinOp(self, node):
        if type(node.op) in OPERATORS and not any(map(_is_text, (node.left, node.right))):
            what = "sign" if isinstance(node.op, ast.Add | ast.Sub) else "factor"
            self._between(node.left, node.right, OPERATORS[type(node.op)], what)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            start, stop = self._place(node)
            inner = ast.get_source_segment(self.text, node.operand)
            self.found.append((start, stop, inner, "sign"))
        self.generic_visit(node)

    def visit_Compare(self, node):
        if len(node.ops) == 1 and type(node.ops[0]) in BOUNDS:
            self._between(node.left, node.comparators[0], BOUNDS[type(node.ops[0])], "bound")
        self.generic_visit(node)

    def visit_Subscript(self, node):
        if isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
            self._add(node.slice, str(node.slice.value + 1), "index")
        elif isinstance(node.slice, ast.Constant) and node.slice.value in SPLITS:
            self._add(node.slice, repr(SPLITS[node.slice.value]), "split")
        self.generic_visit(node)

    def visit_Call(self, node):
        for keyword in node.keywords:
            value = keyword.value
            if keyword.arg == "axis" and isinstance(value, ast.Constant) and _number(value):
                self._add(value, "1" if value.value == 0 else "0", "axis")
            elif keyword.arg in ("seed", "init_seed") and not isinstance(value, ast.Constant):
                self._add(value, "0", "seed")
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, float) and node.value not in (0.0,):
            self._add(node, repr(2 * node.value), "factor")

    def visit_JoinedStr(self, node):
        """Text is no number."""

    def visit_Raise(self, node):
        """Nor is a message."""


def _is_text(node: ast.AST) -> bool:
    """Whether an operand is text or a path, or a list: those are joined, not added or divided."""
    words = isinstance(node, ast.Constant | ast.JoinedStr) and not _number(node)
    return words or isinstance(node, ast.List) or "Path" in ast.dump(node)


def _number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def draw(seed: int, count: int) -> list[dict]:
    random_ = random.Random(seed)
    modules = sorted(PACKAGE.rglob("*.py"))
    sites = {module: Sites(module.read_text()).found for module in modules}
    slots = [module for module, found in sites.items() for _ in range(min(MOST, len(found)))]
    chosen: list[dict] = []
    for module in random_.sample(slots, len(slots)):
        mine = [bug for bug in chosen if bug["file"] == str(module.relative_to(ROOT))]
        taken = [(bug["start"], bug["stop"]) for bug in mine]
        kinds = sorted({site[3] for site in sites[module]} - {bug["what"] for bug in mine})
        if not kinds:
            continue
        what = random_.choice(kinds)
        start, stop, new, _ = random_.choice([site for site in sites[module] if site[3] == what])
        if (start, stop) in taken:
            continue
        source = module.read_bytes()
        line = source[:start].count(b"\n") + 1
        chosen.append(
            {
                "file": str(module.relative_to(ROOT)),
                "line": line,
                "what": what,
                "start": start,
                "stop": stop,
                "old": source[start:stop].decode(),
                "new": new,
                "text": source.decode().splitlines()[line - 1].strip(),
            }
        )
        if len(chosen) == count:
            break
    return chosen


if __name__ == "__main__":
    json.dump(draw(int(sys.argv[1]), int(sys.argv[2])), sys.stdout, indent=1)
