"""A GPU computes what a CPU does: losses, energies, ratios, and a short training run."""

import numpy as np
import pytest
import torch

from manybody import models
from manybody.io.checkpoints import history
from manybody.io.manifest import Manifest
from manybody.models.objectives import choose_masks, masked_loss, next_token_loss
from manybody.models.stored import load_model
from manybody.sampling.backends import open_chains
from manybody.sampling.metropolis import sample
from manybody.sampling.redraw import stationary
from manybody.training.loop import train

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="torch sees no CUDA device: GPU paths are not checked"
)
SIZES = {"vocabulary": 40, "length": 12}
FACTORED = [
    {"architecture": "factored", "layers": layers, "rank": rank, **SIZES}
    for layers in (1, 2, 3, 4)
    for rank in (8, None)
]
TRANSFORMER = {"layers": 2, "heads": 2, "width": 32, "mlp": 64, **SIZES}
BERT = {"architecture": "bert", **TRANSFORMER}
GPT = {"architecture": "gpt", **TRANSFORMER}


def pair(description):
    torch.manual_seed(3)
    model = models.build(description).double().eval()
    twin = models.build(description).double().eval()
    twin.load_state_dict(model.state_dict())
    return model, twin.cuda()


def name(description):
    return "-".join(str(value) for value in description.values())


@pytest.mark.parametrize("description", [*FACTORED, BERT], ids=name)
@pytest.mark.parametrize("masks", [0.25, "all"])
def test_masked_losses_and_their_gradients_are_the_same(description, masks):
    model, twin = pair(description)
    tokens = torch.randint(40, (6, 12), generator=torch.Generator().manual_seed(1))
    rows, positions = choose_masks(6, 12, masks, torch.Generator().manual_seed(2))
    here, _ = masked_loss(model, tokens, rows, positions)
    there, _ = masked_loss(twin, tokens.cuda(), rows.cuda(), positions.cuda())
    torch.testing.assert_close(there.cpu(), here, rtol=1e-10, atol=1e-10)
    here.sum().backward()
    there.sum().backward()
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(other.grad.cpu(), one.grad, rtol=1e-9, atol=1e-9)


def test_next_token_losses_are_the_same():
    # GPT-Neo's attention is single precision inside.
    model, twin = (each.float() for each in pair(GPT))
    tokens = torch.randint(40, (6, 12), generator=torch.Generator().manual_seed(1))
    here, _ = next_token_loss(model, tokens)
    there, _ = next_token_loss(twin, tokens.cuda())
    torch.testing.assert_close(there.cpu(), here, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("energy", ["raw", "norm"])
@pytest.mark.parametrize("description", [*FACTORED, BERT], ids=name)
def test_chains_are_the_same(description, energy):
    model, twin = pair(description)
    tokens = torch.randint(40, (5, 12), generator=torch.Generator().manual_seed(1))
    chains = torch.tensor([0, 2, 3])
    positions, proposals = torch.tensor([1, 11, 0]), torch.tensor([7, 0, 39])
    with torch.no_grad():
        here, there = open_chains(model, tokens, energy), open_chains(twin, tokens.cuda(), energy)
        for _ in range(3):
            ratio, handle = here.log_ratio(chains, positions, proposals)
            other, its = there.log_ratio(chains.cuda(), positions.cuda(), proposals.cuda())
            torch.testing.assert_close(other.cpu(), ratio, rtol=1e-9, atol=1e-9)
            here.accept(handle, torch.ones(3, dtype=torch.bool))
            there.accept(its, torch.ones(3, dtype=torch.bool).cuda())
            torch.testing.assert_close(there.energy().cpu(), here.energy(), rtol=1e-9, atol=1e-9)
            positions, proposals = (positions + 5) % 12, (proposals + 3) % 40


@pytest.mark.parametrize("description", [FACTORED[1], BERT], ids=name)
def test_the_distribution_of_gibbs_is_the_same(description):
    model, twin = pair({**description, "vocabulary": 3, "length": 4})
    torch.testing.assert_close(stationary(twin).cpu(), stationary(model), rtol=1e-9, atol=1e-12)


RECIPE = {
    "objective": "masked",
    "steps": 60,
    "batch": 64,
    "masks": 0.25,
    "optimizer": {"name": "adamw", "betas": [0.9, 0.98], "weight_decay": 0.01},
    "learning_rate": 3e-3,
    "schedule": "cosine",
    "warmup": 5,
    "clip": 1.0,
    "checkpoints": {"logarithmic": 3, "listed": []},
    "validation": 64,
    "precision": "bfloat16",
    "compile": False,
    "threads": 1,
}


class Split:
    def __init__(self, tokens):
        self.tokens = tokens


@pytest.fixture(scope="module")
def data():
    """Sequences whose tokens repeat: a model that reads its context predicts them."""
    start = np.random.default_rng(5).integers(0, 40, (600, 1))
    tokens = ((start + 3 * np.arange(12)) % 40).astype(np.uint8)
    return {"train": Split(tokens[:500]), "validation": Split(tokens[500:])}


@pytest.mark.parametrize("compiled", [False, True])
def test_training_and_sampling_run_and_learn(tmp_path, data, compiled):
    recipe = RECIPE | {"compile": compiled}
    manifest = train(BERT, recipe, data, tmp_path / "run", 1, 2, {}, device="cuda")
    table = history(manifest)
    losses = table[table["split"] == "validation"]["loss"]
    assert losses.iloc[-1] < losses.iloc[0] - 0.3
    model = load_model(manifest, "last", "cuda")
    starts = data["validation"].tokens[:8].astype(np.int64)
    settings = {"energy": "raw", "gauge": "none", "sweeps": [2], "order": "left-to-right"}
    for precision in ("float32", "float16", "bfloat16"):
        out = sample(
            model, starts, tmp_path / precision, seed=1, about={}, precision=precision, **settings
        )
        assert "sweep-2.parquet" in Manifest.read(out, "clones").names()
