"""Censored times of terms: the likelihood by integration, planted coefficients, whole students."""

import math

import numpy as np
import pytest
from planted_order import simulated
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, norm

from manybody.measure import order_times

LADDER = {
    f"c_2 = {c:g}": [(2, c, False)] * 3 + [(3, 0.2, False)] * 2 for c in (0.2, 0.05, 0.0125, 0.0031)
}
EQUAL = {"equal": LADDER["c_2 = 0.2"]}
NESTED = {"nested": [(2, 0.2, False)] * 2 + [(3, 0.2, False)] * 2 + [(3, 0.2, True)] * 2}
TRUE = {"order": 1.1, "information": -0.6, "nested": -0.5}


def likelihood(times):
    """The likelihood of one cell's students as `fitted` makes it, with a constant alone."""
    student = times["student"].to_numpy()
    y, late = np.log(times["time"].to_numpy()), ~times["reached"].to_numpy()
    return order_times._Likelihood(np.ones((len(times), 1)), y, late, student)


@pytest.mark.parametrize("last", [1e9, 150])
def test_the_likelihood_is_the_integral_over_students(last):
    times = simulated(np.random.default_rng(1), EQUAL, 3, last=last)
    assert times["reached"].all() == (last > 1e6)
    mean, sigma, tau = 4.7, 0.5, 0.4
    expected = 0.0
    for _, rows in times.groupby("student"):
        y, reached = np.log(rows["time"].to_numpy()), rows["reached"].to_numpy()

        def density(z, y=y, reached=reached):
            u = (y - mean - tau * z) / sigma
            return norm.pdf(z) * np.where(reached, norm.pdf(u) / sigma, norm.sf(u)).prod()

        whole = math.log(quad(density, -9, 9, epsabs=1e-13)[0])
        expected += whole
        if reached.all():
            shared = multivariate_normal(
                np.full(len(y), mean), sigma**2 * np.eye(len(y)) + tau**2
            ).logpdf(y)
            assert whole == pytest.approx(shared, abs=1e-9)
    point = np.array([mean, math.log(sigma), math.log(tau)])
    value, gradient = likelihood(times)._negative(point, np.ones(3))
    assert -value == pytest.approx(expected, abs=1e-5)
    weights = np.array([2.0, 0.0, 1.0])
    _, gradient = likelihood(times)._negative(point, weights)
    by_steps = approx_fprime(point, lambda x: likelihood(times)._negative(x, weights)[0], 1e-6)
    np.testing.assert_allclose(gradient, by_steps, atol=1e-4)


def test_columns_are_those_that_vary_within_a_cell():
    def names(cells):
        return list(order_times.columns_of(simulated(np.random.default_rng(0), cells, 2)))

    assert names(EQUAL) == ["order"]
    assert names(LADDER) == ["order", "information"]
    assert names(NESTED) == ["order", "nested"]
    # Of two cells with one kind each nothing can be told: each has its own alpha.
    assert names({"pairs": [(2, 0.2, False)] * 3, "triples": [(3, 0.2, False)] * 2}) == []


@pytest.mark.parametrize(("cells", "last"), [(LADDER, 400), (NESTED, 200)])
def test_planted_coefficients_are_found_with_censored_times(cells, last):
    """A tenth or more of the times are not reached, and are not taken for reached."""
    times = simulated(np.random.default_rng(3), cells, 150, last=last, **TRUE)
    assert 0.1 < 1 - times["reached"].mean() < 0.6
    columns = order_times.columns_of(times)
    fit = order_times.fitted(times, columns, 0)
    for name, value in fit.beta.items():
        assert value == pytest.approx(TRUE[name], abs=0.07), name
    assert fit.sigma == pytest.approx(0.4, abs=0.03)
    assert fit.tau == pytest.approx(0.3, abs=0.075)  # three errors
    naive = order_times.fitted(times.assign(reached=True), columns, 0)
    assert naive.beta["order"] < TRUE["order"] - 0.2


def test_the_exchange_rate_is_that_of_the_planted_coefficients():
    times = simulated(np.random.default_rng(4), LADDER, 10, **TRUE)
    value, error, half = order_times.fitted(times, order_times.columns_of(times)).exchange()
    assert abs(value - 1.1 / 0.6) < half
    assert 2 * error < half < math.log(2)
    late = simulated(np.random.default_rng(4), LADDER, 10, order=1.1, information=0.6)
    assert math.isnan(order_times.fitted(late, order_times.columns_of(late), 2).exchange()[0])


@pytest.mark.long
@pytest.mark.parametrize("slopes", [0.0, 0.5])
def test_intervals_of_ten_students_cover_what_was_planted(slopes):
    """Also where students differ in what an order costs them, which all their terms share."""
    random, found = np.random.default_rng(5), []
    for _ in range(60):
        times = simulated(random, EQUAL, 10, last=400, slopes=slopes)
        value, error, half = order_times.fitted(times, order_times.columns_of(times), 60).of(
            "order"
        )
        found.append((value - 1.1, error, half))
    off, errors, halves = np.array(found).T
    assert np.mean(abs(off) < halves) >= 0.88  # 1 in 100 of 95 % is below
    assert np.mean(errors) == pytest.approx(off.std(), rel=0.3)
    if not slopes:
        assert np.mean(halves) < 0.35
        assert np.mean(1.1 + off - halves > 0) >= 0.9  # power, for a factor of 3


@pytest.mark.long
def test_the_form_is_refused_where_it_does_not_hold_and_seldom_where_it_does():
    random = np.random.default_rng(6)
    chances = [order_times.form(simulated(random, LADDER, 10, **TRUE), 60)[0] for _ in range(30)]
    assert np.mean(np.array(chances) < 0.05) <= 0.2  # 1 in 100 of 5 % is above
    bent = simulated(random, LADDER, 10, curvature=-0.15, **TRUE)
    bent["information"] *= 1 + 1e-15 * (bent["term"] == "1")  # as a law's values are rounded
    chance, degrees = order_times.form(bent)
    assert degrees == 2
    assert chance < 0.01


def test_an_error_needs_two_students_and_a_value_a_time_that_is_reached():
    times = simulated(np.random.default_rng(7), EQUAL, 1)
    assert order_times.fitted(times, order_times.columns_of(times), 10).of("order")[2] == math.inf
    columns = order_times.columns_of(times)
    value, _, half = order_times.fitted(times.assign(reached=False), columns, 3).of("order")
    assert math.isnan(value)
    assert half == math.inf


def test_errors_of_a_bootstrap_are_widened_for_few_students():
    fit = order_times.Fit({"order": 1.0}, 0.4, 0.3, {"order": np.array([0.0, 2.0])}, 2)
    assert fit.of("order")[1] == pytest.approx(2.0)  # sqrt(2) of the draws, times sqrt(n / (n - 1))


def test_the_form_is_not_judged_by_fewer_students_than_contrasts():
    cells = {"one": [(2, 0.2, False), (2, 0.05, False), (3, 0.2, False), (3, 0.05, False)]}
    for students in (1, 2):
        times = simulated(np.random.default_rng(8), cells, students, **TRUE)
        chance, degrees = order_times.form(times, 20)
        assert math.isnan(chance)
        assert degrees == 1
