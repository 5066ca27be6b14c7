"""The sampler against definitions, enumeration and the naive sampler."""

import itertools
import weakref

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks import naive
from manybody import models
from manybody.io import devices, tables
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.sampling import footprint, masked, metropolis
from manybody.sampling.backends import bytes_needed, open_chains
from manybody.sampling.draws import Draws, invert_on_tensors, propose
from manybody.sampling.metropolis import advance, choose_initial

ENERGIES = [("raw", "none"), ("raw", "mean"), ("norm", "none")]
FACTORED = dict(architecture="factored", vocabulary=7, length=6)
MODELS = {
    "n=1": FACTORED | dict(layers=1, rank=3),
    "n=1 full": FACTORED | dict(layers=1, rank=None),
    "n=2": FACTORED | dict(layers=2, rank=4),
    "n=2 full": FACTORED | dict(layers=2, rank=None, bias=False),
    "n=3": FACTORED | dict(layers=3, rank=4),
    "n=3 full": FACTORED | dict(layers=3, rank=None),
    "n=4": FACTORED | dict(layers=4, rank=3),
    "n=4 full": FACTORED | dict(layers=4, rank=None, vocabulary=5, length=5),
    # Colours by far more than ranks: squares by tables.
    "n=3, tables": FACTORED | dict(layers=3, rank=2, vocabulary=19),
    "n=4, tables": FACTORED | dict(layers=4, rank=2, vocabulary=19, length=5),
    "n=5, tables": FACTORED | dict(layers=5, rank=2, vocabulary=19, length=4),
    "n=5": FACTORED | dict(layers=5, rank=5, vocabulary=6, length=4),
    "n=3 paper": FACTORED | dict(layers=3, rank=4, variant="paper"),
    "n=2, two heads": FACTORED | dict(layers=2, rank=None, heads=2),
    "n=3 full, two heads": FACTORED | dict(layers=3, rank=None, heads=2, init_scale=0.6),
    "bert": dict(
        architecture="bert", vocabulary=7, length=6, layers=2, heads=2, width=8, mlp=12
    ),
    "n=1 softmax": FACTORED | dict(layers=1, attention="softmax"),
    "n=2 softmax": FACTORED | dict(layers=2, attention="softmax"),
    "encoder": dict(
        architecture="encoder", vocabulary=7, length=6, layers=2, heads=2, width=8, mlp=12
    ),
    "interpolated": dict(architecture="interpolated", vocabulary=7, length=6, a=0.7),
    "energy": dict(architecture="energy", vocabulary=7, length=6, order=3),
}  # fmt: skip


def long_if_deep(cases):
    """Cases of a name or a description; the loops of three layers and more are compiled by the long
    ones alone, for half a minute."""
    described = [MODELS[case] if isinstance(case, str) else case for case in cases]
    deep = [one["layers"] > 2 and one.get("variant") != "paper" for one in described]
    marks = [[pytest.mark.long] if one else [] for one in deep]
    return [pytest.param(case, marks=own) for case, own in zip(cases, marks, strict=True)]


