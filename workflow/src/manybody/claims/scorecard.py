"""The scorecard: every claim of every figure, with what was measured."""

import csv
import math
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from manybody.claims.statements import statement
from manybody.io.atomic import ArtifactError, atomic, write_json

COLUMNS = ["claim", "kind", "value", "standard_error", "expected", "tolerance", "holds"]
GATES = ("exact", "statistical")
ANSWERS = {
    "paper": ("yes", "no", "undecided", "not-run"),
    "exact": ("confirmed", "consistent", "contradicted"),
    "statistical": ("confirmed", "consistent", "contradicted"),
}

PREAMBLE = """# Scorecard

**yes** and **no** have evidence of 95 %: all of several claims say yes, or one says no; the \
number is the one nearest to another answer. All rows: `claims/{paper}/{figure}.csv`, and in \
`index.html`.
"""
NOT_RUN = "not run"
GATES_ARE = "numbers against what they must be"


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
        temporary.write_text("\n".join(_first_page(read(paths))) + "\n", encoding="utf-8")


def read(paths: Iterable[str | Path]) -> dict[tuple[str, str], list[dict]]:
    """Rows of each (paper, figure), sorted, of files {paper}/{figure}.csv."""
    named = {(Path(path).parent.name, Path(path).stem): path for path in paths}
    return {key: read_claims(named[key]) for key in sorted(named)}


class Verdict(NamedTuple):
    """What a figure says of one statement of its paper."""

    statement: str
    answer: str  # yes, no, undecided or not run
    counts: str  # how often each answer was given, where the rows differ
    number: str  # that of the row which the answer hangs on, or why nothing was run


def verdicts(paper: str, figure: str, rows: list[dict]) -> list[Verdict]:
    """The verdict on each statement of a figure's paper, of all rows that decide it."""
    groups: dict[str, list[dict]] = {}
    for row in rows:
        if row["kind"] not in GATES:
            groups.setdefault(statement(paper, figure, row["claim"]), []).append(row)
    return [Verdict(sentence, *_verdict(group)) for sentence, group in groups.items()]


def gate_counts(rows: list[dict]) -> dict[str, int]:
    """How many gates of a figure have each answer; empty where it has none."""
    held = [row["holds"] for row in rows if row["kind"] in GATES]
    return {answer: held.count(answer) for answer in ANSWERS["exact"]} if held else {}


def _first_page(found: dict[tuple[str, str], list[dict]]) -> list[str]:
    lines = [PREAMBLE, "| figure | claim | verdict | number |", "| --- | --- | --- | --- |"]
    for paper, figures in groupby(found.items(), lambda item: item[0][0]):
        numbers_alone: dict[str, Counter] = {}
        for (_, figure), rows in figures:
            found_here = verdicts(paper, figure, rows)
            for verdict in found_here:
                answer = verdict.answer if verdict.answer == NOT_RUN else f"**{verdict.answer}**"
                answer += f" ({verdict.counts})" if verdict.counts else ""
                cells = [f"{paper} {figure}", verdict.statement, answer, verdict.number]
                lines.append("| " + " | ".join(map(_cell, cells)) + " |")
            if not (counts := Counter(gate_counts(rows))):
                continue
            if found_here:
                lines.append(_numbers(f"{paper} {figure}", counts))
            else:
                numbers_alone[figure] = counts
        if numbers_alone:
            name = f"{paper} {', '.join(numbers_alone)}"
            lines.append(_numbers(name, sum(numbers_alone.values(), Counter())))
    return lines


def _numbers(name: str, counts: Counter) -> str:
    """The line of the gates of one figure, or of those of a paper that have nothing else."""
    answers = ", ".join(f"{counts[answer]} {answer}" for answer in ANSWERS["exact"])
    return f"| {name} | {counts.total()} {GATES_ARE} | {answers} | |"


def _verdict(rows: list[dict]) -> tuple[str, str, str]:
    """The answer that rows give together, how often each was given, and the deciding number."""
    run = [row for row in rows if row["holds"] != "not-run"]
    if not run:
        return NOT_RUN, "", rows[0]["claim"].rpartition("[")[2].rstrip("]")
    answers = [row["holds"] for row in run]
    answer = next(one for one in ("no", "undecided", "yes") if one in answers)
    deciding = [row for row in run if row["holds"] == answer]
    row = min(deciding, key=_certainty) if answer == "yes" else deciding[0]
    counts = ", ".join(f"{answers.count(one)} {one}" for one in ("yes", "undecided", "no"))
    return answer, "" if len(deciding) == len(run) else counts, f"{measured(row)}: {row['claim']}"


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
            f"{len(faults)} contradicted gates; the figures and the page are written:\n"
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


def expected(row: dict) -> str:
    """What a row's value was compared with, and the tolerance."""
    text, tolerance = row["expected"], row["tolerance"]
    if not text or not tolerance:
        return text
    within = _number(tolerance, 2)
    return f"{text} (by {within})" if text[0] in "<>" else f"{text} ± {within}"


def measured(row: dict) -> str:
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
