"""The fast forms of factored attention against explicit masking through the model's forward."""

import pytest
import torch

from manybody.models.factored.network import Factored
from manybody.sampling.backends import open_chains
from manybody.sampling.factored import any_depth, compiled, two_layers
from manybody.sampling.factored import weights as factored_weights
from manybody.sampling.factored.squares import DirectSquare, TableSquare, cheaper

# layers, rank, |V|, L: every backend, and within the deep one both forms of every square.
SIZES = [
    (1, None, 7, 6),
    (1, 3, 7, 6),
    (2, None, 7, 6),
    (2, 3, 11, 6),
    (3, None, 6, 6),
    (3, 2, 19, 6),
    (3, 6, 7, 5),
    (4, None, 5, 5),
    (4, 2, 19, 5),
    (4, 6, 7, 5),
    (5, 2, 19, 4),
    (5, 5, 6, 4),
]
ENERGIES = [("raw", "none"), ("raw", "mean"), ("norm", "none")]
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


@torch.no_grad()
def all_masked_logits(model, tokens):
    """h_i (C, L, |V|): every position masked in a copy of its own."""
    each = torch.eye(model.length, dtype=torch.bool)
    copies = [model(row.expand(model.length, -1), each) for row in tokens]
    return torch.stack([copy[each] for copy in copies])


def all_scores(model, tokens, energy, gauge):
    """The score (C, L) of each position's token; E is minus their sum."""
    logits = all_masked_logits(model, tokens)
    if energy == "norm":
        logits = logits.log_softmax(-1)
    elif gauge == "mean":
        logits = logits - logits.mean(-1, keepdim=True)
    return logits.gather(2, tokens[..., None]).squeeze(2)


def changed(tokens, positions, proposals):
    return tokens.scatter(1, positions[:, None], proposals[:, None])


def assert_all_equal(chains, model, energy, gauge):
    scores = all_scores(model, chains.tokens, energy, gauge)
    size = scores.abs().sum(1)
    assert ((chains.energy() + scores.sum(1)).abs() / size).max() < TOLERANCE
    logits = all_masked_logits(model, chains.tokens)
    every = torch.arange(len(scores))
    for position in range(model.length):
        ours = chains.logits(every, torch.full_like(every, position))
        assert (ours - logits[:, position]).abs().max() < TOLERANCE * logits.abs().max()


@pytest.mark.parametrize(("layers", "rank", "vocabulary", "length"), SIZES)
@pytest.mark.parametrize(("energy", "gauge"), ENERGIES)
def test_ratios_energies_and_logits_equal_explicit_masking_along_a_run(
    layers, rank, vocabulary, length, energy, gauge
):
    model = make_model(layers, rank, vocabulary, length)
    tokens = make_tokens(3, length, vocabulary)
    chains = open_chains(model, tokens, energy, gauge)
    assert_all_equal(chains, model, energy, gauge)
    generator = torch.Generator().manual_seed(2)
    accepted, step = 0, 0
    while accepted < 100:
        # Some of the chains, in any order, each at a position of its own.
        some = torch.randperm(3, generator=generator)[: 1 + step % 3]
        positions = torch.randint(length, some.shape, generator=generator)
        proposals = torch.randint(vocabulary, some.shape, generator=generator)
        ratios, handle = chains.log_ratio(some, positions, proposals)
        assert ratios.dtype == torch.float64
        if step % 7 == 0:
            before = all_scores(model, chains.tokens[some], energy, gauge)
            after = changed(chains.tokens[some], positions, proposals)
            rise = all_scores(model, after, energy, gauge) - before
            rise = rise.scatter(1, positions[:, None], 0.0).sum(1)
            assert ((ratios - rise).abs() / before.abs().sum(1)).max() < TOLERANCE
        expected = chains.tokens.clone()
        taken = torch.rand(some.shape, generator=generator) < 0.7
        expected[some[taken], positions[taken]] = proposals[taken]
        chains.accept(handle, taken)
        assert torch.equal(chains.tokens, expected)
        accepted, step = accepted + int(taken.sum()), step + 1
    assert_all_equal(chains, model, energy, gauge)