def build(description, scale=1.0, dtype=torch.float64):
    """A model whose logits vary by about `scale` with the context."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = models.build(description).to(dtype).eval().requires_grad_(False)
        tokens = torch.randint(model.vocabulary, (64, model.length))
        if description["architecture"] != "factored":
            for parameter in model.parameters():
                parameter += 0.4 * torch.randn_like(parameter)
            spread = model(tokens).std(dim=0).mean()
            last = {"interpolated": "values", "energy": "colours"}.get(description["architecture"])
            (getattr(model, last) if last else model.output.weight).mul_(scale / spread)
            return model
        for left in model.left[:-1]:
            left *= 3.0
        if model.bias is not None:
            model.bias += torch.randn_like(model.bias)
        model.left[-1].mul_(scale / model(tokens).std(dim=0).mean())
    return model


def numbers(chains, length, sweeps, order="permuted", seed=11):
    draws = Draws(seed, chains, length, order)
    visits, uniforms = zip(*(draws.sweep(n) for n in range(1, sweeps + 1)), strict=True)
    return np.stack(visits, axis=1), np.stack(uniforms, axis=1)


def states(model):
    """All |V|^L states, first position slowest."""
    return torch.tensor(list(itertools.product(range(model.vocabulary), repeat=model.length)))


@pytest.mark.long
@pytest.mark.parametrize(("kind", "gauge"), ENERGIES)
@pytest.mark.parametrize("name", MODELS)
def test_energy_and_ratio_are_those_of_the_definition(name, kind, gauge):
    model = build(MODELS[name])
    generator = torch.Generator().manual_seed(5)
    vocabulary, length = model.vocabulary, model.length
    tokens = torch.randint(vocabulary, (9, length), generator=generator)
    chains = open_chains(model, tokens, kind, gauge)
    for _ in range(8):
        some = torch.randperm(9, generator=generator)[:5]
        positions = torch.randint(length, (5,), generator=generator)
        proposals = torch.randint(vocabulary, (5,), generator=generator)
        logits = chains.logits(some, positions)
        state = chains.tokens[some]
        rows = torch.arange(5)
        exact = model(state, torch.arange(length) == positions[:, None])[rows, positions]
        torch.testing.assert_close(logits.double(), exact, rtol=0, atol=1e-10)
        real = proposals != state[rows, positions]
        some, positions, proposals = some[real], positions[real], proposals[real]
        ratio, handle = chains.log_ratio(some, positions, proposals)
        expected = naive.long_log_ratio(model, state[real], positions, proposals, kind, gauge)
        torch.testing.assert_close(ratio, expected, rtol=0, atol=1e-10)
        accepted = torch.rand(len(some), generator=generator) < 0.7
        chains.accept(handle, accepted)
        changed = state[real].clone()
        changed[torch.arange(len(some)), positions] = proposals
        assert torch.equal(
            chains.tokens[some], torch.where(accepted[:, None], changed, state[real])
        )
        energy = naive.energy(model, chains.tokens, kind, gauge)
        torch.testing.assert_close(chains.energy(), energy, rtol=0, atol=1e-10)


WIDE = [(2, 8, 40, 12), (2, None, 40, 12), (3, 6, 60, 10), (3, None, 20, 8), (4, 6, 60, 10)]
SINGLE = [MODELS[name] for name in ("n=2", "n=3", "n=4", "bert")] + [
    FACTORED | dict(layers=layers, rank=rank, vocabulary=vocabulary, length=length)
    for layers, rank, vocabulary, length in WIDE
]


@pytest.mark.parametrize("description", long_if_deep(SINGLE))
@pytest.mark.parametrize(("kind", "gauge"), ENERGIES)
def test_single_precision_stays_close_after_many_moves(description, kind, gauge):
    """Without rebuilding: max(1e-6, 3 x the naive deviation of single precision)."""
    double, single = build(description), build(description).float()
    vocabulary, length = double.vocabulary, double.length
    generator = torch.Generator().manual_seed(6)
    tokens = torch.randint(vocabulary, (4, length), generator=generator)
    chains = open_chains(single, tokens, kind, gauge)
    every = torch.arange(4)
    for moves in (0, 300):
        for _ in range(moves):
            positions = torch.randint(length, (4,), generator=generator)
            shift = torch.randint(1, vocabulary, (4,), generator=generator)
            proposals = (chains.tokens[every, positions] + shift) % vocabulary
            _, handle = chains.log_ratio(every, positions, proposals)
            chains.accept(handle, torch.ones(4, dtype=torch.bool))
        exact = naive.energy(double, chains.tokens, kind, gauge)
        plain = naive.NaiveSampler(single, chains.tokens, kind, gauge).energy()
        logits = [double(chains.tokens, torch.arange(length) == i)[:, i] for i in range(length)]
        scale = torch.stack(logits, dim=1).gather(2, chains.tokens[..., None]).abs().sum(dim=(1, 2))
        deviation = ((chains.energy() - exact).abs() / scale).max()
        assert deviation <= max(1e-6, 3 * ((plain - exact).abs() / scale).max().item())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_proposals_are_drawn_from_the_softmax(dtype):
    """Inversion, on one row at a time and on all: u falls into the drawn token's share."""
    generator = np.random.default_rng(2)
    logits = torch.from_numpy(generator.normal(size=(500, 7), scale=3.0)).to(dtype)
    logits[2:50] = torch.tensor([2.0, -1.0, 0.5, 300.0, -4.0, 299.0, -300.0])
    logits[50:98] = torch.tensor([-1000.0, 2.0, -700.0, 1.0, -1390.0, 3.0, -1200.0])
    uniforms, current = generator.random(500), generator.integers(7, size=500)
    uniforms[:2] = 0.0, 1.0 - 2.0**-53
    uniforms[50] = 0.0  # exp(-1000) is nothing
    shares = np.cumsum(logits.double().softmax(dim=1).numpy(), axis=1)
    expected = np.minimum((shares <= uniforms[:, None]).sum(axis=1), 6)
    rows, own = np.arange(500), logits.double().numpy()
    for draw in (propose, invert_on_tensors):
        drawn, gains = draw(logits, uniforms, current)
        assert np.array_equal(drawn, expected)
        assert np.array_equal(gains, own[rows, drawn] - own[rows, current])


