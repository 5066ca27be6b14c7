"""Means over runs, and their errors."""

import math

import pytest

from manybody.measure import intervals


def test_means_and_medians_of_runs_have_errors():
    found = intervals.mean([1.0, 2.0, 6.0])
    assert found == (3.0, pytest.approx((7 / 3) ** 0.5), 3)
    middle = intervals.median([1.0, 2.0, 6.0])
    assert middle.value == 2.0
    assert middle.error / found.error == pytest.approx(1.2533, rel=1e-3)
    assert math.isnan(intervals.mean([1.0]).error)