@pytest.mark.parametrize("energy", ["raw", "norm"])
def test_six_layers_whose_squares_take_both_forms_equal_explicit_masking(energy):
    """As at |V| = 500, L = 36, rank 64 (config/lab.yaml): tables, two squares without, tables."""
    model = make_model(6, 6, 16, 14)
    with torch.no_grad():
        for left in model.left:
            left *= 0.4  # else six squares in a row reach 1e11, and rounding is all that is left
    weights = factored_weights.read(model, "none")
    forms = [cheaper(weights, layer) for layer in range(1, 5)]
    assert forms == [TableSquare, DirectSquare, DirectSquare, TableSquare]
    assert model.about.order == 33
    chains = open_chains(model, make_tokens(2, 14, 16), energy, "none")
    generator = torch.Generator().manual_seed(2)
    every = torch.arange(2)
    for _ in range(12):
        positions = torch.randint(14, (2,), generator=generator)
        proposals = torch.randint(16, (2,), generator=generator)
        before = all_scores(model, chains.tokens, energy, "none")
        after = changed(chains.tokens, positions, proposals)
        rise = all_scores(model, after, energy, "none") - before
        rise = rise.scatter(1, positions[:, None], 0.0).sum(1)
        ratios, handle = chains.log_ratio(every, positions, proposals)
        assert ((ratios - rise).abs() / before.abs().sum(1)).max() < TOLERANCE
        chains.accept(handle, torch.ones(2, dtype=torch.bool))
    assert_all_equal(chains, model, energy, "none")


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


def test_the_bias_moves_the_energy_and_the_proposals_but_no_raw_ratio():
    for layers in (2, 3):
        with_bias = make_model(layers, 3, 9, 6)
        without = Factored(9, 6, layers, rank=3, bias=False).double().eval()
        without.load_state_dict({k: v for k, v in with_bias.state_dict().items() if k != "bias"})
        tokens = make_tokens(2, 6, 9)
        one, other = open_chains(with_bias, tokens), open_chains(without, tokens)
        every, at, new = torch.arange(2), torch.tensor([0, 5]), torch.tensor([1, 2])
        bias = with_bias.bias.detach()
        assert torch.equal(one.log_ratio(every, at, new)[0], other.log_ratio(every, at, new)[0])
        shift = other.energy() - one.energy()
        torch.testing.assert_close(shift, bias[tokens].sum(1), rtol=1e-12, atol=1e-12)
        logits = one.logits(every, at) - other.logits(every, at)
        torch.testing.assert_close(logits, bias.expand(2, -1), rtol=1e-12, atol=1e-12)


def test_proposals_in_several_batches_are_the_same_proposals(monkeypatch):
    model, tokens = make_model(4, 2, 19, 5), make_tokens(5, 5, 19)
    every, at, new = torch.arange(5), torch.arange(5), torch.arange(5) + 7
    whole = open_chains(model, tokens)
    ratios, handle = whole.log_ratio(every, at, new)
    taken = torch.tensor([True, False, True, True, False])
    whole.accept(handle, taken)
    monkeypatch.setattr(any_depth, "WORK", 1)
    parts = open_chains(model, tokens)
    same, handle = parts.log_ratio(every, at, new)
    parts.accept(handle, taken)
    torch.testing.assert_close(same, ratios, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.energy(), whole.energy(), rtol=1e-12, atol=1e-12)
    assert torch.equal(parts.tokens, whole.tokens)


@pytest.mark.parametrize("rank", [None, 3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_tensor_operations_equal_the_compiled_loops(rank, dtype):
    """What two layers do on a GPU, and three layers there, done on a CPU."""
    tolerance = 1e-11 if dtype == torch.float64 else 1e-4
    every, generator = torch.arange(4), torch.Generator().manual_seed(4)
    for layers in (2, 3):
        model, tokens = make_model(layers, rank, 9, 6, dtype=dtype), make_tokens(4, 6, 9)
        compiled, weights = open_chains(model, tokens), factored_weights.read(model, "none")
        if layers == 2:
            batched = two_layers.PairedChains(weights, tokens)
            batched._steps, batched._as_given = two_layers._OnTensors, lambda tensor: tensor
            batched.rebuild()
        else:
            batched = any_depth.DeepChains(weights, tokens, "raw")
        for _ in range(20):
            at = torch.randint(6, (4,), generator=generator)
            new = torch.randint(9, (4,), generator=generator)
            taken = torch.rand(4, generator=generator) < 0.6
            close = dict(rtol=tolerance, atol=tolerance)
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
        monkeypatch.setattr(compiled, "_form_bytes", lambda weights: 2**31)
    energy = energy.split(",")[0]
    weights = factored_weights.read(make_model(layers, rank, vocabulary, length), "none")
    assert compiled.applies(weights)
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
    assert not Factored(9, 6, 2, rank=3, variant="paper").closed_form
    assert Factored(9, 6, 2, rank=3).closed_form