def test_starts_are_different_test_sequences_or_noise_with_their_frequencies():
    available = np.random.default_rng(3).choice(5, size=(400, 6), p=[0.4, 0.3, 0.2, 0.1, 0.0])
    starts, rows = choose_initial(available, 50, "test", 5, seed=1)
    assert len(set(rows)) == 50
    assert np.array_equal(starts, available[rows])
    assert rows == choose_initial(available, 50, "test", 5, seed=1)[1]
    assert rows != choose_initial(available, 50, "test", 5, seed=2)[1]
    noise, none = choose_initial(available, 3000, "unigram", 5, seed=1)
    assert none is None
    shares = np.bincount(available.reshape(-1), minlength=5) / available.size
    error = np.sqrt(shares * (1 - shares) / noise.size)
    found = np.bincount(noise.reshape(-1), minlength=5) / noise.size
    assert (np.abs(found - shares) <= 5 * error).all()
    with pytest.raises(ValueError, match=r"chains: found 401 .* expected at most 400"):
        choose_initial(available, 401, "test", 5, seed=1)


SMALL = {
    "n=2": dict(architecture="factored", vocabulary=3, length=4, layers=2, rank=2),
    "n=3": dict(architecture="factored", vocabulary=3, length=4, layers=3, rank=2),
    "bert": dict(architecture="bert", vocabulary=3, length=4, layers=1, heads=1, width=4, mlp=8),
}  # fmt: skip


def target(model, kind, gauge):
    return torch.softmax(-naive.energy(model, states(model), kind, gauge), dim=0)


