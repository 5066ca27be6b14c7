"""The compiled loops against explicit masking: every copy written out and put through the model.

What they replace is no approximation, so losses agree to rounding and gradients are those that
autograd finds through the explicit copies.
"""

import explicit
import pytest
import torch

from manybody.data.vector_loops import LANES
from manybody.models import build
from manybody.models.objectives import choose_masks, masked_loss, sequence_sums

SIZES = [(10, 5), (7, 3), (4, 11)]  # L and |V|: multiples of a tile's sides, and none
# Loops of each number of layers are compiled on their own, for ten seconds.
LAYERS = [1, 2, pytest.param(3, marks=pytest.mark.long)]
# And for each precision: those of two layers in double precision are compiled every day.
SINGLE = [1, *(pytest.param(layers, marks=pytest.mark.long) for layers in (2, 3))]


def model_of(layers: int, length: int, vocabulary: int, bias: bool = True, kind=torch.float64):
    torch.manual_seed(layers)
    sizes = dict(length=length, vocabulary=vocabulary, layers=layers, rank=None)
    model = build(dict(architecture="factored", bias=bias, variant="exact", **sizes))
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=len(weight) ** -0.5)
    return model.to(kind)


def draw(count: int, length: int, vocabulary: int):
    return torch.randint(vocabulary, (count, length), generator=torch.Generator().manual_seed(1))


def gradients(model, loss):
    return torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)


def worst(found, expected) -> float:
    """Largest difference of any two tensors, relative to the largest number of the second."""
    pairs = zip(found, expected, strict=True)
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def compare(model, tokens, bound):
    """Losses, correctness and gradients of the loops against explicit copies."""
    loss, correct = model.all_masked_loss(tokens)
    expected, right = explicit.masked(model, tokens)
    assert loss.shape == (tokens.numel(),)
    assert float((loss - expected).detach().abs().max()) < bound
    assert torch.equal(correct, right)
    # Weights of the losses that are not all equal take another way back.
    for weights in (1, 1 / loss.numel(), torch.linspace(-1, 2, loss.numel(), dtype=loss.dtype)):
        found = gradients(model, (loss * weights).sum())
        assert worst(found, gradients(model, (expected * weights).sum())) < bound


@pytest.mark.long
@pytest.mark.parametrize(("kind", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("length", "vocabulary"), SIZES)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_loss_and_gradients_are_those_of_explicit_copies(
    layers, length, vocabulary, bias, kind, bound
):
    model = model_of(layers, length, vocabulary, bias, kind)
    compare(model, draw(LANES + 3, length, vocabulary), bound)


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("count", [1, LANES, 64, 131])
def test_any_number_of_sequences(layers, count):
    compare(model_of(layers, 6, 4), draw(count, 6, 4), 1e-12)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_energy_s_loops_are_its_logits(order):
    torch.manual_seed(order)
    model = build(dict(architecture="energy", vocabulary=4, length=7, order=order)).double()
    compare(model, draw(21, 7, 4), 1e-12)


@pytest.mark.parametrize("layers", SINGLE)
def test_the_number_of_threads_changes_no_bit(layers):
    model = model_of(layers, 10, 5, kind=torch.float32)
    tokens = draw(300, 10, 5)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            loss, correct = model.all_masked_loss(tokens)
            results.append((loss.detach(), correct, *gradients(model, loss.sum())))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(one, two) for one, two in zip(results[0], other, strict=True))


@pytest.mark.parametrize("layers", LAYERS)
def test_a_training_objective_takes_them(layers):
    """`masked_loss` on all masks, `sequence_sums` without gradients, and the rows of one copy."""
    model = model_of(layers, 10, 5)
    tokens = draw(9, 10, 5)
    loss, correct = masked_loss(model, tokens)
    assert "CompiledLoss" in type(loss.grad_fn).__name__
    by_logits, right = masked_loss(model, tokens, *choose_masks(9, 10, "all"))
    torch.testing.assert_close(loss, by_logits, rtol=0, atol=1e-12)
    assert torch.equal(correct, right)
    sums = sequence_sums(model, tokens)
    torch.testing.assert_close(sums.loss_sum, loss.detach().view(9, 10).sum(1), rtol=0, atol=1e-11)


@pytest.mark.parametrize("layers", SINGLE)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e20])
def test_a_loss_that_is_not_finite_is_given_as_such(layers, value):
    model = model_of(layers, 10, 5, kind=torch.float32)
    with torch.no_grad():
        model.left[-1][0] = value
        model.attention[-1].fill_(value)
    loss, _ = model.all_masked_loss(draw(5, 10, 5))
    assert not torch.isfinite(loss).all()
    gradients(model, loss.sum())


def test_large_logits_do_not_overflow():
    """The row's maximum is taken off before the exponential."""
    model = model_of(1, 10, 5, kind=torch.float32)
    with torch.no_grad():
        model.bias.copy_(torch.tensor([500.0, 0.0, -500.0, 0.0, 0.0]))
    tokens = draw(9, 10, 5)
    loss, _ = model.all_masked_loss(tokens)
    expected, _ = explicit.masked(model, tokens)
    torch.testing.assert_close(loss, expected.float(), rtol=1e-6, atol=1e-5)


def test_a_token_beyond_the_vocabulary_is_refused():
    model = model_of(2, 10, 5)
    for token in (-1, 5):
        tokens = draw(3, 10, 5)
        tokens[1, 2] = token
        with pytest.raises(IndexError, match="expected 0 to 4"):
            model.all_masked_loss(tokens)


def test_other_models_go_by_their_logits():
    sizes = dict(architecture="factored", length=10, vocabulary=5)
    others = [dict(layers=4, rank=None), dict(layers=2, rank=3), dict(layers=2, variant="paper")]
    tokens = draw(3, 10, 5)
    for other in others:
        assert build({**sizes, **other}).all_masked_loss(tokens) is None
    model = model_of(1, 10, 5, kind=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert model.all_masked_loss(tokens) is None
    assert model.all_masked_loss(tokens) is not None


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("layers", SINGLE)
def test_gradients_without_a_graph_have_the_same_bits(layers, bias):
    model = model_of(layers, 10, 5, bias, torch.float32)
    tokens = draw(3 * LANES + 1, 10, 5)
    loss, correct = model.all_masked_loss(tokens)
    (loss.sum() * 0.37).backward()
    expected = [weight.grad.clone() for weight in model.parameters()]
    for weight in model.parameters():
        weight.grad = None
    total, right = model.set_gradients(tokens, 0.37)
    assert torch.equal(total, loss.sum())
    assert int(right) == int(correct.sum())
    for weight, gradient in zip(model.parameters(), expected, strict=True):
        assert torch.equal(weight.grad, gradient)
    with pytest.raises(IndexError, match="expected 0 to 4"):
        model.set_gradients(tokens + 1, 0.37)
