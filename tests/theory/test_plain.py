"""Errors of prediction by plain Monte Carlo against the variance of the outputs."""

import numpy as np

from manybody.theory.multi_index import channel, plain
from manybody.theory.multi_index.samples import Setting

SOFTMAX = Setting(1.0)


def test_a_student_that_knows_nothing_is_off_by_the_variance_of_the_outputs():
    plug_in, least = plain.errors((0, 0), SOFTMAX, 2**16, 2)
    z = np.random.default_rng(3).standard_normal((2**17, 2, 2))
    y = channel.outputs(channel.index(z, 1.0))
    # omega = 0 puts 1/2 everywhere; the posterior mean is E y.
    assert abs(plug_in.value - ((y - 0.5) ** 2).sum((1, 2)).mean()) < 4 * plug_in.error
    assert abs(least.value - y.var(axis=0).sum()) < 4 * least.error
    assert plain.errors((1, 1), SOFTMAX, 64, 2)[1].value == 0
