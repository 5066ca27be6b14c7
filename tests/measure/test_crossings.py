"""Places on curves, and on the mean of several, that are known; errors of means."""

import math

import numpy as np
import pandas as pd
import pytest

from manybody.measure.crossings import first_crossing, last_crossing, of_mean, peak
from manybody.measure.intervals import mean


def test_crossings_are_read_from_straight_lines():
    assert first_crossing([0, 1, 2, 3], [0, 0.4, 0.6, 0.1], 0.5) == pytest.approx(1.5)
    assert math.isnan(first_crossing([0, 1], [0, 0.4], 0.5))
    assert first_crossing([2, 3], [0.7, 0.9], 0.5) == 2


def test_places_on_a_curve_lie_between_its_points():
    sizes = np.array([2.0, 10, 30, 50, 100, 300])
    loss = np.exp(3 - 0.5 * np.log(sizes / 41) ** 2)
    assert peak(sizes, loss) == pytest.approx(41, rel=1e-9)
    assert math.isnan(peak(sizes, sizes))
    assert last_crossing(sizes, np.log(sizes), math.log(41)) == pytest.approx(41, rel=1e-9)
    assert math.isnan(last_crossing(sizes, sizes, 1.0))
    assert math.isnan(last_crossing(sizes, sizes, 300.0))
    found = of_mean(pd.DataFrame([loss, loss * 1.1, loss * 0.8], columns=sizes), peak)
    assert (found.value, found.runs) == (pytest.approx(41, rel=1e-9), 3)
    assert found.error == pytest.approx(0.0, abs=1e-9)


def test_the_error_of_a_place_is_that_of_realisations_drawn_again():
    """Peaks at 35 and 47: that of the mean curve lies between, with their sd over root n."""
    sizes = np.geomspace(10, 200, 60)
    places = [35.0, 35.0, 35.0, 47.0] * 4
    losses = pd.DataFrame(
        [np.exp(1 - 0.5 * np.log(sizes / place) ** 2) for place in places], columns=sizes
    )
    found = of_mean(losses, peak)
    assert found.error == pytest.approx(np.std(places) / math.sqrt(16), rel=0.15)
    assert (found.value, found.runs) == (peak(sizes, losses.mean().to_numpy()), 16)


def test_means_of_runs_have_errors():
    assert mean([1.0, 2.0, 6.0]) == (3.0, pytest.approx((7 / 3) ** 0.5), 3)
    assert math.isnan(mean([1.0]).error)
