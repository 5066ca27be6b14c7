"""Message passing on deep attention: the iteration, its limit, landmarks, repeatability."""

import numpy as np
import pytest

from manybody.theory.multi_index import channel, gamp
from manybody.theory.multi_index.channel import denoiser, index, posterior
from manybody.theory.multi_index.samples import Setting, averages, draws

ENTRY = {
    "skip": 1.0,
    "dimension": 200,
    "alphas": [0.6, 1.2],
    "runs": 2,
    "iterations": 3,
    "damping": 1.0,
    "regulariser": 1e-3,
    "noise": 1e-3,
    "init": "informed",
    "overlaps": [0.3, 0.6],
    "side_information": 0.0,
    "points": 64,
    "seed": 0,
    "threads": 2,
}
RANDOM = {"init": "random", "overlaps": None, "points": 0}


# --- The iteration -------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "kind"), [(0.0, "softmax"), (0.7, "softmax"), (0.0, "linear")])
def test_an_iteration_is_the_equations_written_out_sample_by_sample(side, kind):
    """Section 2, with the Jacobian by central differences of the denoiser."""
    generator = np.random.default_rng(0)
    size, skip, regulariser, damping = 12, 0.8, 0.01, 0.7
    data = gamp.draw(size, 1.5, skip, generator, 0.01, side, kind)
    state = gamp.informed(data, (0.3, 0.5), generator)
    covariance = np.array([[0.7, 0.1], [0.1, 0.5]])
    state = gamp.State(state.estimate, covariance, generator.normal(size=state.g.shape))

    variance = covariance + regulariser * np.eye(2)

    def g_out(mu, omega):
        found = posterior(data.x[mu : mu + 1], omega[None], variance, skip, kind)
        return denoiser(found, variance)[0]

    A, b, new_g = np.zeros((2, 2)), np.zeros((2, size)), []
    for mu, X in enumerate(data.tokens.transpose(0, 2, 1)):  # (D, T), as in the equations
        omega = state.estimate @ X / np.sqrt(size) - covariance @ state.g[mu]
        new_g.append(g_out(mu, omega))
        b += new_g[-1] @ X.T / np.sqrt(size)
        for layer in range(2):
            for token in range(2):
                shift = np.zeros((2, 2))
                shift[layer, token] = 1e-3
                A[:, layer] -= ((g_out(mu, omega + shift) - g_out(mu, omega - shift)) / 2e-3)[
                    :, token
                ] / size
    b += A @ state.estimate + np.sqrt(side) * data.side
    new = np.linalg.inv((1 + side) * np.eye(2) + A)
    found = gamp.iterate(data, state, skip, regulariser, damping, activation=kind)
    close = {"rtol": 0, "atol": 2e-4}
    np.testing.assert_allclose(found.g, new_g, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.covariance, 0.7 * new + 0.3 * covariance, **close)
    np.testing.assert_allclose(found.estimate, 0.7 * new @ b + 0.3 * state.estimate, **close)


def test_data_are_the_teachers():
    data = gamp.draw(400, 1.5, 2.0, np.random.default_rng(3), side_information=4.0)
    assert data.tokens.shape == (600, 2, 400)
    z = np.stack([data.tokens @ w / 20 for w in data.teacher], axis=1)
    np.testing.assert_allclose(data.x, index(z, 2.0), rtol=0, atol=1e-12)
    noise = data.side - 2 * data.teacher
    assert abs(noise.mean()) < 0.15
    assert abs(noise.std() - 1) < 0.15
    noisy = gamp.draw(400, 1.5, 2.0, np.random.default_rng(3), noise=0.01)
    assert 0.01 < np.std(noisy.x - data.x) < 1


