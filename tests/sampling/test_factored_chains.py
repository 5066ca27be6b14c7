"""The fast forms of factored attention against explicit masking through the model's forward."""

import pytest
import torch

from benchmarks import naive
from manybody.models.factored.network import Factored
from manybody.sampling import footprint
from manybody.sampling.backends import bytes_needed, open_chains
from manybody.sampling.factored import any_depth, compiled, two_layers
from manybody.sampling.factored import parameters as factored_parameters
from manybody.sampling.factored.squares import DirectSquare, TableSquare, cheaper

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


@pytest.mark.parametrize("energy", ["raw", "norm"])
def test_six_layers_whose_squares_take_both_forms_equal_explicit_masking(energy):
    """As at |V| = 500, L = 36, rank 64 (config/lab.yaml): tables, two squares without, tables."""
    model = make_model(6, 6, 16, 14)
    with torch.no_grad():
        for left in model.left:
            left *= 0.4  # else six squares in a row reach 1e11, and rounding is all that is left
    weights = factored_parameters.read(model, "none")
    forms = [cheaper(weights, layer) for layer in range(1, 5)]
    assert forms == [TableSquare, DirectSquare, DirectSquare, TableSquare]
    assert model.about.order == 33
    chains = open_chains(model, make_tokens(2, 14, 16), energy, "none")
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


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("rank", [None, 3])
def test_an_equal_token_changes_nothing(layers, rank):
    model = make_model(layers, rank, 9, 6)
    chains = open_chains(model, make_tokens(2, 6, 9))
    every, at = torch.arange(2), torch.tensor([4, 1])
    ratios, handle = chains.log_ratio(every, at, chains.tokens[every, at])
    assert ratios.abs().max() == 0
    energies = chains.energy()
    chains.accept(handle, torch.ones(2, dtype=torch.bool))
    assert torch.allclose(chains.energy(), energies, rtol=1e-13, atol=0)


def test_proposals_in_several_batches_are_the_same_proposals(monkeypatch):
    model, tokens = make_model(4, 2, 19, 5), make_tokens(5, 5, 19)
    every, at, new = torch.arange(5), torch.arange(5), torch.arange(5) + 7
    whole = open_chains(model, tokens)
    ratios, handle = whole.log_ratio(every, at, new)
    taken = torch.tensor([True, False, True, True, False])
    whole.accept(handle, taken)
    monkeypatch.setattr(footprint, "PROPOSALS", 1)
    parts = open_chains(model, tokens)
    same, handle = parts.log_ratio(every, at, new)
    parts.accept(handle, taken)
    torch.testing.assert_close(same, ratios, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.energy(), whole.energy(), rtol=1e-12, atol=1e-12)
    assert torch.equal(parts.tokens, whole.tokens)


