"""Claims of figure 4: a masked student learns low orders first. Those of figures 1 and 5 too."""

import pandas as pd

from manybody.claims import labels, verdicts
from manybody.claims.simplicity import learning
from manybody.claims.simplicity.learning import Student


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return claims(learning.read(files, block, context), ("6", "7"), "fig. 4")


def claims(student: Student, numbers: tuple[str, str], figure: str) -> pd.DataFrame:
    """The claims of figure 4 or 5; `numbers` are those of its claims on times and late falls."""
    block = student.block
    steps = block["late_steps"][0], block["late_steps"][-1]
    times, falls = (f"{number} ({figure})" for number in numbers)
    found = order_claims(times, student)
    found += verdicts.late_changes(falls, student.curves, block["ladder"], student.labels, steps)
    text = f"10 ({figure}): the loss on original text falls to the end of training"
    found.append(verdicts.still_falling(text, student.curves, block["control"]))
    found += _quality_claims(student, figure)
    found += _score_claims(student, figure, steps)
    return verdicts.table([*found, _start_claim(student, figure)])


def order_claims(claim: str, student: Student) -> list[dict]:
    """Low orders saturate first, and all fall alike up to the end of the first plateau."""
    ladder, control = student.block["ladder"], student.block["control"]
    found = verdicts.ordered(claim, student.curves, ladder, student.labels)
    name = "9" if claim.startswith("6") else f"{claim.split()[0]} as 9"
    name = f"{name} {claim[claim.find('(') :]}"
    found += verdicts.overlap(name, student.curves, ladder, student.labels, control)
    return found + _order_33(f"{claim}: order 33 saturates after order 9", student)


def _order_33(claim: str, student: Student) -> list[dict]:
    """Says that the paper's n = 6 is missing or no restriction here; nothing if it is there."""
    targets = student.targets
    length = next(d["length"] for d in targets.values() if not d["original"])
    rungs = [targets[name]["generator"]["description"] for name in student.block["ladder"]]
    six = [rung for rung in rungs if labels.order(rung) == 33]
    if six and labels.bounded(six[0]):
        return []
    reason = (
        "n = 6 is not among the clones" if length >= 33 else f"n = 6 needs L >= 33, L = {length}"
    )
    return [verdicts.not_run(claim, reason)]


def _quality_claims(student: Student, figure: str) -> list[dict]:
    """Claim 11 by both controls: does the time follow the order or the generator's quality?

    The premises, which are about the generators alone, are claims of figure 4 only.
    """
    missing = {
        "stopped": "no clone of a generator stopped early",
        "wide": "no clone of a wide generator of low order",
    }
    compared, found = student.compared(figure), []
    for role, reason in missing.items():
        if role not in compared:
            text = f"11 ({figure}): at equal loss the order sets the time, {role} generator"
            found.append(verdicts.not_run(text, reason))
            continue
        if figure == "fig. 4":
            found.append(compared[role].premise)
        found.append(compared[role].claim)
    return found


def _score_claims(student: Student, figure: str, steps: tuple[int, int]) -> list[dict]:
    """Claim 12: orders of saturation and late changes again, with clones by the norm score."""
    if "norm" not in student.block:
        text = f"12 ({figure}): claims 6 and 7 hold with the norm score"
        return [verdicts.not_run(text, "no clones by the norm score")]
    claim = f"12 ({figure}), norm score"
    given = claim, student.curves, student.block["norm"], student.labels
    return verdicts.ordered(*given) + verdicts.late_changes(*given, steps)


def _start_claim(student: Student, figure: str) -> dict:
    """Section 8: clones from test sequences and from unigram noise must give the same losses."""
    if "starts" not in student.block:
        text = f"section 8 ({figure}): clones from test sequences and from unigram noise agree"
        return verdicts.not_run(text, "no clone from unigram starts")
    test, unigram = student.block["starts"]
    text = (
        f"section 8 ({figure}): clones of {student.labels[test]} from test sequences and from "
        f"unigram noise agree after {student.targets[test]['sweep']} sweeps"
    )
    differences = verdicts.loss_differences(
        student.losses, student.curves, test, unigram, student.block["control"], paired=False
    )
    return verdicts.same_losses(text, differences)
