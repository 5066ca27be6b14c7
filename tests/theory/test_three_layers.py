"""Three layers of attention: the channel against quadrature, limits and identities; the theory
against the specification's landmarks."""

import math

import numpy as np
import pytest
from scipy.special import softmax

from manybody.theory.multi_index import channel as two_layers, channel_three as channel, deep
from manybody.theory.multi_index.samples import normals

pytestmark = pytest.mark.long  # compiles loops of three layers
CASES = [  # c, variances of the layers
    (1.0, (0.8, 0.7, 0.4)),
    (0.5, (0.6, 0.9, 0.5)),
    (2.0, (0.9, 0.5, 0.3)),
]
ENTRY = {
    "kind": "multi-index-deep",
    "skip": 1.0,
    "alphas": [0.1, 0.4, 0.7],
    "skips": [],
    "points": 64,
    "scrambles": 2,
    "regulariser": 1e-3,
    "seed": 3,
    "threads": 1,
}


def samples(count, overlaps, skip, seed=0, variance=None):
    """x (n, 2), omega and Z (n, 3, 2) of the model."""
    generator = np.random.default_rng(seed)
    overlaps = np.array(overlaps)
    variance = 1 - overlaps if variance is None else np.array(variance)
    omega = np.sqrt(overlaps)[:, None] * generator.normal(size=(count, 3, 2))
    z = omega + np.sqrt(variance)[:, None] * generator.normal(size=(count, 3, 2))
    return channel.index(z, skip), omega, z


def nodes(count, points, seed=0):
    return channel.points(count, points, np.random.SeedSequence(seed))


def mixing(z, skip):
    """B (n, T, T) of one layer more, from its rows of tokens z (n, T)."""
    return skip * np.eye(z.shape[1]) + softmax(z[:, :, None] * z[:, None, :], axis=2)


def plain_index(z, skip):
    """h_3 (n, T) of indices z (n, 3, T), layer by layer."""
    first = mixing(z[:, 0], skip)
    both = mixing(np.einsum("nts,ns->nt", first, z[:, 1]), skip) @ first
    return np.einsum("nts,ns->nt", both, z[:, 2])


def quadrature(x, omega, variance, skip, step=0.4, reach=5.0):
    """log Z_out, mean and second moments by the trapezoid rule on a grid of z_1 and z_2."""
    grid = np.arange(-reach, reach + step / 2, step)
    u, v = (a.ravel() for a in np.meshgrid(grid, grid, indexing="ij"))
    normal = np.exp(-(u**2 + v**2) / 2) * step**2 / (2 * np.pi)
    near = u**2 + v**2 < reach**2
    u, v, normal = u[near], v[near], normal[near]
    first = omega[0] + np.sqrt(variance[0]) * np.stack([u, v], axis=1)
    second = omega[1] + np.sqrt(variance[1]) * np.stack([u, v], axis=1)

    total, mean, pairs = 0.0, np.zeros((3, 2)), np.zeros((3, 2, 2))
    for z, B, share in zip(first, mixing(first, skip), normal, strict=True):
        both = mixing(second @ B.T, skip) @ B
        third = np.linalg.solve(both, np.broadcast_to(x, (len(both), 2))[..., None])[..., 0]
        for sign in (1, -1):
            off = sign * third - omega[2]
            weight = np.exp(-(off**2).sum(axis=1) / (2 * variance[2]))
            weight *= share * normal / (2 * np.pi * variance[2] * np.linalg.det(both))
            total += weight.sum()
            for layer, away in enumerate((np.broadcast_to(z, off.shape) - omega[0],
                                          second - omega[1], off)):  # fmt: skip
                mean[layer] += weight @ away
                pairs[layer] += (weight[:, None] * away).T @ away
    return math.log(total), mean / total, pairs / total


# --- The channel ---------------------------------------------------------------------------------


def test_the_index_is_that_of_the_plain_matrices():
    z = np.random.default_rng(1).normal(size=(20, 3, 2))
    for skip in (0.0, 0.7, 3.0):
        assert channel.index(z, skip) == pytest.approx(plain_index(z, skip), rel=1e-12)


@pytest.mark.parametrize(("skip", "variance"), CASES)
def test_moments_are_those_of_quadrature(skip, variance):
    x, omega, _ = samples(2, 1 - np.array(variance), skip, seed=5)
    found = channel.posterior(x, omega, np.array(variance), skip, nodes(2, 2**16))
    for n in range(2):
        log_z, mean, pairs = quadrature(x[n], omega[n], np.array(variance), skip)
        assert found.log_z[n] == pytest.approx([log_z] * 2, abs=4e-3)
        assert found.mean[n] == pytest.approx(np.stack([mean] * 2), abs=4e-3)
        assert found.second[n] == pytest.approx(np.stack([pairs] * 2), abs=4e-3)