def test_an_informed_start_is_a_posteriors():
    """M = Q = q, and the teacher lies around the estimate with variance chat = 1 - q."""
    generator = np.random.default_rng(4)
    data = gamp.draw(40_000, 1e-4, 1.0, generator)
    state = gamp.informed(data, (0.3, 0.6), generator)
    error = np.mean((data.teacher - state.estimate) ** 2, axis=1)
    m, q = gamp.overlaps(data.teacher, state.estimate)
    expected = [[0.3, 0.6], [0.3, 0.6], [0.7, 0.4]]
    np.testing.assert_allclose([m, q, error], expected, rtol=0, atol=0.02)
    assert np.diag(state.covariance) == pytest.approx([0.7, 0.4])


def test_a_covariance_that_lost_its_sign_ends_a_run_and_is_flagged(monkeypatch):
    real = gamp.jacobian
    calls = []

    def steep(*given):
        calls.append(1)
        return real(*given) + (
            100.0 * np.einsum("kl,ts->ktls", *[np.eye(2)] * 2) if len(calls) > 2 else 0
        )

    monkeypatch.setattr(gamp, "jacobian", steep)
    frame, _ = gamp.compute(ENTRY | {"runs": 1, "alphas": [0.6], "points": 0, "threads": 1})
    assert at(frame, "converged", "0.6").loc[0, 0] == 0
    assert list(at(frame, "M22", "0.6").index) == [0, 1, 2]
    assert np.isfinite(frame["y"]).all()


# --- At D -> infinity ----------------------------------------------------------------------------


def test_prediction_with_a_channel_that_knows_the_noise_is_state_evolution():
    """M = Q = 1 - chat after an iteration, and the specification's first steps, those of layer 1
    with what it allows."""
    normals = gamp.sobol_normals(2**11, np.random.default_rng(0))
    q = np.array([0.3, 0.6])
    state = gamp.Overlaps(q, q, 1 - q)
    for first, last in ((0.083, 0.804), (0.044, 0.904), (0.042, 0.951)):
        state = gamp.predict(state, 1.2, 1.0, normals, 1e-3, 1e-3)
        assert state.m[0] == pytest.approx(first, abs=0.03)
        assert state.m[1] == pytest.approx(last, abs=0.005)
        gaps = np.abs([state.q - state.m, 1 - state.c - state.m])
        assert (gaps < [[0.004, 0.004], [0.02, 0.004]]).all()


def test_prediction_of_linear_attention_is_its_state_evolution():
    q = np.array([0.4, 0.3])
    normals = gamp.sobol_normals(2**11, np.random.default_rng(0))
    found = gamp.predict(gamp.Overlaps(q, q, 1 - q), 0.6, 0.5, normals, activation="linear")
    gain = 0.6 * averages(q, Setting(0.5, "linear"), draws(2**11, np.random.SeedSequence(1))).gain
    expected = np.diag(np.linalg.solve(np.eye(2) + gain, gain))
    for value in (found.m, found.q, 1 - found.c):
        assert value == pytest.approx(expected, abs=0.03)


def test_prediction_is_the_limit_of_the_iteration():
    """Also where channel and data disagree and M, Q, 1 - chat part: mean of runs at D = 600."""
    alpha, skip, regulariser, noise, side = 0.7, 1.0, 0.2, 0.0, 0.3
    normals = gamp.sobol_normals(2**11, np.random.default_rng(1))
    q = np.array([0.3, 0.6])
    state, states = gamp.Overlaps(q, q, 1 - q), []
    for _ in range(3):
        states.append(state := gamp.predict(state, alpha, skip, normals, regulariser, noise, side))
    assert states[2].m[1] - states[2].q[1] > 0.03

    found = []
    for seed in range(6):
        generator = np.random.default_rng(seed)
        data = gamp.draw(600, alpha, skip, generator, noise, side)
        run, rows = gamp.informed(data, (0.3, 0.6), generator), []
        for _ in range(3):
            run = gamp.iterate(data, run, skip, regulariser, threads=2)
            m, q = gamp.overlaps(data.teacher, run.estimate)
            rows.append([m, q, np.diag(run.covariance)])
        found.append(rows)
    found = np.array(found)
    means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
    expected = np.array([[state.m, state.q, state.c] for state in states])
    # 18 numbers of few runs: 4 standard errors, and 0.01 for what is of order 1 / D and the points.
    assert (np.abs(means - expected) < 4 * errors + 0.01).all()


