"""The scorecard: every claim of every figure, with what was measured."""

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from manybody.claims.statements import statement
from manybody.files.atomic import ArtifactError, atomic, write_json

COLUMNS = ["claim", "kind", "value", "standard_error", "expected", "tolerance", "holds"]
GATES = ("exact", "statistical")
ANSWERS = {
    "paper": ("yes", "no", "undecided", "not-run"),
    "exact": ("confirmed", "consistent", "contradicted"),
    "statistical": ("confirmed", "consistent", "contradicted"),
}

PREAMBLE = """# Scorecard

**yes** and **no** have evidence of 95 %; **undecided**: the data cannot tell. One answer stands for
several comparisons: **yes** if all say so, **no** if one does. The number is that of the comparison
that is nearest to another answer, or the first with that answer. Gates compare our own numbers with
what they must be; one that is contradicted is a fault, and the run ends with an error. All rows are
in `claims/{paper}/{figure}.csv` and, folded, in `scorecard.html`.
"""


def read_claims(path: str | Path) -> list[dict]:
    """The claims of one figure. `ArtifactError` names a file that is not such a table."""
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
    """Writes one page (Markdown) on the claims in `paths` ({paper}/{figure}.csv).

    A line for each claim of a paper, with the verdict of the rows that decide it, and a line for
    the gates of each figure.
    """
    with atomic(out) as temporary:
        temporary.write_text("\n".join(_first_page(_read(paths))) + "\n", encoding="utf-8")


def write_page(paths: Iterable[str | Path], out: str | Path) -> None:
    """Writes the same as an HTML page, with all rows of each figure folded below it."""
    from markdown_it import MarkdownIt

    render = MarkdownIt("js-default").render
    found = _read(paths)
    parts = [render("\n".join(_first_page(found)))]
    for (paper, figure), rows in found.items():
        title = f"{paper} {figure}: {len(rows)} rows"
        table = render("\n".join(_table(rows)))
        parts.append(f"<details><summary>{title}</summary>\n{table}</details>\n")
    with atomic(out) as temporary:
        temporary.write_text(PAGE.format(body="".join(parts)), encoding="utf-8")


def _read(paths: Iterable[str | Path]) -> dict[tuple[str, str], list[dict]]:
    """Rows of each (paper, figure), sorted."""
    named = {(Path(path).parent.name, Path(path).stem): path for path in paths}
    return {key: read_claims(named[key]) for key in sorted(named)}


def _first_page(found: dict[tuple[str, str], list[dict]]) -> list[str]:
    lines = [PREAMBLE, "| figure | claim | verdict | number |", "| --- | --- | --- | --- |"]
    for (paper, figure), rows in found.items():
        name = f"{paper} {figure}"
        groups: dict[str, list[dict]] = {}
        for row in rows:
            if row["kind"] not in GATES:
                groups.setdefault(statement(paper, figure, row["claim"]), []).append(row)
        for sentence, group in groups.items():
            cells = [name, sentence, *_verdict(group)]
            lines.append("| " + " | ".join(map(_cell, cells)) + " |")
        held = [row["holds"] for row in rows if row["kind"] in GATES]
        if held:
            answers = [f"{held.count(one)} {one}" for one in ANSWERS["exact"]]
            counted = f"{len(held)} numbers against what they must be"
            lines.append(f"| {name} | {counted} | {', '.join(answers)} | |")
    return lines


def _verdict(rows: list[dict]) -> tuple[str, str]:
    """The answer that rows give together, and the number of the one that it hangs on."""
    run = [row for row in rows if row["holds"] != "not-run"]
    if not run:
        return "not run", rows[0]["claim"].rpartition("[")[2].rstrip("]")
    answers = [row["holds"] for row in run]
    answer = next(one for one in ("no", "undecided", "yes") if one in answers)
    deciding = [row for row in run if row["holds"] == answer]
    row = min(deciding, key=_certainty) if answer == "yes" else deciding[0]
    counts = [f"{answers.count(one)} {one}" for one in ("yes", "undecided", "no")]
    mixed = "" if len(deciding) == len(run) else f" ({', '.join(counts)})"
    return f"**{answer}**{mixed}", f"{_measured(row)}: {row['claim']}"


def _certainty(row: dict) -> float:
    """By how many standard errors a value differs from 0."""
    error = float(row["standard_error"] or 0)
    return abs(float(row["value"])) / error if error else float("inf")


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


def _table(rows: list[dict]) -> list[str]:
    lines = ["| claim | holds | value | expected | kind |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        value = _measured(row)
        expected = row["expected"]
        if expected and row["tolerance"]:
            expected += f" (by {_number(row['tolerance'], 2)})" if expected[0] in "<>" else ""
            expected += "" if expected[0] in "<>" else f" ± {_number(row['tolerance'], 2)}"
        cells = [row["claim"], f"**{row['holds']}**", value, expected, row["kind"]]
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return lines


def _measured(row: dict) -> str:
    """A row's value, rounded to two digits of its standard error, as far as it has them."""
    error = float(row["standard_error"] or 0)
    if not row["value"] or not 0 < error < math.inf:
        return _number(row["value"])
    places = 1 - math.floor(math.log10(error))
    value, error = (round(number, places) for number in (float(row["value"]), error))
    return f"{value:.{max(0, places)}f} ± {error:.{max(0, places)}f}"


def _number(text: str, digits: int = 4) -> str:
    """A shorter form for reading; empty for what was not measured."""
    return f"{float(text):.{digits}g}" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