@pytest.mark.parametrize(("quiet", "skip"), [(0, 0.5), (0, 1.0), (1, 2.0), (1, 3.0)])
def test_a_layer_of_far_tokens_leaves_the_channel_of_two(quiet, skip):
    """Tokens far apart attend to themselves: the layer multiplies by 1 + c, and two are left. So
    they do after a first layer that swaps them, at c > 1."""
    overlaps, count = np.array([0.3, 0.4, 0.7]), 12
    variance = 1 - overlaps
    variance[quiet] = 1e-4
    generator = np.random.default_rng(2)
    omega = np.sqrt(overlaps)[:, None] * generator.normal(size=(count, 3, 2))
    omega[:, quiet] = [9.0, -9.0]
    z = omega + np.sqrt(variance)[:, None] * generator.normal(size=(count, 3, 2))
    x = channel.index(z, skip)
    found = channel.posterior(x, omega, variance, skip, nodes(count, 2**13)).mean.mean(axis=1)

    # Below, the layer scales both of those above; between them, only the last.
    left = [k for k in range(3) if k != quiet]
    scale = np.array([1 + skip, 1 + skip] if quiet == 0 else [1.0, 1 + skip])
    wanted = two_layers.posterior(
        x, scale[:, None] * omega[:, left], np.diag(scale**2 * variance[left]), skip
    )
    assert found[:, left] == pytest.approx(wanted.mean / scale[:, None], abs=0.01)


def test_halves_agree_within_what_their_points_allow():
    """Twice as many points, at least twice less noise (Monte Carlo would give 1.4)."""
    overlaps = [0.3, 0.2, 0.9]
    x, omega, _ = samples(64, overlaps, 1.0)
    noise = []
    for points in (64, 1024):
        found = channel.posterior(x, omega, 1 - np.array(overlaps), 1.0, nodes(64, points))
        noise.append(np.sqrt(np.mean((found.mean[:, 0] - found.mean[:, 1]) ** 2)))
    assert noise[1] < noise[0] / 4
    assert noise[1] < 0.02


def test_the_points_of_other_samples_are_averaged_with_its_own():
    """Where all samples have the same points, nothing changes."""
    x, omega, _ = samples(1, [0.3, 0.2, 0.9], 1.0)
    variance, own = np.array([0.7, 0.8, 0.1]), nodes(1, 64)
    found = channel.posterior(x, omega, variance, 1.0, own)
    wide = channel._with_more_points(0, x, omega, variance, 1.0, np.repeat(own, 3, axis=0))
    assert np.log(wide[:, 0] / own.shape[3]) == pytest.approx(found.log_z[0], rel=1e-9)


def test_a_layer_not_learned_has_no_mean():
    """The map is even in every layer: exactly 0, not 0 within noise."""
    x, omega, _ = samples(20, [0.0, 0.0, 0.6], 1.0)
    found = channel.posterior(x, omega, np.array([1.0, 1.0, 0.4]), 1.0, nodes(20, 32))
    assert (found.mean[:, :, :2] == 0).all()
    assert (found.mean[:, :, 2] != 0).all()


def test_signs_of_the_output_index_do_not_matter():
    x, omega, _ = samples(30, [0.2, 0.4, 0.8], 1.0)
    variance = np.array([0.8, 0.6, 0.2])
    found = channel.posterior(x, omega, variance, 1.0, nodes(30, 2048))
    other = channel.posterior(-x, omega, variance, 1.0, nodes(30, 2048))
    assert other.mean == pytest.approx(found.mean, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variance": np.array([0.5, 0.0, 0.5])}, "variance: found .* expected numbers above 0"),
        ({"x": np.full((4, 2), np.nan)}, "x: found a number that is not finite"),
        ({"x": np.full((4, 2), 1e9)}, "x: sample 0, .* no point comes near"),
    ],
)
def test_bad_input_is_refused(change, message):
    x, omega, _ = samples(4, [0.1, 0.2, 0.7], 1.0)
    given = {"x": x, "omega": omega, "variance": np.array([0.9, 0.8, 0.3]), "skip": 1.0}
    with pytest.raises(ValueError, match=message):
        channel.posterior(**(given | change), nodes=nodes(4, 16))