@pytest.mark.parametrize(("kind", "gauge"), ENERGIES)
@pytest.mark.parametrize("name", SMALL)
def test_a_step_leaves_the_target_unchanged(name, kind, gauge):
    """Every transition of one step, from what the driver asks of the backend, on all 81 states."""
    model = build(SMALL[name])
    every, weights = states(model), target(model, kind, gauge)
    chains = open_chains(model, every, kind, gauge)
    index = torch.arange(len(every))
    for position in range(model.length):
        positions = torch.full_like(index, position)
        proposing = chains.logits(index, positions).double().softmax(dim=1)
        after = weights.clone()
        for proposal in range(model.vocabulary):
            real = every[:, position] != proposal
            moved = index[real]
            there = (proposal - every[real, position]) * 3 ** (model.length - 1 - position) + moved
            ratio, handle = chains.log_ratio(
                moved, positions[real], torch.full_like(moved, proposal)
            )
            chains.accept(handle, torch.zeros(len(moved), dtype=torch.bool))
            flow = weights[moved] * proposing[moved, proposal] * ratio.exp().clamp(max=1)
            after.index_add_(0, there, flow)
            after.index_add_(0, moved, -flow)
        torch.testing.assert_close(after, weights, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", long_if_deep(["n=2", "n=3", "n=4", "bert"]))
def test_moves_do_not_depend_on_the_batch(name):
    """Full or partial batches, groups of chains, and the naive sampler: the same chains."""
    model = build(MODELS[name])
    starts = torch.randint(7, (12, 6), generator=torch.Generator().manual_seed(5))
    visits, uniforms = numbers(12, 6, 4, "left-to-right")
    found = []
    for full, parts in itertools.product([True, False], [[12], [5, 4, 3]]):
        tokens = []
        for part in np.split(np.arange(12), np.cumsum(parts)[:-1]):
            chains = open_chains(model, starts[part])
            chains.full_batches = full
            record = advance(chains, visits[part], uniforms[part], starts[part].numpy(), {4})
            assert np.array_equal(record.tokens[4], chains.tokens.numpy())
            np.testing.assert_allclose(record.energies[-1], chains.energy(), rtol=0, atol=1e-9)
            tokens.append(record.tokens[4])
        found.append(np.concatenate(tokens))
    chains = open_chains(model, starts)  # in blocks that end within a sweep
    advance(chains, visits.reshape(12, 6, 4), uniforms.reshape(12, 6, 4, 2), starts.numpy())
    found.append(chains.tokens.numpy())
    sampler = naive.NaiveSampler(model, starts)
    for sweep, position in itertools.product(range(4), range(6)):
        sampler.step(position, uniforms[:, sweep, position])
    found.append(sampler.tokens.numpy())
    assert not np.array_equal(found[0], starts.numpy())
    for other in found[1:]:
        assert np.array_equal(found[0], other)


@pytest.mark.parametrize("name", ["n=2", "n=3", "bert"])
def test_a_record_of_some_sweeps_is_that_of_each(name):
    model, count, sweeps = build(SMALL[name], 0.5), 20, 4
    starts, moves = torch.zeros(count, 4, dtype=torch.int64), numbers(count, 4, sweeps)
    together = advance(open_chains(model, starts), *moves, starts.numpy(), {2, 4})
    chains = open_chains(model, starts)
    for sweep in range(sweeps):
        part = (values[:, sweep : sweep + 1] for values in moves)
        one = advance(chains, *part, starts.numpy(), {1})
        for array in ("same", "accepted", "changed"):
            assert np.array_equal(getattr(together, array)[sweep], getattr(one, array)[0])
        np.testing.assert_allclose(together.energies[sweep], one.energies[0], rtol=0, atol=1e-10)
        if sweep + 1 in together.tokens:
            assert np.array_equal(together.tokens[sweep + 1], one.tokens[1])
        assert np.array_equal(one.changed[0], (one.tokens[1] != starts.numpy()).sum(axis=1))
    assert (together.same + together.accepted <= 4).all()
    assert together.accepted.sum(axis=0).any()


@pytest.mark.parametrize("kind", ["raw", "norm"])
@pytest.mark.parametrize(
    ("precision", "scale", "margins"), [("bfloat16", 2.0, (0.05, 5)), ("float16", 6.0, (0.01, 0.6))]
)
def test_half_precision_makes_the_same_moves(kind, precision, scale, margins):
    model = build(MODELS["bert"], scale=scale).float()
    starts = torch.randint(7, (16, 6), generator=torch.Generator().manual_seed(5))
    visits, uniforms = numbers(16, 6, 6)
    fine = open_chains(model, starts, kind)
    coarse = open_chains(model, starts, kind, precision=precision)
    assert margins[0] < coarse.margin < margins[1]
    asked, modes = [], set()
    refine, features = coarse.refine, coarse.fast_features
    coarse.refine = lambda handle, which: asked.append(len(which)) or refine(handle, which)

    def noted(*given):
        modes.add((torch.is_autocast_enabled("cpu"), devices.splitting))
        return features(*given)

    coarse.fast_features = noted
    record, exact = (advance(one, visits, uniforms, starts.numpy()) for one in (coarse, fine))
    assert torch.equal(fine.tokens, coarse.tokens)
    np.testing.assert_allclose(record.energies, exact.energies, rtol=1e-4)
    assert 0 < sum(asked) < record.same.size * 6 - record.same.sum()
    assert modes == {(True, False), (False, True)}


def test_ratios_that_overflow_are_computed_again():
    """Hidden units above 65,504 are infinite in float16."""
    model = build(MODELS["bert"]).float()
    with torch.no_grad():
        for layer in model.encoder.encoder.layer:
            layer.intermediate.dense.weight *= 3e5
            layer.output.dense.weight /= 3e5
    starts = torch.randint(7, (16, 6), generator=torch.Generator().manual_seed(5))
    visits, uniforms = numbers(16, 6, 3)
    fine, coarse = (open_chains(model, starts, precision=name) for name in ("float32", "float16"))
    ratios, _ = coarse.log_ratio(torch.arange(16), torch.zeros(16, dtype=int), starts[:, 1])
    assert not ratios.isfinite().all()
    for chains in (fine, coarse):
        advance(chains, visits, uniforms, starts.numpy())
    assert torch.equal(fine.tokens, coarse.tokens)


@pytest.mark.parametrize("kind", ["raw", "norm"])
def test_a_clone_in_bfloat16_says_so_and_records_the_scores_of_its_states(kind, tmp_path):
    """The same moves and, of the start and each sweep, the same scores: 7 sweeps, with a rebuild
    between; the sum of coarse ratios, and coarse caches, are off by 1e-3 and more."""
    model = build(MODELS["bert"], scale=2.0).float()
    starts = torch.randint(7, (16, 6), generator=torch.Generator().manual_seed(5)).numpy()
    scores, tokens = {}, {}
    for precision in ("float32", "bfloat16"):
        written = metropolis.sample(
            model, starts, tmp_path / precision, energy=kind, gauge="none", sweeps=[7],
            order="left-to-right", seed=1, about={}, precision=precision,
        )  # fmt: skip
        about, trace = tables.read_trace(written)
        assert about["precision"] == precision
        scores[precision] = trace["score"].to_numpy()
        tokens[precision] = Sequences.open(tmp_path / precision / "sweep-7.parquet").tokens
    assert np.array_equal(tokens["float32"], tokens["bfloat16"])
    np.testing.assert_allclose(scores["bfloat16"], scores["float32"], rtol=0, atol=2e-5)
    states = torch.from_numpy(tokens["bfloat16"].astype("int64"))
    energy = open_chains(model, states, kind).energy().mean().item() / 6  # a site
    assert scores["bfloat16"][-1] == pytest.approx(-energy, abs=2e-5)


def test_clones_of_one_chain_seed_move_by_numbers_of_their_own(tmp_path, monkeypatch):
    """Two names from the same starts part ways; one name repeats itself, in groups as well."""
    model = build(MODELS["bert"]).float()
    starts = torch.randint(7, (16, 6), generator=torch.Generator().manual_seed(5)).numpy()
    tokens = []
    for number, stream in enumerate(["one", "two", "one"]):
        monkeypatch.setattr(metropolis, "group_size", lambda *_, size=(16, 16, 5)[number]: size)
        written = metropolis.sample(
            model, starts, tmp_path / str(number), energy="raw", gauge="none", sweeps=[2],
            order="left-to-right", seed=1, about={}, stream=stream,
        )  # fmt: skip
        assert Manifest.read(written, "clones").about["stream"] == stream
        tokens.append(Sequences.open(tmp_path / str(number) / "sweep-2.parquet").tokens)
    assert (tokens[0] != tokens[1]).mean() > 0.3
    assert np.array_equal(tokens[0], tokens[2])


def test_a_state_of_other_starts_or_weights_is_not_taken_up(tmp_path, monkeypatch):
    monkeypatch.setattr(metropolis.Resume, "clear", lambda resume: None)
    models = [build(MODELS["bert"], scale).float() for scale in (1.0, 2.0)]
    starts = torch.randint(7, (8, 6), generator=torch.Generator().manual_seed(5)).numpy()

    def drawn(model, starts, folder):
        metropolis.sample(
            model, starts, folder, energy="raw", gauge="none", sweeps=[2], order="left-to-right",
            seed=1, about={},
        )  # fmt: skip
        return Sequences.open(folder / "sweep-2.parquet").tokens

    for number, given in enumerate(
        [(models[0], starts), (models[0], 6 - starts), (models[1], 6 - starts)]
    ):
        assert np.array_equal(
            drawn(*given, tmp_path / "one"), drawn(*given, tmp_path / str(number))
        )


class Peak(TorchDispatchMode):
    """The most bytes that tensors made under it took at one time."""

    def __init__(self):
        super().__init__()
        self.sizes, self.now, self.most = {}, 0, 0

    def __torch_dispatch__(self, call, types, args=(), kwargs=None):
        made = call(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            storage = tensor.untyped_storage() if isinstance(tensor, torch.Tensor) else None
            if storage is not None and storage._cdata not in self.sizes:
                self.sizes[storage._cdata] = storage.nbytes()
                self.now += storage.nbytes()
                weakref.finalize(storage, self._drop, storage._cdata)
        self.most = max(self.most, self.now)
        return made

    def _drop(self, key):
        self.now -= self.sizes.pop(key, 0)


@pytest.mark.parametrize("mlp", [64, 512])
def test_half_precision_takes_more_copies_at_once_within_the_same_memory(mlp):
    sizes = dict(vocabulary=50, length=16, layers=2, heads=4, width=64, mlp=mlp)
    model = build(dict(architecture="bert") | sizes).float()
    tokens = torch.randint(50, (30, 16), generator=torch.Generator().manual_seed(5))
    rows, positions = torch.arange(30).repeat_interleave(16), torch.arange(16).repeat(30)
    weights = 2 * sum(p.numel() for p in model.parameters())
    peaks, chains = {}, {}
    for precision in ("float32", "float16"):
        half = precision == "float16"
        chains[precision] = open_chains(model, tokens[:2], precision=precision)
        with torch.autocast("cpu", torch.float16, enabled=half), Peak() as peak:
            model.masked_features(tokens, rows, positions)
        peaks[precision] = peak.most - half * weights
        bound = len(rows) * chains[precision].copy_bytes
        assert 0.6 * bound < peaks[precision] < bound
    assert peaks["float16"] < 0.8 * peaks["float32"]
    fine, coarse = chains.values()
    assert coarse.copies_at_once > 1.3 * fine.copies_at_once
    with coarse._own_type():
        assert coarse.copies_at_once == fine.copies_at_once
    shared = [bytes_needed(model, "raw", name)[0] for name in peaks]
    assert shared[1] - shared[0] == weights


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("kind", "gauge"), ENERGIES)
@pytest.mark.parametrize(
    "name",
    long_if_deep(["n=2", "n=2 full", "n=3", "n=3 full", "n=4", "n=3 paper", "bert"]),
)
def test_rebuilt_caches_are_those_of_chains_opened_anew(name, kind, gauge, dtype):
    """To the bit: a run that goes on past a saved state repeats one that starts from it."""
    model = build(MODELS[name], dtype=dtype)
    starts = torch.randint(7, (5, 6), generator=torch.Generator().manual_seed(5))
    visits, uniforms = numbers(5, 6, 4)
    chains = open_chains(model, starts, kind, gauge)
    advance(chains, visits[:, :2], uniforms[:, :2], starts.numpy())
    chains.rebuild()
    anew = open_chains(model, chains.tokens.clone(), kind, gauge)
    assert torch.equal(chains.energy(), anew.energy())
    first, second = (
        advance(some, visits[:, 2:], uniforms[:, 2:], starts.numpy()) for some in (chains, anew)
    )
    assert np.array_equal(first.energies, second.energies)
    assert torch.equal(chains.tokens, anew.tokens)


def test_masked_copies_in_small_pieces_are_the_same(monkeypatch):
    model = build(MODELS["bert"])
    tokens = torch.randint(7, (5, 6), generator=torch.Generator().manual_seed(5))
    whole = masked.MaskedChains(model, tokens, "norm", "none")
    for pieces in (1, 4, 13):
        monkeypatch.setitem(footprint.COPIES, "cpu", pieces * whole.copy_bytes)
        chains = masked.MaskedChains(model, tokens, "norm", "none")
        torch.testing.assert_close(chains.scores, whole.scores, rtol=0, atol=1e-12)


PAPER = dict(vocabulary=10_000, length=128)
PAPER_MODELS = {
    "n=2": dict(architecture="factored", layers=2, rank=400),
    "n=4": dict(architecture="factored", layers=4, rank=400),
    "n=6": dict(architecture="factored", layers=6, rank=400),
    "bert": dict(architecture="bert", layers=4, heads=16, width=768, mlp=1536),
}


@pytest.mark.parametrize(("kind", "gauge"), ENERGIES)
@pytest.mark.parametrize("name", PAPER_MODELS)
def test_620_chains_at_paper_size_fit_in_16_gib(name, kind, gauge):
    with torch.device("meta"):
        model = models.build(PAPER | PAPER_MODELS[name])
    group = min(620, metropolis.group_size(model, kind))
    shared, each = bytes_needed(model, kind)
    # The work space of a GPU is larger than that of the meta device.
    work = footprint.COPIES if name == "bert" else footprint.PROPOSALS
    cuda = (2 if name == "bert" else 1) * (work["cuda"] - work["cpu"])
    assert shared + cuda + each < footprint.MEMORY
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    states_of_all = 620 * PAPER["length"] * (8 + 5 * 3 * 8)
    assert group >= (1 if name == "bert" else 20)
    assert shared + group * each + weights + states_of_all < 15 << 30


def test_a_chain_that_does_not_fit_is_refused():
    with pytest.raises(MemoryError, match="GiB are allowed"):
        metropolis.group_size(build(MODELS["bert"]), "raw", memory=1000)
