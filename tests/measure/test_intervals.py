"""Means over runs, and their errors."""

import math

import pytest

from manybody.measure import intervals


def test_means_of_runs_have_errors():
    found = intervals.mean([1.0, 2.0, 6.0])
    assert found == (3.0, pytest.approx((7 / 3) ** 0.5), 3)
    assert math.isnan(intervals.mean([1.0]).error)
