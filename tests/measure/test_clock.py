"""K_e, S_k, times and losses on clones of students whose half-logits are known, against sums over
all states."""

import numpy as np
import pandas as pd
import planted_runs
import pytest
import torch
from enumerated import all_states

from manybody import models
from manybody.data.code import CodeLaw, coupling_of
from manybody.io import sequences, tables
from manybody.io.refusal import Refusal
from manybody.io.sequences import Sequences
from manybody.measure.clock import Clock, contexts, measure, student_logs
from manybody.measure.clone_times import clone_losses
from manybody.measure.order_times import times
from manybody.models.objectives import sequence_sums

SITES, LENGTH = [(0, 1), (2, 3, 4), (5, 6), (7, 9, 10)], 12
LAW = CodeLaw(SITES, [coupling_of(c) for c in (0.2, 0.2, 0.05, 0.1)], LENGTH)
ORDERS = [0, 2], [1, 3]  # terms of order 2, of order 3
HALF = np.array([0.3, 0.1, -0.2, 0.6])
SHARED = CodeLaw([(0, 1), (1, 2), (2, 3, 4), (3, 5)], [0.4, 0.7, -0.9, 0.5], 7)
NESTED = CodeLaw([(0, 1), (0, 1, 2), (3, 4)], [0.6, 0.8, 0.5], 6)


def student(sites, half_logits, tokens, bias=0.0):
    """Log conditionals (n, L, 2) of a student with these half-logits of products of spins."""
    spins = 1 - 2 * tokens
    half = np.full(tokens.shape, bias, float)
    for term, value in zip(sites, half_logits, strict=True):
        for site in term:
            half[:, site] += value * np.prod(
                [spins[:, other] for other in term if other != site], 0
            )
    return -np.logaddexp(0, np.stack([-2 * half, 2 * half], axis=2))


def divergence(mean, half):
    """KL of a spin with this mean from one with this half-logit."""
    p = np.array([1 + mean, 1 - mean]) / 2
    return (p * (np.log(p) + np.logaddexp(0, [-2 * half, 2 * half]))).sum()


def sampled(law, count=500):
    return law.sample(count, np.random.default_rng(0)).astype(int), np.full(count, 1 / count)


@pytest.mark.parametrize("bias", [0.0, 0.5])  # with one, states of a term do not count alike
def test_disjoint_terms_from_samples(bias):
    tokens, weights = sampled(LAW)
    clock = Clock(LAW, tokens, weights)
    found = clock.rows(student(SITES, HALF, tokens, bias))
    assert found[["term", "order"]].to_numpy().tolist() == [[0, 2], [1, 3], [2, 2], [3, 3]]
    assert found["information"].tolist() == pytest.approx([0.2, 0.2, 0.05, 0.1])
    means, couplings = np.tanh(LAW.couplings), LAW.couplings
    gaps = [
        (divergence(mean, half + bias) + divergence(-mean, bias - half)) / 2
        for mean, half in zip(means, HALF, strict=True)
    ]
    np.testing.assert_allclose(found["gap"], gaps, atol=1e-10)
    if not bias:
        np.testing.assert_allclose(found["own_share"], HALF / couplings, atol=1e-10)
        shares = [(means * HALF)[own].sum() / (means * couplings)[own].sum() for own in ORDERS]
        np.testing.assert_allclose(found["share"], shares * 2, atol=1e-10)
        blank = clock.rows(student(SITES, 0 * HALF, tokens))
        np.testing.assert_allclose(blank["gap"], blank["information"], atol=1e-10)


@pytest.mark.parametrize("law", [SHARED, NESTED])
def test_shares_are_those_of_sums_over_all_states(law):
    tokens = all_states(2, law.length)
    p = np.exp(law.log_probability(tokens))
    clock = Clock(law, tokens, p)
    logs = student(law.sites, np.linspace(-0.2, 0.5, len(law.sites)), tokens)
    found = clock.rows(logs)

    def loss(weights, given):
        return -weights @ np.take_along_axis(given, tokens[:, :, None], axis=2).sum(axis=(1, 2))

    own = law.log_conditionals(tokens)
    ends = clock.rows(own)
    gaps = [0 if law is NESTED and term == 2 else np.nan for term in range(len(ends))]
    np.testing.assert_allclose(ends["gap"], gaps, atol=1e-12)  # none of terms that share sites
    np.testing.assert_allclose(ends[["share", "own_share"]], 1, atol=1e-10)
    for order in (2, 3):
        other = law.kept(law.orders != order)
        less = np.exp(other.log_probability(tokens))
        share = (loss(less, logs) - loss(p, logs)) / (loss(less, own) - loss(p, own))
        rows = found["order"] == order
        np.testing.assert_allclose(found["share"][rows], share, atol=1e-10)
        without = clock.rows(other.log_conditionals(tokens))
        np.testing.assert_allclose(without["share"][rows], 0, atol=1e-10)
    assert found["nested"].tolist() == [law is NESTED and term < 2 for term in range(len(found))]


def test_a_causal_student_is_asked_for_the_last_site_of_a_term():
    tokens, weights = sampled(LAW)
    logs = student(SITES, HALF, tokens)
    logs[:, [0, 2, 3, 5, 7, 9]] = np.log([0.9, 0.1])  # what it cannot know
    found = Clock(LAW, tokens, weights, causal=True).rows(logs)
    expected = Clock(LAW, tokens, weights).rows(student(SITES, HALF, tokens))
    for column in ("gap", "own_share"):
        np.testing.assert_allclose(found[column], expected[column], atol=1e-10)
    with pytest.raises(
        Refusal, match=r"share the sites \[1, 2, 3\] and a causal student; expected"
    ):
        Clock(SHARED, *sampled(SHARED), causal=True)


