"""The scorecard: every claim of every figure, with what was measured."""

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from manybody.io.atomic import write_text
from manybody.papers.claims import Claim, read, written

ENDING = ".claims.csv"
PREAMBLE = """# Scorecard

**yes** and **no** have evidence of 95 %; the number is that of the comparison that decides, with \
its interval. Each figure's records are in `figures/{paper}/{figure}.claims.csv`.
"""
PARTS = {False: "## What the papers claim", True: "## What was found beyond"}
HEAD = ["| figure | claim | verdict | number | because |", "| --- | --- | --- | --- | --- |"]


def gathered(paths: Iterable[str | Path]) -> dict[tuple[str, str], list[Claim]]:
    """Claims of each (paper, figure), sorted, of files {paper}/{figure}.claims.csv."""
    found = {
        (path.parent.name, path.name.removesuffix(ENDING)): read(path) for path in map(Path, paths)
    }
    return dict(sorted(found.items()))


def ranked(claims: Iterable[Claim]) -> list[Claim]:
    """Claims that say something: those with a sentence, then decided ones, then the others; of each
    figure the first ones before the next."""
    places: Counter = Counter()
    found = []
    for claim in claims:
        figure = claim.id.rpartition("/")[0]
        decided = bool(claim.sentence) or claim.verdict in ("yes", "no")
        if claim.sentence or claim.verdict != "not-run":
            found.append((not claim.sentence, not decided, places[figure], claim))
        places[figure] += 1
    return [claim for *_, claim in sorted(found, key=lambda one: one[:3])]


def answers(claims: Iterable[Claim]) -> list[str]:
    """Three sentences of what was found: those that claims carry, then verdicts."""
    return [
        claim.sentence or f"{claim.statement}: {claim.verdict} ({claim.because})."
        for claim in ranked(claims)[:3]
    ]


def found_in(files: Iterable[str]) -> list[str]:
    """The `answers` of the figures whose claims are among a run's files."""
    found = gathered(file for file in files if file.endswith(ENDING))
    return answers(claim for claims in found.values() for claim in claims)


def write(paths: Iterable[str | Path], out: str | Path) -> None:
    """Writes a page (Markdown), a line a claim in `paths`: the papers' first, then those beyond."""
    found = gathered(paths)
    lines = [PREAMBLE]
    for beyond, title in PARTS.items():
        rows = [
            _line(paper, figure, claim)
            for (paper, figure), claims in found.items()
            for claim in claims
            if beyond != bool(claim.reference)
        ]
        if rows:
            lines += [title, "", *HEAD, *rows, ""]
    write_text(out, "\n".join(lines))


def _line(paper: str, figure: str, claim: Claim) -> str:
    verdict = claim.verdict if claim.verdict == "not-run" else f"**{claim.verdict}**"
    cells = [f"{paper} {figure}", claim.cited, verdict, number(claim), claim.because]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def number(claim: Claim) -> str:
    """The value with its interval; empty where nothing was run."""
    return written(claim.value, claim.low, claim.high) if math.isfinite(claim.value) else ""
