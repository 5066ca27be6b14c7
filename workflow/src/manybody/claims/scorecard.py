"""The scorecard: every claim of every figure, with what was measured."""

import csv
from collections.abc import Iterable
from pathlib import Path

from manybody.files.atomic import ArtifactError, atomic, write_json

COLUMNS = ["claim", "kind", "value", "standard_error", "expected", "tolerance", "holds"]
GATES = ("exact", "statistical")
ANSWERS = {
    "paper": ("yes", "no", "undecided", "not-run"),
    "exact": ("confirmed", "consistent", "contradicted"),
    "statistical": ("confirmed", "consistent", "contradicted"),
}

PREAMBLE = """# Scorecard

What the figures say about each claim, at the scale at which they were run.

- `paper` rows are claims of the paper, measured here. *holds* is **yes** or **no** with evidence,
  **undecided** where the difference is within its error, or one seed has nothing to compare with,
  **not-run** with the reason in brackets. A **no** there is a result.
- `exact` rows are identities up to rounding, `statistical` rows our own values within their errors.
  They are gates: **confirmed** where the value is within the tolerance by its error,
  **consistent** where its interval reaches into the tolerance and out of it, **contradicted** where
  it lies outside, or where the value is missing or did not converge. A **contradicted** gate is a
  fault of the pipeline: the run ends with an error that names it.
- *expected*: a number, within the tolerance; or a bound (`> 0`), passed by more than the tolerance
  (three sd over seeds, or three standard errors). The rules of decision are in
  `workflow/src/manybody/claims/verdicts.py`. Losses are in nats per token, times in training steps.
- The number before a claim is that of the table of claims in the paper's specification.
"""


def read_claims(path: str | Path) -> list[dict]:
    """The rows of one figure's checks. `ArtifactError` names a file that is not such a table."""
    with Path(path).open(encoding="utf-8", newline="") as opened:
        reader = csv.DictReader(opened)
        rows = list(reader)
    if reader.fieldnames != COLUMNS:
        raise ArtifactError(f"{path} has the columns {reader.fieldnames}, expected {COLUMNS}")
    for row in rows:
        answers = ANSWERS.get(row["kind"], ())
        if row["holds"] not in answers:
            raise ArtifactError(
                f"{path}: {row['claim']!r} of kind {row['kind']!r} holds {row['holds']!r}; "
                f"expected {', '.join(answers) or f'a kind among {sorted(ANSWERS)}'}"
            )
    return rows


class ContradictedGates(RuntimeError):
    """Gates of a run are contradicted; the message names each with its file."""


def gates(paths: Iterable[str | Path]) -> list[str]:
    """Gate rows (exact or statistical) that are contradicted, as `file: claim`."""
    return [
        f"{path}: {row['claim']} (found {row['value']}, expected {row['expected']})"
        for path in sorted(map(str, paths))
        for row in read_claims(path)
        if row["holds"] == "contradicted"
    ]


def write(paths: Iterable[str | Path], out: str | Path) -> None:
    """Writes the scorecard of the checks in `paths` ({paper}/{figure}.csv) as Markdown."""
    found = {(Path(path).parent.name, Path(path).stem): read_claims(path) for path in paths}
    lines = [PREAMBLE, *_counts(found)]
    faults = gates(paths)
    if faults:
        lines += ["", "**Contradicted gates:**", "", *(f"- {_cell(fault)}" for fault in faults)]
    else:
        lines += ["", "No gate is contradicted."]
    papers = sorted({paper for paper, _ in found})
    for paper in papers:
        lines += ["", f"## {paper}"]
        for figure in sorted(figure for name, figure in found if name == paper):
            lines += ["", f"### {figure}", "", *_table(found[paper, figure])]
    with atomic(out) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def judge(paths: Iterable[str | Path], out: str | Path) -> None:
    """Writes how many gates hold, and how, to `out` (JSON).

    Raises `ContradictedGates` where one is contradicted, and writes nothing then: a run whose gates
    were not all passed has no such file.
    """
    paths = list(paths)
    faults = gates(paths)
    if faults:
        raise ContradictedGates(
            f"{len(faults)} contradicted gates; the figures and the scorecard are written:\n"
            + "\n".join(f"  {fault}" for fault in faults)
        )
    rows = [row for path in paths for row in read_claims(path) if row["kind"] in GATES]
    counts = {
        kind: {
            answer: sum(row["kind"] == kind and row["holds"] == answer for row in rows)
            for answer in ANSWERS[kind]
        }
        for kind in GATES
    }
    write_json(out, counts)


PAGE = """<!doctype html>
<meta charset="utf-8"><title>Scorecard</title>
<style>
body {{ font: 14px sans-serif; margin: 2em; max-width: 70em }}
table {{ border-collapse: collapse }}
td, th {{ border-bottom: 1px solid #ccc; padding: 0.25em 0.6em }}
td, th {{ text-align: left; vertical-align: top }}
</style>
{body}"""


def write_page(scorecard: str | Path, out: str | Path) -> None:
    """Writes a scorecard (Markdown) as an HTML page, which the report can show."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("js-default").render(Path(scorecard).read_text(encoding="utf-8"))
    with atomic(out) as temporary:
        temporary.write_text(PAGE.format(body=body), encoding="utf-8")


def _counts(found: dict) -> list[str]:
    rows = [row for rows in found.values() for row in rows]
    lines = []
    for title, kinds in (("claims of the papers", ("paper",)), ("gates", GATES)):
        answers = ANSWERS[kinds[0]]
        lines += ["", f"| {title} | " + " | ".join(answers) + " |"]
        lines.append("| --- " * (len(answers) + 1) + "|")
        for kind in kinds:
            held = [row["holds"] for row in rows if row["kind"] == kind]
            lines.append(
                f"| {kind} | " + " | ".join(str(held.count(one)) for one in answers) + " |"
            )
    return lines


def _table(rows: list[dict]) -> list[str]:
    lines = ["| claim | holds | value | expected | kind |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        value = _number(row["value"])
        if value and float(row["standard_error"] or 0):
            value += f" ± {_number(row['standard_error'], 2)}"
        expected = row["expected"]
        if expected and row["tolerance"]:
            expected += f" (by {_number(row['tolerance'], 2)})" if expected[0] in "<>" else ""
            expected += "" if expected[0] in "<>" else f" ± {_number(row['tolerance'], 2)}"
        cells = [row["claim"], f"**{row['holds']}**", value, expected, row["kind"]]
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return lines


def _number(text: str, digits: int = 4) -> str:
    """A shorter form for reading; empty for what was not measured."""
    return f"{float(text):.{digits}g}" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