# --- Averages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("overlaps", [(0.0, 0.0, 0.5), (0.4, 0.3, 0.95), (0.85, 0.8, 0.99)])
def test_nishimori(overlaps):
    """E E[(Z - omega)^2 | y] = V, and E E[Z - omega | y] (Z - omega) = E E[Z - omega | y]^2."""
    x, omega, z = samples(3000, overlaps, 1.0, seed=8)
    variance = 1 - np.array(overlaps)
    found = channel.posterior(x, omega, variance, 1.0, nodes(3000, 128))
    spread = np.einsum("nhltt->nl", found.second) / 2 / variance - 2
    square = (found.mean[:, 0] * found.mean[:, 1]).sum(axis=2)
    tower = ((found.mean.mean(axis=1) * (z - omega)).sum(axis=2) - square) / variance
    for zero in (spread, tower):
        error = zero.std(axis=0) / math.sqrt(len(zero))
        assert (np.abs(zero.mean(axis=0)) <= 3.5 * error + 1e-12).all()


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_overlaps_raise_the_free_entropy_by_the_gain(layer):
    """2 d E log Z_out / dQ_ll = G_l(Q): Z and so y stay as they are, omega = Q Z + noise."""
    overlaps, skip, step, count = np.array([0.5, 0.4, 0.8]), 1.0, 0.02, 1500
    z, noise = np.random.default_rng(6).normal(size=(2, count, 3, 2))
    x, given = channel.index(z, skip), nodes(count, 128)

    def posterior(shift):
        q = overlaps + shift * np.eye(3)[layer]
        omega = q[:, None] * z + np.sqrt(q * (1 - q))[:, None] * noise
        return channel.posterior(x, omega, 1 - q, skip, given)

    rise = (posterior(step).log_z - posterior(-step).log_z).mean(axis=1) / step
    mean = posterior(0).mean[:, :, layer] / (1 - overlaps[layer])
    difference = rise - (mean[:, 0] * mean[:, 1]).sum(axis=1)
    error = difference.std() / math.sqrt(count)
    assert abs(difference.mean()) <= 3 * error
    assert error < 0.3 * (mean[:, 0] * mean[:, 1]).sum(axis=1).mean()


def test_prediction_errors_are_those_of_the_plain_model():
    normal = normals(256, 12, np.random.default_rng(0)).reshape(256, 2, 3, 2)
    overlaps, skip = np.array([0.3, 0.5, 0.9]), 1.5
    omega = np.sqrt(overlaps)[:, None] * normal[:, 0]
    z = omega + np.sqrt(1 - overlaps)[:, None] * normal[:, 1]

    last = omega * np.array([0, 0, 1])[:, None]

    def outputs(given):
        return mixing(plain_index(given, skip), 0.0)

    wanted = [
        ((outputs(z) - outputs(student)) ** 2).sum(axis=(1, 2)).mean() for student in (omega, last)
    ]
    assert deep.prediction_errors(overlaps, skip, normal) == pytest.approx(wanted, rel=1e-10)


# --- The theory ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def branches():
    """The last layer alone, for four scramblings at c = 1 without regulariser."""
    setting = deep.Setting(1.0)
    drawn = [deep.draws(1024, stream) for stream in np.random.SeedSequence(11).spawn(4)]
    return setting, drawn, [deep.last_layer(setting, given) for given in drawn]


def test_the_last_layer_starts_at_the_landmark():
    """.2063 by the trapezoid rule in all variables, at a step of .3."""
    setting, eigenvalues = deep.Setting(1.0), []
    for stream in np.random.SeedSequence(12).spawn(4):
        eigenvalues.append(deep.averages((0, 0, 0), setting, deep.draws(2048, stream))[1][2])
    assert np.std(eigenvalues, ddof=1) / np.mean(eigenvalues) < 0.04
    assert 1 / np.mean(eigenvalues) == pytest.approx(0.2063, rel=0.02)


@pytest.mark.slow
def test_the_last_layer_alone_is_learned_at_the_landmarks(branches):
    _, _, curves = branches
    alphas = np.mean([alphas for _, alphas, _ in curves], axis=0)
    found = dict(zip(curves[0][0], alphas, strict=True))
    wanted = {
        0.05: 0.239, 0.2: 0.320, 0.4: 0.405, 0.6: 0.483, 0.8: 0.575, 0.9: 0.672, 0.95: 0.790,
        0.98: 1.017,
    }  # fmt: skip
    assert [found[q] for q in wanted] == pytest.approx(list(wanted.values()), rel=0.03)


@pytest.mark.slow
def test_layer_1_starts_at_the_landmark_and_layer_2_later(branches):
    setting, drawn, curves = branches
    found = [deep.onsets(*pair) for pair in zip(curves, [setting] * 4, drawn, strict=True)]
    assert np.mean(found, axis=0)[0] == pytest.approx(1.01, rel=0.05)
    assert all(alphas[1] > alphas[0] for alphas in found)


