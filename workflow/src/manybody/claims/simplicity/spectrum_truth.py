"""Claims about the order spectrum where it is known: samples of a planted Hamiltonian."""

from typing import NamedTuple

import pandas as pd

from manybody.claims import training_runs, verdicts
from manybody.claims.simplicity.spectra import Spectra, read
from manybody.files import tables

NEAR = 0.01  # nats per token above the true conditionals
SHARES = 0.03  # of the variance
ROUNDING = 1e-10  # share of the variance that double precision may leave where W_d vanishes
PULL = 3.0  # standard errors


class Truth(NamedTuple):
    """The spectra by their roles, and held-out losses above that of the true conditionals.

    losses: of the student, a row a checkpoint: step, excess. pairs_excess: that of the model of
    pairs. All are means over the same sequences, every position masked in turn.
    """

    truth: Spectra
    estimate: Spectra
    student: Spectra
    pairs: Spectra
    losses: pd.DataFrame
    pairs_excess: float

    @property
    def degrees(self) -> range:
        """Degrees of the true conditionals in the context, one less than their orders."""
        return range(1, self.truth.order)


def read_truth(files, block: dict, context: dict) -> Truth:
    """The figure's inputs, from the files of its rule."""
    named = [block[role] for role in ("truth", "estimate", "student", "pairs")]
    spectra = read(files, named, context)
    runs = dict(zip(map(tuple, context["models"]), files["models"], strict=True))
    curves = [
        training_runs.read(runs[one.about["source"], one.about["model"], one.about["seed"]])[1]
        for one in spectra
    ]
    true, student, pairs = (curves[place].sort_values("step") for place in (0, 2, 3))
    entropy = true["loss"].iloc[-1]
    losses = student.assign(excess=student["loss"] - entropy)[["step", "excess"]]
    return Truth(*spectra, losses, float(pairs["loss"].iloc[-1] - entropy))


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return verdicts.table(claims(read_truth(files, block, context)))


def share(one: Spectra, degree: int) -> float:
    """W_d / Var g at the last checkpoint of the first run."""
    return float(one.end(next(iter(one.runs)), "W", degree)["share"])


def deviation(one: Spectra, found: Truth) -> float:
    """The largest difference of a share from that of the truth."""
    return max(abs(share(one, d) - share(found.truth, d)) for d in found.degrees)


def claims(found: Truth) -> list[dict]:
    """Every claim about one table."""
    (seed,), order = found.truth.runs, found.truth.order
    length = found.truth.about["description"]["length"]
    above = max(abs(share(found.truth, d)) for d in range(order, length))
    rows = [
        verdicts.identity(
            f"spectrum, truth: the true conditionals of order {order} have no share above it",
            above,
            0.0,
            ROUNDING,
        )
    ]
    for d in found.degrees:
        true, drawn = (one.end(seed, "W", d) for one in (found.truth, found.estimate))
        pull = (drawn["value"] - true["value"]) / drawn["se"]
        rows.append(
            verdicts.row(
                f"spectrum, truth: the draws give the enumerated part of order {d + 1} "
                f"(difference in standard errors)",
                "statistical",
                "yes" if abs(pull) <= PULL else "no",
                pull,
                1.0,
                0,
                PULL,
            )
        )
    student, excess = found.student.short, float(found.losses["excess"].iloc[-1])
    rows.append(
        verdicts.bounded(
            f"spectrum, truth: loss of {student} above the truth", "<", excess, 0.0, NEAR
        )
    )
    for d in found.degrees:
        apart = share(found.student, d) - share(found.truth, d)
        claim = f"spectrum, truth: share of order {d + 1}, {student} less truth"
        rows.append(verdicts.within(claim, apart, 0.0, 0.0, SHARES))
    claim = "spectrum, truth: the shares of a model of pairs are others (largest difference)"
    return [*rows, verdicts.bounded(claim, ">", deviation(found.pairs, found), 0.0, SHARES)]
