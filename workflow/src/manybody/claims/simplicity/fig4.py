"""Claims of figure 4: a masked student learns low orders first. Those of figures 1 and 5 too."""

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity import comparison, learning
from manybody.claims.simplicity.learning import Student


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return claims(learning.read(files, block, context), ("6", "7"), "fig. 4")


def claims(student: Student, numbers: tuple[str, str], figure: str) -> pd.DataFrame:
    """The claims of figure 4 or 5; `numbers` are those of its claims on times and late falls."""
    block = student.block
    steps = block["late_steps"][0], block["late_steps"][-1]
    times, falls = (f"{number} ({figure})" for number in numbers)
    text = f"10 ({figure}): the loss on original text falls to the end of training"
    found = [
        *order_claims(times, student),
        *verdicts.late_changes(falls, student.curves, block["ladder"], student.labels, steps),
        verdicts.still_falling(text, student.curves, block["control"]),
        *_quality_claims(student, figure),
    ]
    if "norm" in block:  # claim 12: the same with clones by the norm score
        given = f"12 ({figure}), norm score", student.curves, block["norm"], student.labels
        found += [*verdicts.ordered(*given), *verdicts.late_changes(*given, steps)]
    if "chain_inits" in block:
        found.append(_start_claim(student, figure))
    return verdicts.table(found)


def order_claims(claim: str, student: Student) -> list[dict]:
    """Low orders saturate first, and all fall alike up to the end of the first plateau."""
    ladder, control = student.block["ladder"], student.block["control"]
    found = verdicts.ordered(claim, student.curves, ladder, student.labels)
    name = "9" if claim.startswith("6") else f"{claim.split()[0]} as 9"
    name = f"{name} {claim[claim.find('(') :]}"
    return found + verdicts.overlap(name, student.curves, ladder, student.labels, control)


def _quality_claims(student: Student, figure: str) -> list[dict]:
    """Claim 11 by both controls: does the time follow the order or the generator's quality?

    The premises, which are about the generators alone, are claims of figure 4 only.
    """
    missing = {
        "stopped": "no clone of a generator stopped early",
        "wide": "no clone of a wide generator of low order",
    }
    compared, found = comparison.compared(student, figure), []
    for role, reason in missing.items():
        if role not in compared:
            text = f"11 ({figure}): at equal loss the order sets the time, {role} generator"
            found.append(verdicts.not_run(text, reason))
            continue
        if figure == "fig. 4":
            found.append(compared[role].premise)
        found.append(compared[role].claim)
    return found


def _start_claim(student: Student, figure: str) -> dict:
    """Section 8: clones from test sequences and from unigram noise must give the same losses."""
    test, unigram = student.block["chain_inits"]
    text = (
        f"section 8 ({figure}): clones of {student.labels[test]} from test sequences and from "
        f"unigram noise agree after {student.targets[test]['sweep']} sweeps"
    )
    differences = verdicts.loss_differences(
        student.losses, student.curves, test, unigram, student.block["control"], paired=False
    )
    return verdicts.same_losses(text, differences)
