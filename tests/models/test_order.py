"""The order of a factored model: alternating sums of its logits vanish exactly where they should.

For m context positions with two token values each, the alternating sum of the logits over the 2^m
assignments is the part of the logits that couples all m of them (nlp-clones, section 4). n layers
have degree 2^(n-1) in the context, so the sum vanishes once m > 2^(n-1); with the predicted token,
m context positions are order m + 1.
"""

import itertools

import pytest
import torch

from manybody.models import build

LENGTH, VOCABULARY, POSITION = 12, 6, 4


def model_of(layers: int, variant: str, rank: int | None, heads: int = 1):
    torch.manual_seed(7)
    model = build(
        {
            "architecture": "factored",
            "vocabulary": VOCABULARY,
            "length": LENGTH,
            "layers": layers,
            "rank": rank,
            "variant": variant,
            "heads": heads,
        }
    ).double()
    with torch.no_grad():
        for weight in (*model.left, *model.right, model.bias):
            weight.normal_()  # large enough for the highest degree to show
    return model


@torch.no_grad()
def relative_size(model, context: int) -> float:
    """The coefficient that couples `context` positions, relative to the largest logit.

    The logits at one position, masked, are a polynomial in bits, each of which says which of two
    sequences another position takes its token from. Its highest coefficient is the alternating sum
    over all assignments.
    """
    generator = torch.Generator().manual_seed(context)
    chosen = torch.randperm(LENGTH - 1, generator=generator)[:context]
    chosen = chosen + (chosen >= POSITION)
    first = torch.randint(VOCABULARY, (LENGTH,), generator=generator)
    step = torch.randint(1, VOCABULARY, (LENGTH,), generator=generator)
    pair = torch.stack([first, (first + step) % VOCABULARY])
    bits = torch.tensor(list(itertools.product((0, 1), repeat=context)))
    tokens = pair[0].repeat(len(bits), 1)
    tokens[:, chosen] = torch.where(bits == 1, pair[1, chosen], pair[0, chosen])
    rows = torch.arange(len(bits))
    logits = model.masked_logits(tokens, rows, torch.full_like(rows, POSITION))
    signs = (-1.0) ** bits.sum(dim=1, keepdim=True)
    return float((signs * logits).sum(dim=0).abs().max() / logits.abs().max())


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize(("rank", "heads"), [(None, 1), (4, 1), (None, 2)])
def test_exact_model_has_order_two_to_the_layers_minus_one_plus_one(layers, rank, heads):
    model = model_of(layers, "exact", rank, heads)
    assert model.about.order == 2 ** (layers - 1) + 1
    assert not model.about.nominal
    for context in range(model.about.order, LENGTH):
        assert relative_size(model, context) < 1e-12
    assert relative_size(model, model.about.order - 1) > 1e-4  # just below it does not vanish


@pytest.mark.parametrize("layers", [2, 3, 4])
def test_layer_norm_brings_in_every_order(layers):
    model = model_of(layers, "paper", None)
    assert model.about.nominal
    for context in range(3, 11):
        assert relative_size(model, context) > 1e-2


def test_one_layer_has_no_layer_norm_and_stays_exact():
    model = model_of(1, "paper", None)
    assert (model.about.nominal, relative_size(model, 2) < 1e-12) == (False, True)
