"""Times of saturation on curves whose answers are known, at checkpoints and between them."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from manybody.measure.saturation import log_times, plateau_end, saturation

STEPS = [0, 100, 200, 400, 800]


@pytest.mark.parametrize(
    ("losses", "share", "expected"),
    [
        # Total drop 2; 5 % of it is 0.1: 0.2 left at 200, 0.09 at 400.
        ([3.0, 2.0, 1.2, 1.09, 1.0], 0.05, (400.0, 200.0)),
        ([3.0, 2.0, 1.2, 1.09, 1.0], 0.02, (800.0, 400.0)),
        ([3.0, 2.0, 1.0, 1.5, 2.5], 0.05, (200.0, 100.0)),  # a rise after the minimum
        ([3.0, 1.05, 1.5, 1.2, 1.0], 0.05, (800.0, 400.0)),  # comes near and leaves again
        # The share itself has not saturated (in binary fractions: drop 2, left 1/2).
        ([3.0, 2.0, 1.5, 1.25, 1.0], 0.25, (400.0, 200.0)),
        ([1.0, 1.1, 1.2, 1.3, 1.4], 0.05, (0.0, 0.0)),  # only rises
    ],
)
def test_saturation_is_the_first_checkpoint_with_less_than_the_share_left(losses, share, expected):
    assert saturation(STEPS, losses, share) == expected


def test_a_twentieth_may_be_left_where_no_share_is_said():
    assert saturation(STEPS, [3.0, 2.0, 1.2, 1.09, 1.0]) == (400.0, 200.0)


def test_two_checkpoints_have_no_saturation():
    assert all(map(math.isnan, saturation([0, 10], [2.0, 1.0])))


def test_the_plateau_ends_before_half_of_the_drop_is_made():
    """The drop is 4, and half of it is made at 200 (loss 2 < 3): not yet at 100."""
    assert plateau_end(pd.Series([5.0, 3.0, 2.0, 1.5, 1.0], STEPS)) == 100.0


@given(
    st.lists(st.integers(0, 100), min_size=3, max_size=20),
    st.integers(1, 8),
    st.integers(-50, 50),
)
def test_saturation_does_not_depend_on_the_unit_or_the_level_of_the_loss(losses, scale, level):
    steps = np.arange(len(losses))
    first = saturation(steps, losses)
    assert saturation(steps, [scale * loss + level for loss in losses]) == first
    assert first[0] <= np.argmin(losses)


def test_a_time_is_interpolated_in_its_logarithm():
    # Drop 4 to the minimum at 10000; 5 % of it is 0.2: between 1.4 (100) and 0.1 (1000) left.
    found, width = log_times([0, 100, 1000, 10000], [5.0, 2.4, 1.1, 1.0], 0.05)
    assert found == pytest.approx(math.log(100) + (1.4 - 0.2) / (1.4 - 0.1) * math.log(10))
    assert width == pytest.approx(math.log(10))


@pytest.mark.parametrize("losses", [[1.0, 1.1, 1.2], [1.0, 1.0, 1.0], [3.0, 1.0, 1.0]])
def test_a_curve_without_a_fall_after_the_first_checkpoint_has_no_time(losses):
    """Between step 0 and the first checkpoint there is no logarithm to interpolate in."""
    assert math.isnan(log_times([0, 10, 20], losses, 0.05)[0])


def test_many_curves_at_once_are_each_their_own():
    steps = np.concatenate([[0, 1, 10, 50], np.round(np.geomspace(100, 3000, 50))])

    def fall(time, rise=0.0):
        """From 6 to 1, with 5 % of the drop left at `time`; a share of `rise` comes back."""
        return 1 + 5 / (1 + (steps / time) ** 3 * 19) + rise * np.log1p(steps / 3000)

    curves = np.stack([fall(200), fall(800), fall(400, rise=1.0)]).reshape(3, 1, -1)
    together = log_times(steps, curves, 0.05)[0]
    alone = [log_times(steps, curve[0], 0.05)[0] for curve in curves]
    assert together.ravel().tolist() == pytest.approx([float(one) for one in alone])
    assert np.exp(together.ravel()[:2]).tolist() == pytest.approx([200, 800], rel=0.02)
