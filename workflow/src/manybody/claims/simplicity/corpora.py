"""What the headline reads and compares: a student on each of several corpora."""

from collections.abc import Sequence
from typing import NamedTuple

from manybody.claims.simplicity import comparison
from manybody.claims.simplicity.evaluated import Evaluated, read_evaluated, read_student


class Corpus(NamedTuple):
    """A student on one corpus, the corpus's part of the block, and the kinds compared on it."""

    student: Evaluated
    part: dict
    compared: list[comparison.Comparison]

    @property
    def name(self) -> str:
        return self.student.about["source"]


def read(files, block: dict, context: dict) -> list[Corpus]:
    """What is compared on each of the block's `corpora`, from the files of the rule."""
    return [
        compare(
            read_student(files, part, context),
            part,
            read_evaluated(files, part["generators"], context),
        )
        for part in block["corpora"]
    ]


def compare(
    student: Evaluated,
    part: dict,
    generators: Sequence[Evaluated],
    bootstraps: int = comparison.BOOTSTRAPS,
) -> Corpus:
    """Decides every pair of kinds that a part of the block compares."""
    pairs = [(pair["late"], pair["early"]) for pair in part["comparisons"]]
    figure = f"headline, {student.about['source']}"
    given = figure, student.losses, student.targets, generators
    return Corpus(student, part, comparison.compare(*given, part["test"], pairs, bootstraps))
