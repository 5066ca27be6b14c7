"""Masks, losses and per-sequence sums against their definitions."""

import math

import explicit
import pytest
import torch

from manybody.models import build
from manybody.models.objectives import (
    choose_masks,
    copies_per_sequence,
    masked_loss,
    next_token_loss,
    sequence_sums,
)

BATCH, LENGTH, VOCABULARY = 6, 8, 11


@pytest.fixture
def tokens():
    return torch.randint(VOCABULARY, (BATCH, LENGTH), generator=torch.Generator().manual_seed(2))


def model_of(architecture, dtype=torch.float64):
    torch.manual_seed(4)
    sizes = (
        {"layers": 3, "rank": 5}
        if architecture == "factored"
        else {"layers": 2, "heads": 2, "width": 8, "mlp": 8}
    )
    model = build(
        {"architecture": architecture, "vocabulary": VOCABULARY, "length": LENGTH, **sizes}
    ).to(dtype)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return model


@pytest.mark.parametrize(
    ("length", "masks", "copies"),
    [(128, 0.15, 19), (64, 0.15, 10), (16, 0.15, 2), (3, 0.15, 1), (16, "all", 16), (16, 1.0, 16)],
)
def test_a_share_of_the_positions_is_rounded_and_never_none(length, masks, copies):
    assert copies_per_sequence(length, masks) == copies


def test_masks_are_distinct_seeded_and_uniform():
    rows, positions = choose_masks(4000, 10, 0.3, torch.Generator().manual_seed(1))
    assert rows.tolist() == [row for row in range(4000) for _ in range(3)]
    chosen = positions.view(4000, 3)
    assert (chosen.diff(dim=1) > 0).all()
    again = choose_masks(4000, 10, 0.3, torch.Generator().manual_seed(1))[1]
    other = choose_masks(4000, 10, 0.3, torch.Generator().manual_seed(2))[1]
    assert torch.equal(positions, again)
    assert not torch.equal(positions, other)
    counts = torch.bincount(positions, minlength=10).double()
    assert ((counts - 1200).abs() < 5 * math.sqrt(4000 * 0.3 * 0.7)).all()
    pairs = ((chosen == 0).any(1) & (chosen == 1).any(1)).sum()
    expected = 4000 * 3 * 2 / (10 * 9)
    assert abs(int(pairs) - expected) < 5 * math.sqrt(expected)


def test_all_masks_leave_the_generator_alone():
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    rows, positions = choose_masks(3, 4, "all", generator)
    assert rows.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert positions.tolist() == [0, 1, 2, 3] * 3
    assert torch.equal(generator.get_state(), before)


@pytest.mark.parametrize("architecture", ["factored", "bert"])
def test_masked_loss_is_the_cross_entropy_of_the_hidden_token(architecture, tokens):
    model = model_of(architecture)
    rows, positions = choose_masks(BATCH, LENGTH, 0.3, torch.Generator().manual_seed(3))
    loss, correct = masked_loss(model, tokens, rows, positions)
    expected, hits = explicit.masked(model, tokens, rows, positions)
    assert loss.tolist() == pytest.approx(expected.tolist(), rel=1e-12)
    assert torch.equal(correct, hits)
    assert loss.requires_grad
    assert not correct.requires_grad

    every, right = masked_loss(model, tokens)
    named, named_right = masked_loss(model, tokens, *choose_masks(BATCH, LENGTH, "all"))
    assert torch.allclose(every, named, rtol=1e-12)
    assert torch.equal(right, named_right)
    assert torch.allclose(every[rows * LENGTH + positions], loss, rtol=1e-12)


def test_masks_that_are_hidden_together_tell_nothing_of_each_other(tokens):
    model = model_of("bert")
    rows, positions = choose_masks(BATCH, LENGTH, 0.3, torch.Generator().manual_seed(3))
    loss, _ = masked_loss(model, tokens, rows, positions, together=True)
    others = tokens.clone()
    others[rows, positions] = (tokens[rows, positions] + 1) % VOCABULARY
    hidden = torch.zeros_like(tokens, dtype=torch.bool).index_put(
        (rows, positions), torch.tensor(True)
    )
    logs = torch.log_softmax(model(others, hidden), dim=-1)[rows, positions]
    expected = -logs.gather(1, tokens[rows, positions][:, None]).squeeze(1)
    assert torch.allclose(loss, expected, rtol=1e-12)
    assert not torch.allclose(loss, masked_loss(model, tokens, rows, positions)[0], rtol=1e-3)


def test_next_token_loss_is_the_cross_entropy_of_what_follows(tokens):
    model = model_of("gpt", torch.float32)
    loss, correct = next_token_loss(model, tokens)
    logits = model(tokens)[:, :-1].double().log_softmax(-1)
    expected = -logits.gather(2, tokens[:, 1:, None]).squeeze(2).flatten()
    assert torch.allclose(loss.double(), expected, rtol=1e-5)
    assert torch.equal(correct, (logits.argmax(-1) == tokens[:, 1:]).flatten())
    assert len(loss) == BATCH * (LENGTH - 1)


@pytest.mark.parametrize("architecture", ["factored", "bert", "gpt"])
@pytest.mark.parametrize("numbers", [1, 2000, None])
def test_sequence_sums_add_up_whatever_the_batches(architecture, numbers, tokens):
    model = model_of(architecture)
    sums = sequence_sums(model, tokens, numbers=numbers)
    if model.about.causal:
        loss, correct = next_token_loss(model, tokens)
        predictions, tolerance = LENGTH - 1, 1e-6  # the library's attention is single precision
    else:
        loss, correct = masked_loss(model, tokens)
        predictions, tolerance = LENGTH, 1e-12
    assert sums.loss_sum.dtype == torch.float64
    assert not sums.loss_sum.requires_grad
    assert torch.allclose(sums.loss_sum, loss.view(BATCH, -1).sum(1).double(), rtol=tolerance)
    assert torch.equal(sums.correct, correct.view(BATCH, -1).sum(1))
    assert sums.predictions.tolist() == [predictions] * BATCH


def test_sequence_sums_take_given_masks_and_small_integers(tokens):
    model = model_of("factored")
    positions = choose_masks(BATCH, LENGTH, 0.3, torch.Generator().manual_seed(3))[1].view(
        BATCH, -1
    )
    sums = sequence_sums(model, tokens.to(torch.uint8), positions, numbers=1)
    rows = torch.arange(BATCH).repeat_interleave(positions.shape[1])
    loss, correct = masked_loss(model, tokens, rows, positions.flatten())
    assert torch.allclose(sums.loss_sum, loss.view(BATCH, -1).sum(1), rtol=1e-12)
    assert torch.equal(sums.correct, correct.view(BATCH, -1).sum(1))
    assert sums.predictions.tolist() == [positions.shape[1]] * BATCH


def test_half_precision_logits_are_widened_before_the_loss(tokens):
    model = model_of("bert", torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = masked_loss(model, tokens)
    assert loss.dtype == torch.float32
    assert torch.allclose(loss, masked_loss(model, tokens)[0], atol=0.1)
