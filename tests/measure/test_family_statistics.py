"""What generated sequences are: against all states of a small model."""

import re

import numpy as np
import pytest
from planted_pairs import law, planted

from manybody.io.refusal import Refusal
from manybody.measure import family_statistics

REACHED = dict(reached=True, settled=64)


SIZES = 5, 3, 0.7, 2  # of the planted model: L, |V|, scale of couplings, seed


@pytest.mark.parametrize("sites", [(1,), (3, 0), (0, 2, 4)])
def test_connected_statistics_are_centred_moments_of_the_law(sites):
    every, p, _ = law(planted(*SIZES))
    found = family_statistics.connected(every, p, 3, sites)
    centred = [(every[:, [i]] == np.arange(3)) * 1.0 for i in sites]
    if len(sites) > 1:
        centred = [one - p @ one for one in centred]
    letters = "abc"[: len(sites)]
    expected = np.einsum(f"n,{','.join('n' + a for a in letters)}->{letters}", p, *centred)
    np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.long
def test_statistics_of_a_sample_are_those_of_the_law_within_errors():
    every, p, _ = law(planted(*SIZES))
    sample = every[np.random.default_rng(0).choice(len(every), 40_000, p=p)]
    table, points = family_statistics.compared(every, sample, 3, p)
    table = table.set_index("statistic")
    assert table["number"].tolist() == [5 * 3, 10 * 9, 10 * 27]
    # Sampling errors are below .0025 of values whose spread is .15, .02 and .005.
    assert (table["correlation"] > [0.9999, 0.995, 0.9]).all()
    assert (abs(table["slope"] - 1) < [0.02, 0.05, 0.2]).all()
    again, _ = family_statistics.compared(sample, sample, 3)
    np.testing.assert_allclose(again[["correlation", "slope"]], 1)
    assert (again["halves"] > [0.999, 0.98, 0.7]).all()
    assert (again["halves"] < 1).all()
    some = points[points["panel"] == "c_2"]
    assert abs(some["x"] - some["y"]).max() < 5 * 0.5 / np.sqrt(len(sample))


@pytest.mark.long
def test_the_log_likelihood_is_that_of_all_states(monkeypatch):
    model = planted(*SIZES)
    every, p, _ = law(model)
    weights = np.random.default_rng(1).uniform(size=len(every))
    seen = (every, np.ones(len(every)))  # all colours alike
    monkeypatch.setattr(family_statistics, "TEMPERATURES", (50, 100))
    said = family_statistics.log_likelihood(model, (every, weights), seen)
    assert "annealing at 50 and 100 temperatures" in said
    mean, error, single, *_, own = (float(found) for found in re.findall(r"-?\d+\.\d+", said))
    logs = np.log(p)
    expected = np.average(logs, weights=weights)
    spread = np.sqrt((weights**2 * (logs - expected) ** 2).sum()) / weights.sum()
    assert mean == pytest.approx(expected / 5, abs=4 * (own + 0.005) / 5)
    assert error == pytest.approx(spread / 5, rel=0.1)
    assert single == pytest.approx(-np.log(3), abs=1e-3)
    assert said.endswith(".")
    assert "do not trust" not in said


def test_many_sets_of_sites_are_drawn_once_each_ascending():
    drawn = family_statistics._sets(30, 3, 1000, np.random.default_rng(0))
    assert len(drawn) == 1000
    assert all(i < j < k for i, j, k in drawn)
    assert len(family_statistics._sets(6, 3, 1000, np.random.default_rng(0))) == 20


def test_principal_components_tell_two_groups_apart():
    rng = np.random.default_rng(1)
    tokens = np.where(rng.random((90, 12)) < 0.05, 2, np.repeat([[0], [1]], [60, 30], axis=0))
    _, points = family_statistics.compared(tokens, tokens[:10], 3)
    along = points[(points["panel"] == "components") & (points["series"] == "natural")]
    assert len(along) == 90
    assert abs(along["x"].mean()) < 1e-6
    assert (along["x"].to_numpy() > 0).sum() in (30, 60)
    # They are those of the covariance of the numbers 0 or 1.
    ones = (tokens[..., None] == np.arange(3)).reshape(90, -1) * 1.0
    vectors = np.linalg.eigh(np.cov(ones.T)).eigenvectors
    mean, axes = family_statistics.principal(tokens, 3, np.ones(90))
    np.testing.assert_allclose(
        abs(axes.reshape(2, -1) @ vectors[:, -2:]), np.eye(2)[::-1], atol=1e-4
    )
    np.testing.assert_allclose(mean, axes.reshape(2, -1) @ ones.mean(axis=0), atol=1e-6)


UNREACHED = {
    "no learning": ({}, r"no Boltzmann learning \(`manybody family --boltzmann`\);"),
    "too early": ({"boltzmann": dict(reached=False, reason="r is 0.9")}, "family: r is 0.9;"),
}


@pytest.mark.parametrize("case", UNREACHED)
def test_no_sequences_are_drawn_from_a_model_short_of_its_target(case):
    about, said = UNREACHED[case]
    with pytest.raises(Refusal, match=f"{said} only a model that has can draw"):
        family_statistics.generate(planted(*SIZES, about=about), 10)
    with pytest.raises(Refusal, match="found 10 sequences of 0 sweeps"):
        family_statistics.generate(planted(*SIZES, about=about), 10, 0)


@pytest.mark.long
def test_new_sequences_follow_the_law_and_mix():
    model = planted(*SIZES, about={"boltzmann": REACHED})
    every, p, _ = law(model)
    tokens, mixing = family_statistics.generate(model, 20_000, seed=1)
    found = np.bincount(np.ravel_multi_index(tuple(tokens.T), (3,) * 5), minlength=3**5) / 20_000
    assert abs(found - p).max() < 5 * np.sqrt(p.max() / 20_000)
    own, other = (mixing[mixing["series"] == name] for name in ("own", "other"))
    assert own["x"].tolist() == [1, 2, 4, 8, 16, 32, 64]
    agree = sum((p @ (every[:, [i]] == np.arange(3))) ** 2 for i in range(5)).sum() / 5
    assert abs(other["y"] - agree).max() < 0.01
    assert own["y"].iloc[0] > agree + 0.02
    assert abs(own["y"].iloc[-1] - agree) < 0.01
    again, _ = family_statistics.generate(model, 50, 64, seed=1, threads=2)
    np.testing.assert_array_equal(again, tokens[:50])
