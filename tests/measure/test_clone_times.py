"""Losses on clones of a code law, which follow from a student's half-logits."""

import numpy as np
import pytest
from enumerated import all_states

from manybody.data import code
from manybody.measure.clone_times import clone_losses

GROUPS = [
    {"order": 3, "count": 1, "information": 0.2},
    {"order": 2, "count": 1, "information": 0.1},
]
LAW = {"kind": "code", "length": 6, "groups": GROUPS, "seed": 0}


def logs_of(law, shares):
    """Log conditionals (2^L, L, 2) of a student that has these shares of each coupling."""
    student = code.CodeLaw(law.sites, shares * law.couplings, law.length)
    return student.log_conditionals(all_states(2, law.length))


@pytest.mark.parametrize("keep", [None, [2], [3]])
@pytest.mark.parametrize("scale", [0.25, 1.0])
def test_losses_on_clones_are_those_of_all_states(keep, scale):
    law, clone = code.of(LAW), code.of(LAW | {"keep": keep, "scale": scale})
    shares = np.array([[0.0, 0.0], [0.4, 0.9], [1.3, 1.0]])
    states = all_states(2, law.length)
    weights = np.exp(clone.log_probability(states))
    expected = [
        -weights @ np.take_along_axis(logs_of(law, row), states[:, :, None], 2)[:, :, 0].mean(1)
        for row in shares
    ]
    found = clone_losses(law, clone.means, shares)
    np.testing.assert_allclose(found, expected, atol=1e-12)
