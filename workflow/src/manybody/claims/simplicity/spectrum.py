"""Claims about the orders that generators and students use along training."""

import math

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity.spectra import Spectra, read

VANISHES = 1e-9  # share of M_1 that single precision may leave
ALIKE = 0.05  # nats per token: a loss this near to that of all orders counts as the same


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    roles = ("generators", "students", "laws")
    parts = {role: read(files, block.get(role, []), context) for role in roles}
    rows = [row for one in [*parts["generators"], *parts["students"]] for row in vanishing(one)]
    rows += [row for one in parts["students"] for row in half_times(one)]
    rows += [row for one in parts["laws"] for row in by_law(one)]
    rows += [row for one in parts["students"] for row in losses(one)]
    return verdicts.table(rows)


def vanishing(one: Spectra) -> list[dict]:
    """M_k = 0 for a model of order k or less."""
    return [
        verdicts.identity(
            f"spectrum: M_{k} / M_1 of {one.about['model']} ({one.label}), seed {seed}, is zero",
            one.end(seed, "M", k)["value"] / one.end(seed, "M", 1)["value"],
            0.0,
            VANISHES,
        )
        for k in one.orders
        if one.order and k >= one.order
        for seed in one.runs
    ]


def half_times(one: Spectra) -> list[dict]:
    """Each order is learned before the next, seed by seed."""
    rows = []
    for low, high in zip(one.orders, one.orders[1:], strict=False):
        pairs = [(one.half_time(seed, low), one.half_time(seed, high)) for seed in one.runs]
        later = [math.log(late.step / early.step) for early, late in pairs]
        # All runs are measured in the same contexts, so that their errors are not averaged out.
        errors = [math.hypot(early.error, late.error) for early, late in pairs]
        claim = (
            f"spectrum, {one.short}: M_{low} comes to half its end before M_{high} "
            f"(log of the ratio of steps, {len(pairs)} runs)"
        )
        rows.append(verdicts.positive(claim, later, max(errors)))
    return rows


def by_law(one: Spectra) -> list[dict]:
    """The same by another reference law, for one run, by the error of its contexts."""
    rows = []
    for low, high in zip(one.orders, one.orders[1:], strict=False):
        seed = next(iter(one.runs))
        early, late = (one.half_time(seed, k) for k in (low, high))
        claim = f"spectrum, {one.short}: M_{low} comes to half its end before M_{high}"
        error = math.hypot(early.error, late.error)
        rows.append(verdicts.gap(claim, math.log(late.step / early.step), error))
    return rows


def losses(one: Spectra) -> list[dict]:
    """Which orders matter to the loss."""
    seed = next(iter(one.runs))
    found = one.excess(seed).set_index("order")
    if not {1, 2} <= set(found.index):
        return []
    pairs, triples = found.loc[1], found.loc[2]
    return [
        verdicts.gap(
            f"spectrum, {one.short}: pairs alone miss some of the loss of all orders",
            pairs["value"],
            pairs["se"],
        ),
        verdicts.within(
            f"spectrum, {one.short}: orders up to 3 have the loss of all orders",
            triples["value"],
            triples["se"],
            0.0,
            ALIKE,
        ),
    ]