@pytest.mark.parametrize("rank", [None, 3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_tensor_operations_of_two_layers_equal_the_compiled_loops(rank, dtype):
    """What they do on a GPU, done on a CPU."""
    tolerance = 1e-11 if dtype == torch.float64 else 1e-4
    close = dict(rtol=tolerance, atol=tolerance)
    every, generator = torch.arange(4), torch.Generator().manual_seed(4)
    model, tokens = make_model(2, rank, 9, 6, dtype=dtype), make_tokens(4, 6, 9)
    compiled = open_chains(model, tokens)
    batched = two_layers.PairedChains(factored_parameters.read(model, "none"), tokens)
    batched._steps, batched._as_given = two_layers._OnTensors, lambda tensor: tensor
    batched.rebuild()
    for _ in range(20):
        at = torch.randint(6, (4,), generator=generator)
        new = torch.randint(9, (4,), generator=generator)
        taken = torch.rand(4, generator=generator) < 0.6
        logits = [chains.logits(every, at).double() for chains in (compiled, batched)]
        torch.testing.assert_close(*logits, **close)
        proposals = [chains.log_ratio(every, at, new) for chains in (compiled, batched)]
        torch.testing.assert_close(proposals[0][0], proposals[1][0], **close)
        for chains, (_, handle) in zip((compiled, batched), proposals, strict=True):
            chains.accept(handle, taken)
        torch.testing.assert_close(compiled.energy(), batched.energy(), **close)
        assert torch.equal(compiled.tokens, batched.tokens)


@pytest.mark.parametrize(
    ("layers", "rank", "vocabulary", "length"), [(3, 2, 19, 6), (4, 2, 19, 5), (5, 2, 19, 4)]
)
@pytest.mark.parametrize("energy", ["raw", "norm", "raw, features first"])
def test_deep_models_in_tensors_equal_those_in_loops(
    layers, rank, vocabulary, length, energy, monkeypatch
):
    """What deep models do on a GPU, and for vocabularies whose tables are too large."""
    if energy == "raw, features first":
        monkeypatch.setattr(footprint, "score_bytes", lambda sizes: 2**31)
    energy = energy.split(",")[0]
    weights = factored_parameters.read(make_model(layers, rank, vocabulary, length), "none")
    assert all(footprint.has_tables(weights, layer) for layer in range(1, layers - 1))
    tokens = make_tokens(4, length, vocabulary)
    both = [kind(weights, tokens, energy) for kind in (compiled.LoopedChains, any_depth.DeepChains)]
    every, generator = torch.arange(4), torch.Generator().manual_seed(4)
    for _ in range(20):
        at = torch.randint(length, (4,), generator=generator)
        new = torch.randint(vocabulary, (4,), generator=generator)
        taken = torch.rand(4, generator=generator) < 0.6
        proposals = [chains.log_ratio(every, at, new) for chains in both]
        scale = both[1].scores.abs().sum(1)
        assert ((proposals[0][0] - proposals[1][0]).abs() / scale).max() < TOLERANCE
        for chains, (_, handle) in zip(both, proposals, strict=True):
            chains.accept(handle, taken)
        assert torch.equal(both[0].tokens, both[1].tokens)
        assert ((both[0].energy() - both[1].energy()).abs() / scale).max() < TOLERANCE
        logits = [chains.logits(every, at) for chains in both]
        assert (logits[0] - logits[1]).abs().max() < TOLERANCE * logits[1].abs().max()


def test_layer_norm_has_no_such_form():
    assert not Factored(9, 6, 2, rank=3, variant="paper").about.closed_form
    assert Factored(9, 6, 2, rank=3).about.closed_form


@pytest.mark.parametrize("energy", ["raw", "norm"])
def test_620_chains_at_the_size_of_the_paper_fit_in_groups(energy):
    """|V| = 10,000, L = 128, rank 400: tables and one group of chains below 16 GiB."""
    for layers in (2, 4):
        with torch.device("meta"):
            model = Factored(10_000, 128, layers, rank=400)
        shared, each = bytes_needed(model, energy, "none")
        assert shared + 20 * each < 16 * 2**30


@pytest.mark.parametrize(
    ("layers", "rank", "vocabulary", "length"),
    [(2, 8, 40, 12), (2, None, 40, 12), (3, 6, 60, 10), (3, None, 20, 8), (4, 6, 60, 10)],
)
@pytest.mark.parametrize("energy", ["raw", "norm"])
def test_single_precision_stays_near_the_naive_double_energy(
    layers, rank, vocabulary, length, energy
):
    """After 300 moves too, without rebuilding: max(1e-6, 3 x the naive single deviation)."""
    single = make_model(layers, rank, vocabulary, length, dtype=torch.float32)
    double = make_model(layers, rank, vocabulary, length, dtype=torch.float32).double()
    chains = open_chains(single, make_tokens(4, length, vocabulary), energy)
    every, generator = torch.arange(4), torch.Generator().manual_seed(3)
    for moves in (0, 300):
        for _ in range(moves):
            positions = torch.randint(length, (4,), generator=generator)
            proposals = torch.randint(vocabulary, (4,), generator=generator)
            _, handle = chains.log_ratio(every, positions, proposals)
            chains.accept(handle, torch.ones(4, dtype=torch.bool))
        exact = all_scores(double, chains.tokens, energy, "none")
        naive = all_scores(single, chains.tokens, energy, "none").double()
        size = all_masked_logits(double, chains.tokens)
        size = size.gather(2, chains.tokens[..., None]).abs().sum((1, 2))
        ours = ((chains.energy() + exact.sum(1)).abs() / size).max()
        theirs = ((naive - exact).sum(1).abs() / size).max()
        assert ours <= max(1e-6, 3 * theirs)


def all_scores(model, tokens, energy, gauge):
    """The score (C, L) of each position's token; E is minus their sum."""
    logits = all_masked_logits(model, tokens)
    if energy == "norm":
        logits = logits.log_softmax(-1)
    elif gauge == "mean":
        logits = logits - logits.mean(-1, keepdim=True)
    return logits.gather(2, tokens[..., None]).squeeze(2)


def all_masked_logits(model, tokens):
    """h_i (C, L, |V|): every position masked in a copy of its own."""
    each = torch.eye(model.length, dtype=torch.bool)
    copies = [model(row.expand(model.length, -1), each) for row in tokens]
    return torch.stack([copy[each] for copy in copies])
