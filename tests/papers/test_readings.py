"""Tables of theory as figures read them."""

import math

import pytest

from manybody.papers import readings


def test_crossings_are_read_from_straight_lines():
    assert readings.first_crossing([0, 1, 2, 3], [0, 0.4, 0.6, 0.1], 0.5) == pytest.approx(1.5)
    assert math.isnan(readings.first_crossing([0, 1], [0, 0.4], 0.5))
    assert readings.first_crossing([2, 3], [0.7, 0.9], 0.5) == 2


def test_means_and_medians_of_runs_have_errors():
    found = readings.mean([1.0, 2.0, 6.0])
    assert found == (3.0, pytest.approx((7 / 3) ** 0.5), 3)
    middle = readings.median([1.0, 2.0, 6.0])
    assert middle.value == 2.0
    assert middle.error / found.error == pytest.approx(1.2533, rel=1e-3)
    assert math.isnan(readings.mean([1.0]).error)


def test_an_entry_s_departure_names_the_key():
    assert readings.departure({"skip": 1.0, "init": "random"}, skip=1, init="random") == ""
    assert readings.departure({"skip": 2.0}, skip=1) == "skip is 2.0, 1 is needed"
    assert readings.departure({}, activation="softmax") == "activation is None, softmax is needed"
