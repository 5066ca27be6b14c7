"""L-BFGS by chunks and threads, against the two loops as textbooks have them."""

import numpy as np
import pytest

from manybody.training.descent import FIRST, minimise
from manybody.training.descent_loops import CHUNK

HISTORY = 3
SIZE = 2 * CHUNK + 5  # the last chunk is short


def quartic(vector, gradient):
    """A convex function whose second derivatives are not the scale's."""
    stiff = 1 + np.arange(len(vector)) % 7 / 4
    gradient[:] = stiff * (vector - 1) + vector**3 / 10
    return float((stiff * (vector - 1) ** 2 / 2 + vector**4 / 40).sum())


def two_loops(scale: np.ndarray, iterations: int) -> np.ndarray:
    """The path's end, every step taken whole but the first."""
    vector, gradient, pairs = np.zeros(SIZE), np.empty(SIZE), []
    quartic(vector, gradient)
    for iteration in range(iterations):
        direction, shares = gradient.copy(), []
        for step, change in reversed(pairs):
            shares.append(step @ direction / (step @ change))
            direction -= shares[-1] * change
        step, change = pairs[-1] if pairs else (scale, np.ones(SIZE))
        direction *= scale * (step @ change) / (change @ (scale * change))
        for step, change in pairs:
            direction += (shares.pop() - change @ direction / (step @ change)) * step
        step, before = -(1 if iteration else FIRST) * direction, gradient.copy()
        vector += step
        quartic(vector, gradient)
        pairs = [*pairs, (step, gradient - before)][-HISTORY:]
    return vector


def test_steps_are_those_of_the_two_loops():
    scale = 1 / (1 + np.arange(SIZE) % 5 / 3)
    for iterations in (1, 2, HISTORY + 3):
        found = np.zeros(SIZE)
        _, done = minimise(quartic, found, scale, iterations, history=HISTORY)
        assert done == iterations
        np.testing.assert_allclose(found, two_loops(scale, iterations), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_any_number_of_threads_gives_the_same_bytes(kind):
    scale, ends = np.ones(SIZE, kind), []
    for threads in (1, 2, 5):
        ends.append(np.zeros(SIZE, kind))
        minimise(quartic, ends[-1], scale, 8, history=HISTORY, threads=threads)
    assert ends[0].tobytes() == ends[1].tobytes() == ends[2].tobytes()


def test_a_step_that_goes_too_far_ends_where_the_parabola_is_least():
    def parabola(vector, gradient):
        gradient[:] = vector - 1
        return float((gradient**2).sum() / 2)

    found = np.zeros(SIZE)
    minimise(parabola, found, np.full(SIZE, 3 / FIRST), 1, history=HISTORY)
    np.testing.assert_allclose(found, 1, rtol=0, atol=1e-12)
