"""Claims of section 3.1: gradient flow of two layers, by equations and by their closed form.

Each claim about growth follows what (14) predicts there.
"""

import math

import numpy as np
import pandas as pd

from manybody.claims import verdicts
from manybody.claims.reading import Table
from manybody.io import tables

GRADIENTS = 1e-8  # per unit time: flow against numerical derivatives
CLOSED_FORM = 1e-8  # ODE against (13)
RISE = 1e-8  # relative step of |B| that the integrator leaves undecided
LEFT = 1e-4  # of |B(0)|: where less is left, |B| is not known so well
DECAY = 1e-3  # of |B|'s rate, relative to the weight decay
LIMIT = 1e-6  # of a against (C + decay)^-1 h
RATE = 1e-4  # measured rate of growth against (14), per unit time
QUIET = 1e-6  # rate up to which (14) predicts no growth; change of loss that counts as none
SEEN = 0.1  # |B| at the end by (14) from which its growth must show in the loss
GROWN = 10  # |B| / |B(0)| that counts as growth
NOISE = 4.0  # standard errors
ORDER = (4.0, 0.2)  # of the deviation from (13) in the scale of B(0), and its tolerance


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return claims(Table(*tables.read_theory(files["theory"][0])))


def claims(flow: Table) -> pd.DataFrame:
    """Every claim about one table."""
    return verdicts.table(
        [
            *_gradient_claims(flow),
            *_closed_form_claims(flow),
            *_norm_claims(flow),
            *_control_claims(flow),
            *(row for case in flow.series("growth") for row in _growth_claims(flow, case)),
        ]
    )


def _gradient_claims(flow: Table) -> list[dict]:
    return [
        verdicts.identity(
            f"3.1: the flow (9) of {kind.lower()} moments is minus the numerical derivative of the "
            f"loss (8)",
            flow.y("gradient error", kind).max(),
            0.0,
            GRADIENTS,
        )
        for kind in flow.series("gradient error")
    ]


def _closed_form_claims(flow: Table) -> list[dict]:
    rows = []
    for name, text in (("mode", ""), ("mode with decay", ", with weight decay")):
        apart = max(
            np.abs(flow.y(name, mode) - flow.y(f"{name} (13)", mode)).max()
            for mode in flow.series(name)
        )
        claim = f"3.1: B = 0 stays, and a follows the closed form (13){text}"
        rows.append(verdicts.identity(claim, apart, 0.0, CLOSED_FORM))
    apart = flow.y("limit", "flow") - flow.y("limit", "(C + decay)^-1 h")
    claim = "3.1: with weight decay a ends at (C + decay)^-1 h, from the largest B(0)"
    rows.append(verdicts.identity(claim, np.abs(apart).max(), 0.0, LIMIT))
    found = np.log(flow.get("small deviation", "")[["x", "y"]].to_numpy())
    slope = (found[-1, 1] - found[0, 1]) / (found[-1, 0] - found[0, 0])
    claim = "3.1: the deviation from (13) grows like the fourth power of a small B(0)"
    return [*rows, verdicts.identity(claim, slope, *ORDER)]


def _norm_claims(flow: Table) -> list[dict]:
    """The loss that B adds for Gaussian data is never negative, so that |B| exp(decay t) falls."""
    decay, rises = flow.entry["decay"], {"norm": [], "norm with decay": []}
    for name, found in rises.items():
        for scale in flow.series(name):
            curve = flow.get(name, scale)
            curve = curve[curve["y"] > LEFT * curve["y"].iloc[0]]
            steps = np.diff(np.log(curve["y"]))
            if name == "norm with decay":
                steps = steps + decay * np.diff(curve["x"])
            found.append(steps.max())
    late = flow.get("late norm", flow.series("late norm")[0])
    (first, last), (start, end) = late["x"].iloc[[0, -1]], late["y"].iloc[[0, -1]]
    slope = math.log(end / start) / (last - first)
    return [
        verdicts.identity(
            "3.1: Gaussian data, no weight decay: |B| never grows (largest relative step)",
            max(0.0, *rises["norm"]),
            0.0,
            RISE,
        ),
        verdicts.identity(
            "3.1: Gaussian data, with weight decay: |B| falls at least as fast as exp(-decay t)",
            max(0.0, *rises["norm with decay"]),
            0.0,
            RISE,
        ),
        verdicts.identity(
            "3.1: Gaussian data, with weight decay: late rate of log |B| is minus the decay",
            slope,
            -decay,
            DECAY * decay,
        ),
    ]


def _control_claims(flow: Table) -> list[dict]:
    exact = np.abs(flow.y("rate", "Gaussian")).max()
    found = flow.get("noise", "Gaussian, sampled")
    worst = (found["y"] / found["y_err"]).abs().max()
    rates = np.abs(flow.y("rate", "Gaussian, sampled")).max()
    holds = "yes" if worst < NOISE else "no"
    return [
        verdicts.identity(
            "3.1: Gaussian control: largest |rate| of (14), exact moments", exact, 0.0, QUIET
        ),
        verdicts.row(
            f"3.1: Gaussian control, {flow.entry['samples']} samples: largest |entry of T| in "
            f"standard errors (largest |rate| {rates:.2g})",
            "statistical",
            holds,
            worst,
            1.0,
            0,
            NOISE,
        ),
    ]


def _growth_claims(flow: Table, case: str) -> list[dict]:
    """Rate, direction and loss as the sign of the top rate (14) says, whatever it is."""
    top = flow.y("rate", case).max()
    (begin, end), (first, last) = (
        flow.get("fastest mode", case)[axis].iloc[[0, -1]] for axis in "xy"
    )
    rate = math.log(last / first) / (end - begin)
    grows = top > QUIET
    found = [
        verdicts.row(
            f"3.1, {case}: the top rate (14) is {top:.3g}, and the fastest mode of B "
            f"{'grows' if grows else 'does not grow'}",
            "exact",
            "yes" if (rate > QUIET) == grows else "no",
            rate,
            0.0,
            "> 0" if grows else "<= 0",
            QUIET,
        ),
        verdicts.identity(f"3.1, {case}: measured rate of the fastest mode", rate, top, RATE),
    ]
    norms, losses = flow.y("growth", case), flow.y("loss", case)
    ratio, seen = norms.max() / norms[0], flow.y("linear law", case)[-1] > SEEN
    if not grows:
        text = f"3.1, {case}: |B| and the loss stay where they were"
        return [
            *found,
            verdicts.identity(f"{text}: largest |B| / |B(0)|", ratio, 1.0, RISE),
            verdicts.identity(f"{text}: change of the loss", losses[-1] - losses[0], 0.0, QUIET),
        ]
    if not seen:  # (14) keeps |B| below SEEN to the end
        return found
    text = f"3.1, {case}: B leaves 0 and the loss falls below the best linear one"
    fall = losses[-1] - flow.y("best linear", case)[0]
    answers = ("yes" if ratio > GROWN else "no", "yes" if fall < -QUIET else "no")
    return [
        *found,
        verdicts.row(f"{text}: |B| / |B(0)|", "exact", answers[0], ratio, 0.0, f"> {GROWN}", 0.0),
        verdicts.row(f"{text}: difference", "exact", answers[1], fall, 0.0, "< 0", QUIET),
    ]
