"""Linear maps by oneDNN and attention, against torch's own in double precision."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from manybody import models
from manybody.io.devices import torch_threads
from manybody.models import linear
from manybody.models.attention import SHORT, attend, attend_once
from manybody.models.gpt import network as gpt
from manybody.models.linear import Linear, accelerate_layers

torch_product = torch.nn.functional.linear


@pytest.fixture
def calls(monkeypatch) -> list:
    """The shapes of the products that go through oneDNN."""
    if not linear.PRODUCTS:
        pytest.skip("this build of torch has no oneDNN")
    made, product = [], linear._product

    def counted(rows, *others):
        made.append(tuple(rows.shape))
        return product(rows, *others)

    monkeypatch.setattr(linear, "by_onednn", True)
    monkeypatch.setattr(linear, "_product", counted)
    return made


def random(*shapes, seed=3) -> list:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator) for shape in shapes]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("frozen", [None, 0, 1])
def test_values_and_gradients_are_those_of_torch(calls, bias, frozen):
    given = random((3, 50, 70), (123, 70), (123,))[: 3 if bias else 2]
    weights = random((3, 50, 123), seed=4)[0]
    for part in given:
        part.requires_grad_()
    if frozen is not None:
        given[frozen].requires_grad_(False)
    exact = [part.detach().double().requires_grad_(part.requires_grad) for part in given]
    found, expected = linear.linear(*given), torch_product(*exact)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-5)
    (found * weights).sum().backward()
    (expected * weights.double()).sum().backward()
    for one, other in zip(given, exact, strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            torch.testing.assert_close(one.grad.double(), other.grad, rtol=0, atol=2e-4)
    assert len(calls) == (3 if frozen is None else 2)


@pytest.mark.parametrize("change", ["small", "double", "half", "autocast"])
def test_what_onednn_does_not_do_faster_is_left_to_torch(calls, change):
    rows, weight = random((3, 50, 70), (123, 70))
    rows = rows[0, :10] if change == "small" else rows
    if change in ("double", "half"):
        kind = {"double": torch.float64, "half": torch.bfloat16}[change]
        rows, weight = rows.to(kind), weight.to(kind)
    with torch.autocast("cpu", enabled=change == "autocast"):
        assert torch.equal(linear.linear(rows, weight), torch_product(rows, weight))
    assert not calls


def test_a_split_product_keeps_what_tf32_cuts_off(monkeypatch):
    given = random((50, 70), (123, 70))
    exact = torch_product(*(part.double() for part in given))

    def in_tf32(rows, weight, bias=None):
        cut = ((part.view(torch.int32) >> 13 << 13).view(torch.float32) for part in (rows, weight))
        return torch_product(*(part.double() for part in cut))

    assert (in_tf32(*given) - exact).abs().max() > 1e-3
    monkeypatch.setattr(linear.functional, "linear", in_tf32)
    assert (linear.split_product(*given) - exact).abs().max() < 5e-5


@pytest.mark.parametrize("architecture", ["bert", "gpt", "encoder"])
def test_layers_of_models_go_through_it(calls, architecture):
    sizes = dict(vocabulary=30, length=16, layers=2, heads=4, width=32, mlp=64)
    model = models.build(dict(architecture=architecture, **sizes))
    tokens = torch.randint(30, (100, 16), generator=torch.Generator().manual_seed(0))
    logits = model(tokens)
    assert calls
    for part in model.modules():
        if type(part) is Linear:
            part.__class__ = nn.Linear
    torch.testing.assert_close(model(tokens), logits, rtol=0, atol=1e-5)
    accelerate_layers(model)
    assert any(type(part) is Linear for part in model.modules())


def compare(found, expected, *given):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    weights = random(found.shape, seed=5)[0].double()
    gradients = [torch.autograd.grad((part * weights).sum(), given) for part in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-11)


@pytest.mark.parametrize("channels", [16, 5])  # whole lanes, and not
@pytest.mark.parametrize("length", [1, 7, 16, SHORT + 1])
@pytest.mark.parametrize(("causal", "window"), [(False, 0), (True, 0), (True, 3)])
def test_attention_of_rows_is_that_of_torch(length, channels, causal, window):
    mixed = random((5, length, 6 * channels))[0].double().requires_grad_()
    query, key, value = mixed.unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
    places = torch.arange(length)
    behind = places[:, None] - places
    seen = (behind >= 0) & (behind < (window or length)) if causal else behind < length
    expected = scaled_dot_product_attention(query, key, value, seen, scale=0.3)
    with torch_threads(length % 3 + 1):
        found = attend(mixed, 2, 0.3, causal, window)
        compare(found, expected.transpose(1, 2).flatten(2), mixed)


def test_products_without_avx_512_are_by_mkl(monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert linear._suits_mkl() == torch.backends.mkl.is_available()


def test_hidden_rows_have_no_share_and_the_largest_of_large_scores_takes_all():
    mixed = random((2, 6, 48))[0]
    changed = mixed.clone()
    changed[:, 3:, :32] = torch.tensor([[4.0], [8.0], [12.0]])
    changed[:, 3:, 32:] = torch.tensor([[1e30], [2e30], [3e30]])
    found = attend(changed, 2, 0.3, True)
    assert torch.equal(found[:, :3], attend(mixed, 2, 0.3, True)[:, :3])
    torch.testing.assert_close(found[:, 3:], changed[:, 3:, 32:])


@pytest.mark.parametrize("heads", [1, 3])
def test_attention_of_one_query_is_that_of_its_keys_and_values(heads):
    shapes = (4, 6), (4, 7, 6), (6, 6), (6,), (6, 6), (6,)
    given = query, rows, *weights = [part.double().requires_grad_() for part in random(*shapes)]
    mixed = [torch_product(rows, *weights[:2]), torch_product(rows, *weights[2:])]
    split = [part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query[:, None], *mixed)]
    expected = scaled_dot_product_attention(*split).transpose(1, 2).flatten(1)
    compare(attend_once(query, rows, weights[:2], weights[2:], heads), expected, *given)


@pytest.mark.parametrize("window", [2, 5, 9])  # of local layers; the text has six tokens
def test_a_gpt_attends_as_that_of_the_library(monkeypatch, window):
    monkeypatch.setattr(gpt, "WINDOW", window)
    model = gpt.Gpt(vocabulary=7, length=6, layers=2, heads=2, width=8, mlp=8).double()
    tokens = torch.arange(12).view(2, 6) % 7
    torch.testing.assert_close(model(tokens), model.as_transformers().double()(tokens).logits)
