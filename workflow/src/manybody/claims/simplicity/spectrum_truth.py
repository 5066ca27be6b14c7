"""Claims about the order spectrum where it is known: samples of a planted Hamiltonian."""

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity.spectra import Spectra
from manybody.claims.simplicity.spectrum_truth_runs import NEAR, Truth, read_truth, share

SHARES = 0.03  # of the variance
ROUNDING = 1e-10  # share of the variance that double precision may leave where W_d vanishes
PULL = 3.0  # standard errors


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return verdicts.table(claims(read_truth(files, block, context)))


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
