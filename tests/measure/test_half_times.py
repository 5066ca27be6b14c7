"""Half-times of planted order spectra, and their errors by the choice of contexts."""

import math

import numpy as np
import pandas as pd
import pytest
import tabulated
from planted_spectra import ENDS, HALVES, STEPS, about, table

from manybody.measure.half_times import HalfTime, Spectra
from manybody.measure.spectrum import enumerated
from manybody.papers.simplicity.spectra import half_time_ratio


def one(found) -> Spectra:
    return Spectra({0: (found, about())})


@pytest.mark.parametrize("order", HALVES)
def test_half_times_are_those_planted(order):
    found = one(table()).half_time(0, order)
    assert found.step == pytest.approx(HALVES[order], rel=0.01)
    assert 0 < found.error < 0.1


@pytest.mark.long
def test_the_error_of_half_times_is_their_spread_over_contexts():
    """24 samples of contexts, on each of which all checkpoints are measured."""
    early_part, late_part = (tabulated.model(5, 3, 2, seed, causal=True) for seed in (1, 2))
    found, said = [], []
    for seed in range(24):
        tokens, tables = np.random.default_rng(seed).integers(0, 3, (48, 5)), []
        for step in (100, 400, 800):
            shares = (step / 800) ** 0.5, (step / 800) ** 2

            def logits(given, shares=shares):
                parts = zip(shares, (early_part, late_part), strict=True)
                return sum(share * part.logits(given) for share, part in parts)

            mixed = early_part._replace(logits=logits)
            measured = enumerated(mixed, tokens, mu=np.ones(3) / 3, seed=seed).table
            tables.append(measured.assign(step=step))
        mine = one(pd.concat(tables))
        early, late = (mine.half_time(0, k) for k in (1, 2))
        found.append([np.log(early.step), np.log(late.step), np.log(late.step / early.step)])
        said.append([early.error, late.error, half_time_ratio(mine, 1, 2).resolution])
    spread = np.std(found, axis=0, ddof=1)
    assert (spread > 0.005).all()
    ratio = np.sqrt(np.square(said).mean(axis=0)) / spread
    assert ((ratio > 0.7) & (ratio < 1.4)).all(), ratio


def test_the_error_of_a_mean_half_time_is_that_by_runs_and_that_by_contexts():
    halves = {0: 500.0, 1: 720.0}
    mine = Spectra({seed: (table(HALVES | {1: at}), about()) for seed, at in halves.items()})
    step, error = mine.mean_half_time(1)
    assert step == pytest.approx(600, rel=0.01)
    first, second = (mine.half_time(seed, 1) for seed in halves)
    by_runs = math.log(second.step / first.step) / 2  # of two: half of their difference
    assert error == pytest.approx(math.hypot(by_runs, max(first.error, second.error)))


@pytest.mark.parametrize("unknown", [0, 1])
def test_of_a_run_without_an_error_by_contexts_all_runs_have_none(unknown):
    drawn = np.log([500.0, 600.0, 700.0])
    mine = Spectra({seed: (table(), about()) for seed in (0, 1)})
    mine.half_time = lambda seed, _: HalfTime(600.0, drawn + (math.nan if seed == unknown else 0))
    assert math.isnan(mine.mean_half_time(1)[1])
    assert half_time_ratio(mine, 1, 2).verdict() == "undecided"


def test_a_value_that_is_too_high_early_is_no_half_time():
    found = table()
    early = (found["quantity"] == "M") & (found["order"] == 3) & found["step"].between(300, 400)
    found.loc[found.index[early][0], ["value", "se"]] = 0.6 * ENDS[3], 0.3 * ENDS[3]
    assert one(found).half_time(0, 3).step == pytest.approx(HALVES[3], rel=0.05)


def test_no_half_time_where_checkpoints_do_not_enclose_it():
    late = [step for step in STEPS if step > 1200]
    assert np.isnan(one(table(steps=late)).half_time(0, 1).step)
    assert half_time_ratio(one(table(steps=late)), 1, 3).verdict() == "undecided"
    found = table()
    found["state"] = "upper bound"
    assert np.isnan(one(found).half_time(0, 1).step)
