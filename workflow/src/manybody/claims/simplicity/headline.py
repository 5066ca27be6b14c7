"""Claim 11 with its intervals: does the order of interaction set the time, at equal loss?"""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity import comparison
from manybody.claims.simplicity.tested import Tested, read_student, read_tested


class Corpus(NamedTuple):
    """A student on one corpus, the corpus's part of the block, and the kinds compared on it."""

    student: Tested
    part: dict
    compared: list[comparison.Comparison]

    @property
    def name(self) -> str:
        return self.student.about["source"]


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return claims(read(files, block, context))


def read(files, block: dict, context: dict) -> list[Corpus]:
    """What is compared on each of the block's `corpora`, from the files of the rule."""
    return [
        compare(
            read_student(files, part, context),
            part,
            read_tested(files, part["generators"], context),
        )
        for part in block["corpora"]
    ]


def compare(
    student: Tested,
    part: dict,
    generators: Sequence[Tested],
    bootstraps: int = comparison.BOOTSTRAPS,
) -> Corpus:
    """Decides every pair of kinds that a part of the block compares."""
    pairs = [(pair["late"], pair["early"]) for pair in part["comparisons"]]
    figure = f"headline, {student.about['source']}"
    given = figure, student.losses, student.targets, generators
    return Corpus(student, part, comparison.compare(*given, part["test"], pairs, bootstraps))


def claims(corpora: Sequence[Corpus]) -> pd.DataFrame:
    """Each pair's premise and answer; two kinds of chains of one generator share their premise."""
    found: dict[str, dict] = {}
    for corpus in corpora:
        for one in corpus.compared:
            found.setdefault(one.premise["claim"], one.premise)
            found[one.claim["claim"]] = one.claim
    rows = list(found.values())
    if len(corpora) == 1:
        rows.append(
            verdicts.not_run(
                "11 (headline): the same answer on a second corpus",
                "its text is given by path: config/headline-second.yaml",
            )
        )
    return verdicts.table(rows)
