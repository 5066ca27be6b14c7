"""The fast forms of factored attention against explicit masking through the model's forward."""

import pytest
import torch

from benchmarks import naive
from manybody.models.factored.network import Factored
from manybody.sampling import draws, footprint
from manybody.sampling.backends import open_chains
from manybody.sampling.factored.any_depth import DeepChains
from manybody.sampling.factored.copies import ExplicitChains, read
from manybody.sampling.factored.deep_loops import LoopedChains

TOLERANCE = 1e-10


def make_model(layers, rank, vocabulary, length, seed=0, bias=True, dtype=torch.float64):
    """Weights such that each layer's square is of the size of the one-hots."""
    generator = torch.Generator().manual_seed(seed)
    model = Factored(vocabulary, length, layers, rank=rank, bias=bias).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
        for mixing, left in zip(model.attention, model.left, strict=True):
            mixing /= length**0.5
            left *= 0.5 if rank is None else 0.5 / rank**0.5
    return model.to(dtype)


def make_tokens(chains, length, vocabulary, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(vocabulary, (chains, length), generator=generator)


@pytest.mark.parametrize("explicit", [True, False], ids=["explicit", "changes"])
@pytest.mark.parametrize("energy", ["raw", "norm"])
def test_six_layers_equal_explicit_masking(energy, explicit):
    model = make_model(6, 6, 16, 14)
    with torch.no_grad():
        for left in model.left:
            left *= 0.4  # else six squares in a row reach 1e11, and rounding is all that is left
    assert model.about.order == 33
    chains = open_chains(model, make_tokens(2, 14, 16), energy)
    assert type(chains) is ExplicitChains
    if not explicit:
        chains = DeepChains(read(model, "none"), make_tokens(2, 14, 16), energy)
    generator = torch.Generator().manual_seed(2)
    every = torch.arange(2)
    for _ in range(12):
        positions = torch.randint(14, (2,), generator=generator)
        proposals = torch.randint(16, (2,), generator=generator)
        tokens = chains.tokens.clone()
        expected = naive.long_log_ratio(model, tokens, positions, proposals, energy)
        ratios, handle = chains.log_ratio(every, positions, proposals)
        exact = naive.energy(model, tokens, energy)
        assert ((ratios - expected).abs() / exact.abs()).max() < TOLERANCE
        assert ((chains.energy() - exact).abs() / exact.abs()).max() < TOLERANCE
        chains.accept(handle, torch.ones(2, dtype=torch.bool))


@pytest.mark.long  # compiles the loops of deep models
def test_proposals_in_several_batches_are_the_same_proposals(monkeypatch):
    model, tokens = make_model(4, 2, 19, 5), make_tokens(5, 5, 19)
    every, at, new = torch.arange(5), torch.arange(5), torch.arange(5) + 7
    whole = open_chains(model, tokens)
    ratios, handle = whole.log_ratio(every, at, new)
    taken = torch.tensor([True, False, True, True, False])
    whole.accept(handle, taken)
    monkeypatch.setitem(footprint.PROPOSALS, "cpu", 1)
    parts = open_chains(model, tokens)
    same, handle = parts.log_ratio(every, at, new)
    parts.accept(handle, taken)
    torch.testing.assert_close(same, ratios, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.energy(), whole.energy(), rtol=1e-12, atol=1e-12)
    assert torch.equal(parts.tokens, whole.tokens)


def walk(both, length, vocabulary):
    """Twenty proposals to 4 chains of two kinds: their logits, ratios, and energies afterwards."""
    every, generator = torch.arange(4), torch.Generator().manual_seed(4)
    for _ in range(20):
        at = torch.randint(length, (4,), generator=generator)
        new = torch.randint(vocabulary, (4,), generator=generator)
        taken = torch.rand(4, generator=generator) < 0.6
        logits = [chains.logits(every, at).double() for chains in both]
        proposals = [chains.log_ratio(every, at, new) for chains in both]
        for chains, (_, handle) in zip(both, proposals, strict=True):
            chains.accept(handle, taken)
        assert torch.equal(both[0].tokens, both[1].tokens)
        yield logits, [ratio for ratio, _ in proposals], [chains.energy() for chains in both]


@pytest.mark.parametrize("rank", [None, 3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_two_layers_in_tensors_equal_their_closed_form(rank, dtype):
    """The work of a GPU, done on a CPU."""
    tolerance = 1e-11 if dtype == torch.float64 else 1e-4
    model, tokens = make_model(2, rank, 9, 6, dtype=dtype), make_tokens(4, 6, 9)
    compiled = open_chains(model, tokens)
    for pairs in walk((compiled, DeepChains(read(model, "none"), tokens, "raw")), 6, 9):
        for pair in pairs:
            torch.testing.assert_close(*pair, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("layers", [2, 3])
def test_answers_tabled_for_pairs_of_tokens_are_those_through_all_channels(layers, monkeypatch):
    weights, tokens = read(make_model(layers, 3, 9, 6), "none"), make_tokens(4, 6, 9)
    tabled = DeepChains(weights, tokens, "norm")
    assert tabled.first.pairs.shape == (layers - 1, 9, 9, 3)
    monkeypatch.setattr(footprint, "TABLES", 1000)
    direct = DeepChains(weights, tokens, "norm")
    assert direct.first.pairs is None
    for pairs in walk((tabled, direct), 6, 9):
        for pair in pairs:
            torch.testing.assert_close(*pair, rtol=1e-11, atol=1e-11)


def test_sums_of_exponentials_are_those_of_torch():
    """At logits that no exponential holds, and lengths that fill no vector."""
    generator = torch.Generator().manual_seed(3)
    rows, weight, bias = (
        torch.randn(*shape, generator=generator) for shape in ((3, 50, 70), (123, 70), (123,))
    )
    exact = rows.double() @ weight.double().T + bias.double()
    exact = 40.0 * exact + 500.0
    exact[0, 0] = -1e4
    for kind, tolerance in ((torch.float64, 1e-13), (torch.float32, 1e-6)):
        given = exact.to(kind)
        expected = given.double().logsumexp(-1)
        torch.testing.assert_close(draws.log_sums(given), expected, rtol=tolerance, atol=0)


@pytest.mark.long  # compiles the loops of deep models
@pytest.mark.parametrize(
    ("layers", "rank", "vocabulary", "length"),
    [(3, 2, 19, 6), (3, 9, 19, 6), (4, 2, 19, 5), (4, 8, 19, 5), (5, 2, 19, 4)],
)
@pytest.mark.parametrize("energy", ["raw", "norm", "raw, features first"])
def test_deep_models_in_tensors_equal_those_in_loops(
    layers, rank, vocabulary, length, energy, monkeypatch
):
    """The work of deep models on a GPU."""
    if energy == "raw, features first":
        monkeypatch.setattr(footprint, "score_bytes", lambda sizes: 2**31)
    energy = energy.split(",")[0]
    weights = read(make_model(layers, rank, vocabulary, length), "none")
    tokens = make_tokens(4, length, vocabulary)
    both = [kind(weights, tokens, energy) for kind in (LoopedChains, DeepChains)]
    for logits, ratios, energies in walk(both, length, vocabulary):
        scale = both[1].scores.abs().sum(1)
        for one, other in (ratios, energies):
            assert ((one - other).abs() / scale).max() < TOLERANCE
        assert (logits[0] - logits[1]).abs().max() < TOLERANCE * logits[1].abs().max()