def test_nothing_is_learned_from_overlap_zero_but_with_side_information():
    """Q = 0 is a fixed point; side information moves it to s / (1 + s) and above."""
    normals = gamp.sobol_normals(2**9, np.random.default_rng(0))
    init = gamp.Overlaps(np.zeros(2), np.ones(2), np.ones(2))
    assert (gamp.predict(init, 1.2, 1.0, normals, 1e-3, 1e-3).m == 0).all()
    zero = gamp.Overlaps(np.zeros(2), np.zeros(2), np.ones(2))
    assert (gamp.predict(zero, 1.2, 1.0, normals, 1e-3, 1e-3, 0.5).m >= 0.5 / 1.5 - 0.02).all()


@pytest.mark.parametrize(("kind", "size"), [("softmax", 1.0), ("linear", 0.4)])
def test_plug_in_error_is_that_of_fresh_samples(kind, size):
    """Weights are of this size as outputs of linear attention have heavy tails."""
    generator = np.random.default_rng(5)
    teacher, noise = size * generator.normal(size=(2, 2, 50))
    normals = gamp.sobol_normals(gamp.TESTS, generator)
    tokens = generator.normal(size=(40_000, 2, 50))

    def outputs(weights):
        h = index(np.einsum("ki,nti->nkt", weights, tokens) / np.sqrt(50), 1.0, kind)
        return channel.outputs(h) if kind == "softmax" else h[:, :, None] * h[:, None, :]

    for estimate in (0.7 * teacher + 0.4 * noise, 0 * teacher):
        squares = ((outputs(teacher) - outputs(estimate)) ** 2).sum(axis=(1, 2))
        error = squares.std() / np.sqrt(len(squares))
        found = gamp.plug_in_error(teacher, estimate, 1.0, normals, kind)
        assert found == pytest.approx(squares.mean(), abs=4 * error + 1e-3)
    # Signs of layers do not matter.
    assert gamp.plug_in_error(teacher, -teacher, 1.0, normals, kind) < 1e-12


def test_overlaps_of_different_layers_vanish_with_the_dimension():
    """As 1 / sqrt D, since the channel is even in each layer."""
    generator, size = np.random.default_rng(1), 400
    data = gamp.draw(size, 1.2, 1.0, generator)
    state = gamp.informed(data, (0.9, 0.95), generator)
    for _ in range(3):
        state = gamp.iterate(data, state, 1.0, 1e-3)
        across = state.estimate @ np.concatenate([data.teacher, state.estimate]).T / size
        assert np.abs(across[[0, 1, 0], [1, 0, 3]]).max() < 5 / size**0.5
        assert np.abs(across[[0, 1], [2, 3]]).min() > 5 / size**0.5


# --- The table -----------------------------------------------------------------------------------


def at(frame, quantity, series):
    found = frame[(frame["quantity"] == quantity) & (frame["series"] == series)]
    return found.pivot(index="x", columns="seed", values="y")


def test_a_table_has_a_row_for_each_iteration_and_flags_runs_that_did_not_converge():
    frame, _ = gamp.compute(ENTRY)
    for series in ("0.6", "1.2"):
        for quantity in ("cosine 1", "cosine 2", "M11", "Q22", "error plug-in", "SE Q11", "SE M22"):
            assert list(at(frame, quantity, series).index) == [0, 1, 2, 3]
        assert (at(frame, "converged", series).loc[0] == 0).all()