def test_a_run_from_its_files(tmp_path):
    law = CodeLaw([(0, 1), (2, 4)], [coupling_of(0.2), coupling_of(0.05)], 5)
    tokens = law.sample(32, np.random.default_rng(0))
    about = {"law": {"sites": law.sites, "couplings": law.couplings.tolist()}}
    sequences.write(tmp_path / "test.parquet", tokens, 2, about)
    read, weights = contexts(law, Sequences.open(tmp_path / "test.parquet"))
    assert (len(read), weights.sum()) == (32, pytest.approx(1))
    np.testing.assert_array_equal(read, all_states(2, 5), "all states, as they are no more")

    half, made = {0: (0.0, 0.0), 10: (0.2, 0.0), 100: (0.6, 0.1)}, {}
    for step, values in half.items():
        pairs = torch.zeros(5, 5)
        pairs[[0, 1, 2, 4], [1, 0, 4, 2]] = torch.tensor(values).repeat_interleave(2)
        signs = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
        made[step] = {"attention.0": pairs, "left.0": signs, "bias": torch.zeros(2)}
    description = dict(
        architecture="factored", vocabulary=2, length=5, layers=1, rank=None, attention="free",
    )  # fmt: skip
    run = planted_runs.of_checkpoints(tmp_path / "run", made, description=description)
    found = measure(run, tmp_path / "test.parquet")
    assert found["step"].tolist() == [0, 0, 10, 10, 100, 100]
    expected = np.array(list(half.values())) / law.couplings
    np.testing.assert_allclose(found["own_share"], expected.ravel(), atol=1e-6)
    tables.CLOCKS.write(tmp_path / "clock.parquet", found, {})
    pd.testing.assert_frame_equal(tables.CLOCKS.read(tmp_path / "clock.parquet")[0], found)


@pytest.mark.parametrize(
    "description",
    [dict(architecture="bert", mlp=8), dict(architecture="gpt", mlp=8)],
    ids=["masked", "causal"],
)
def test_conditionals_of_a_student_are_those_of_its_losses(description):
    sizes = dict(vocabulary=3, length=5, layers=1, heads=2, width=8)
    model = models.build({**description, **sizes}).eval()
    tokens = np.random.default_rng(0).integers(0, 3, (7, 5))
    found = np.take_along_axis(student_logs(model, tokens), tokens[:, :, None], axis=2)[:, :, 0]
    asked = found[:, 1:] if model.about.causal else found
    losses = sequence_sums(model, torch.from_numpy(tokens)).loss_sum
    np.testing.assert_allclose(-asked.sum(axis=1), losses, rtol=1e-5)


def test_times_are_interpolated_in_the_logarithm_and_what_is_not_reached_is_said():
    steps, terms = np.array([0, 10, 100, 1000]), {}
    terms[0] = [0.2, 0.2, 0.05, 0.0]  # half of 0.2 after 2/3 of the way from 10 to 100
    terms[1] = [0.1, 0.1, 0.08, 0.06]
    terms[2] = [0.04, 0.0, 0.0, 0.0]  # there at the start
    frames = [
        pd.DataFrame(
            dict(step=steps, term=term, order=2 + term % 2, information=0.1 * (2 - term % 2),
                 nested=False, gap=gap, share=[0, 0.4, 0.6, 0.96], own_share=[0, 0, 0, 0.5])
        )
        for term, gap in terms.items()
    ]  # fmt: skip
    found = times(pd.concat(frames))
    assert found["term"].tolist() == [0, 0, 1, 1, 2, 2]
    assert found["order"].tolist() == [2, 2, 3, 3, 2, 2]
    assert found["left"].tolist() == [0.5, 0.05] * 3
    assert found["reached"].tolist() == [True, True, False, False, True, True]
    late = 10 ** (2 + 0.8)  # 0.01 of 0.05, 0
    np.testing.assert_allclose(found["time"], [10 ** (1 + 2 / 3), late, 1000, 1000, 1, 10**0.75])
    np.testing.assert_allclose(times(frames[0], "share")["time"], [10**1.5, 10 ** (2 + 35 / 36)])
    assert times(frames[0], "own_share")["reached"].tolist() == [True, False]


@pytest.mark.parametrize("keep", [[2, 3], [2], [3]])
@pytest.mark.parametrize("scale", [0.25, 1.0])
def test_losses_on_clones_are_those_of_all_states(keep, scale):
    clone = CodeLaw(SITES, scale * LAW.couplings * np.isin(LAW.orders, keep), LENGTH)
    shares = np.array([[0.0, 0.0, 0.0, 0.0], [0.4, 0.9, 0.2, 1.1], [1.3, 1.0, 0.7, 0.5]])
    states = all_states(2, LENGTH)
    weights, expected = np.exp(clone.log_probability(states)), []
    for row in shares * LAW.couplings:
        logs = student(SITES, row, states)
        expected.append(-weights @ np.take_along_axis(logs, states[:, :, None], 2)[:, :, 0].mean(1))
    np.testing.assert_allclose(clone_losses(LAW, clone.means, shares), expected, atol=1e-12)