@pytest.mark.parametrize(("eigenvalue", "together"), [(6.0, True), (1e-3, False)])
def test_layers_may_start_together_and_one_that_is_not_found_is_no_number(
    monkeypatch, eigenvalue, together
):
    """The second layer's lambda where the first has been learned: so large that it has started
    at the lower end of where it is looked for, or too small at the upper one."""
    setting, drawn = deep.Setting(1.0), deep.draws(64, np.random.SeedSequence(2))
    curve = deep.last_layer(setting, drawn)
    found = deep.Fixed(np.array([0.03, 0, 0.98]), np.array([math.nan, eigenvalue, math.nan]), True)
    monkeypatch.setattr(deep, "fixed_point", lambda *_: found)
    start = deep.onsets(curve, setting, drawn)
    assert math.isfinite(start[0])
    assert (start[1] == start[0]) if together else math.isnan(start[1])


@pytest.mark.parametrize("seed", [0, 2])
def test_the_second_threshold_does_not_hang_on_where_the_first_layer_was_not_learned_yet(seed):
    """At c = 1/4 the first guess is so close to alpha_1 that layer 1 goes to 0 there."""
    setting, drawn = deep.Setting(0.25), deep.draws(256, np.random.SeedSequence(seed))
    start = deep.onsets(deep.last_layer(setting, drawn), setting, drawn)
    assert start[1] == pytest.approx(1.215, rel=0.06)


def test_noise_does_not_lead_the_search_for_a_threshold_away_from_it():
    """Fixed points are known to some percent, and two places near the root nearly agree."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        found = deep._secant(lambda x, rng=rng: x - 0.5 + rng.normal(0, 0.02), 0, 0.1, 5e-4, (0, 2))
        assert found == pytest.approx(0.5, abs=0.1)


def test_a_fixed_point_is_the_same_wherever_it_was_started():
    setting = deep.Setting(1.0, regulariser=1e-3)
    drawn = deep.draws(256, np.random.SeedSequence(2))
    found = [deep.fixed_point(0.6, (0, 0, q), setting, drawn) for q in (0.2, 0.97)]
    assert all(fixed.converged for fixed in found)
    logits = [math.log(fixed.overlaps[2] / (1 - fixed.overlaps[2])) for fixed in found]
    assert logits[1] == pytest.approx(logits[0], abs=3 * deep.TOLERANCE)


def test_a_layer_that_does_not_grow_is_not_learned_at_all():
    """alpha = .15 is below the first threshold, .2: layer 3 decays, by little an iteration."""
    drawn = deep.draws(128, np.random.SeedSequence(4))
    fixed = deep.fixed_point(0.15, (0, 0, 0.3), deep.Setting(1.0), drawn)
    assert fixed.converged
    assert (fixed.overlaps == 0).all()
    assert fixed.eigenvalues[2] == pytest.approx(1 / 0.205, rel=0.15)


def test_all_layers_are_learned_where_data_are_enough():
    setting = deep.Setting(1.0, regulariser=1e-3)
    drawn = deep.draws(256, np.random.SeedSequence(2))
    fixed = deep.fixed_point(2.0, (0.5, 0.5, 0.9), setting, drawn)
    assert fixed.converged
    assert (fixed.overlaps > [0.9, 0.9, 0.997]).all()
    assert (fixed.overlaps < 1).all()


def test_overlaps_of_the_table_rise_from_the_threshold_on():
    frame, _ = deep.compute(ENTRY)
    q33 = frame[(frame.quantity == "overlap") & (frame.series == "Q33")].set_index("x").y
    assert q33[0.1] == 0
    assert 0.2 < q33[0.4] < q33[0.7] < 0.96


def test_three_layers_that_are_called_converged_stand_still(monkeypatch):
    setting, drawn = deep.Setting(1.0, regulariser=1e-3), deep.draws(64, np.random.SeedSequence(5))
    for alpha, start in ((0.3, (0, 0, 0.05)), (0.45, (0, 0, 0.99)), (0.7, (0, 0, 0.05))):
        fixed = deep.fixed_point(alpha, start, setting, drawn)
        assert fixed.converged
        gain, q = deep.averages(fixed.overlaps, setting, drawn)[0][2], fixed.overlaps[2]
        assert abs(math.log(alpha * gain) - math.log(q / (1 - q))) < 0.02
    monkeypatch.setattr(deep, "ITERATIONS", 1)
    assert not deep.fixed_point(0.7, (0, 0, 0.5), setting, drawn).converged
    frame, _ = deep.compute({**ENTRY, "alphas": [0.7]})
    assert (frame.loc[frame["quantity"] == "converged", "y"] == 0).all()