def test_the_activation_of_an_entry_is_that_of_its_data_channel_and_errors():
    entry = ENTRY | {"alphas": [0.6], "skip": 0.5, "points": 0, "runs": 1}
    plain, same, linear = (
        gamp.compute(entry | change)[0]
        for change in ({}, {"activation": "softmax"}, {"activation": "linear"})
    )
    assert plain.equals(same)
    for quantity in ("M11", "error plug-in"):
        first, second = (at(frame, quantity, "0.6").loc[3.0, 0] for frame in (plain, linear))
        assert abs(first - second) > 0.01


def test_a_random_start_has_norm_one_and_side_information_leads_it():
    entry = ENTRY | RANDOM | {"alphas": [0.6]}
    alone, _ = gamp.compute(entry | {"damping": 0.8})
    for k in (1, 2):
        assert np.abs(at(alone, f"Q{k}{k}", "0.6").loc[0] - 1).max() < 0.4
        assert (at(alone, f"cosine {k}", "0.6").loc[0] < 0.3).all()
    assert not alone["quantity"].str.startswith("SE").any()
    led, _ = gamp.compute(entry | {"side_information": 2.0, "points": 256, "dimension": 500})
    for k in (1, 2):
        cosines = at(led, f"cosine {k}", "0.6").loc[3.0] ** 2
        # Side information alone gives s / (1 + s).
        assert (cosines > 2 / 3 - 0.06).all()
        m, q = (at(led, f"SE {name}{k}{k}", "0.6").loc[3.0, 0] for name in "MQ")
        assert np.abs(cosines - m**2 / q).max() < 0.1


def test_layer_two_is_learned_and_layer_one_is_not_between_the_thresholds():
    """Section 5: at alpha = .6, M22 = .88 +- .06 and M11 = 0; converged before iterations end."""
    entry = ENTRY | {"alphas": [0.6], "dimension": 500, "iterations": 60, "points": 0}
    frame, _ = gamp.compute(entry)
    assert (at(frame, "converged", "0.6").loc[0] == 1).all()
    first, second = (at(frame, f"cosine {k}", "0.6").ffill().iloc[-1] for k in (1, 2))
    assert np.abs(second**2 - 0.905).max() < 0.06  # of state evolution, alpha(Q22 = .9) = .578
    assert (first < 0.4).all()
    assert np.abs(at(frame, "error plug-in", "0.6").ffill().iloc[-1] - 0.1).max() < 0.04


@pytest.mark.slow
def test_converged_overlaps():
    """Section 5: D = 1000, regulariser 1e-3 in the channel alone, from (.3, .6)."""
    changes = {"dimension": 1000, "alphas": [0.4, 1.0, 1.2], "iterations": 60, "noise": 0.0}
    frame, _ = gamp.compute(ENTRY | changes | {"points": 0, "runs": 4})
    expected = {
        "M22": {"0.4": 0.46, "1": 0.97, "1.2": 1.03},
        "M11": {"1": 0.68, "1.2": 0.89},
        "Q11": {"1": 0.61, "1.2": 0.82},
    }
    for quantity, values in expected.items():
        for series, value in values.items():
            found = at(frame, quantity, series).ffill().iloc[-1]
            assert found.mean() == pytest.approx(
                value, abs=0.06 + 3 * (found.std() / np.sqrt(len(found)))
            )


def test_a_run_has_settled_where_it_stands_still_or_moves_about_a_mean():
    steps = np.arange(150)
    still = 0.5 + 0.3 * np.exp(-steps / 5)
    about = 0.5 + 0.01 * np.cos(2 * np.pi * steps / 7)
    drifts = about + 2e-4 * steps
    for course, early, late in ((still, True, True), (about, False, True), (drifts, False, False)):
        seen = np.stack([np.full(150, 0.2), course], axis=1)
        assert gamp.settled(seen) is early
        assert gamp.settled(seen, at_the_end=True) is late
    assert not gamp.settled(np.stack([about, about], axis=1)[:59], at_the_end=True)
    assert not gamp.settled(np.full((5, 4), 0.3))
