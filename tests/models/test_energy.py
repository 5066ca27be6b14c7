"""The energy model's interface, and L-BFGS fits: their files, kills and refusals."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from manybody.io import checkpoints
from manybody.io.manifest import Manifest
from manybody.io.seeds import torch_seed
from manybody.models import build, stored
from manybody.models.objectives import choose_masks, masked_loss
from manybody.training import lbfgs
from manybody.training.lbfgs import fit
from manybody.training.run_files import NonFiniteLoss

VOCABULARY, LENGTH = 4, 7
RECIPE = {
    "objective": "masked",
    "masks": "all",
    "optimizer": {"name": "lbfgs", "history": 20, "ridge": 0.0},
    "steps": 40,
    "restarts": 3,
    "validation": 60,
    "precision": "float32",
    "threads": 1,
}


def description(order):
    return {"architecture": "energy", "vocabulary": VOCABULARY, "length": LENGTH, "order": order}


def model_of(order, dtype=torch.float64):
    torch.manual_seed(order)
    return build(description(order)).to(dtype)


def tokens_of(count, seed=0):
    return torch.randint(VOCABULARY, (count, LENGTH), generator=torch.Generator().manual_seed(seed))


def sequences(count, seed):
    """Each token is the last one plus 0 or 1."""
    steps = np.random.default_rng(seed).integers(0, 2, (count, LENGTH))
    return SimpleNamespace(tokens=(steps.cumsum(1) % VOCABULARY).astype("uint8"))


DATA = {"train": sequences(200, 0), "validation": sequences(60, 1)}


def run(out, sizes=None, seed=3, init_seed=4, **recipe):
    options = {"device": "cpu", "about": {"source": "counting"}}
    recipe = {**RECIPE, **recipe}
    return fit(sizes or description(3), recipe, DATA, out, seed, init_seed, **options)


def files(manifest):
    return {path.name: path.read_bytes() for path in manifest.parent.iterdir()}


# --- the model


def test_tokens_beyond_the_vocabulary_are_refused():
    tokens = tokens_of(3)
    tokens[1, 2] = VOCABULARY
    with pytest.raises(IndexError, match="tokens run from 0 to 4, expected 0 to 3"):
        masked_loss(model_of(3), tokens)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_masked_site_belongs_to_no_subset(order):
    """Summed over subsets one by one, with the masked sites' left out."""
    model, tokens = model_of(order), tokens_of(3)
    mask = torch.zeros(3, LENGTH, dtype=torch.bool)
    mask[0, [2, 5]] = mask[1, 0] = True
    bins = model.bins.view((VOCABULARY,) * (order - 1))
    expected = torch.zeros(3, LENGTH, VOCABULARY, dtype=torch.float64)
    for n in range(3):
        for i in range(LENGTH):
            for t, subset in enumerate(model.around[i].tolist()):
                if i not in subset and not mask[n, subset].any():
                    bin_ = bins[tuple(tokens[n, subset].tolist())]
                    expected[n, i] += model.couplings[i, t] * model.colours[:, bin_]
    assert (model(tokens, mask) - expected).abs().max() < 1e-13


# --- fits


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return run(tmp_path_factory.mktemp("finished") / "run")


def test_a_fit_leaves_what_training_leaves(finished):
    about = Manifest.read(finished, "model").about
    (step,) = about["steps"]
    assert sorted(path.name for path in finished.parent.iterdir()) == sorted(
        ["manifest.json", "model.json", "history.parquet", f"step-{step}.safetensors"]
    )
    assert (about["order"], about["seed"], about["init_seed"], about["source"]) == (
        3,
        3,
        4,
        "counting",
    )
    assert len(about["restarts"]) == 3
    objectives = [start["objective"] for start in about["restarts"]]
    assert about["kept"] == int(np.argmin(objectives))
    table = checkpoints.history(finished)
    last = table[table["step"] == step].set_index("split")
    for split in ("train", "validation"):
        for key in ("loss", "accuracy"):
            assert last[key][split] == about["final"][f"{split}_{key}"]
    assert about["final"]["train_loss"] <= min(objectives) + 1e-6
    train = table[table["split"] == "train"]
    assert train["step"].is_monotonic_increasing
    assert train["step"].is_unique
    assert train["loss"].iloc[-1] < train["loss"].iloc[0] - 0.1


def test_the_final_losses_are_those_of_the_kept_weights(finished):
    model, about = stored.load_model(finished), Manifest.read(finished, "model").about
    for split, data in DATA.items():
        losses, _ = masked_loss(model, torch.from_numpy(data.tokens.astype("int64")))
        assert about["final"][f"{split}_loss"] == pytest.approx(losses.mean().item(), abs=1e-6)
        per_sequence = losses.detach().double().view(-1, LENGTH).mean(1)
    table = checkpoints.history(finished)
    error = per_sequence.std().item() / math.sqrt(len(per_sequence))
    assert table[table["split"] == "validation"]["loss_se"].item() == pytest.approx(error, rel=1e-4)


def killed(out, monkeypatch, descents, within=False, **changes):
    """A fit that is killed as its descent number `descents` begins, or after a second one."""
    descend, followed = lbfgs.Fit._descend, []

    def die(self, path, flat):
        followed.append(path["restart"])
        if within and len(followed) == descents:
            descend(self, path, flat)
        if len(followed) == descents:
            raise KeyboardInterrupt
        return descend(self, path, flat)

    with monkeypatch.context() as patch:
        patch.setattr(lbfgs.Fit, "_descend", die)
        with pytest.raises(KeyboardInterrupt):
            run(out, **changes)
    assert not (out / "manifest.json").exists()


@pytest.mark.parametrize(
    ("descents", "within", "left"),
    [(2, False, 3), (2, True, 3), (4, False, 1)],
    ids=["between starts", "within a start", "while polishing"],
)
def test_a_killed_fit_goes_on_and_ends_with_the_same_bytes(
    tmp_path, finished, monkeypatch, descents, within, left
):
    killed(tmp_path / "run", monkeypatch, descents, within)
    descend, again = lbfgs.Fit._descend, []
    monkeypatch.setattr(lbfgs.Fit, "_descend", lambda *given: again.append(1) or descend(*given))
    assert files(run(tmp_path / "run")) == files(finished)
    assert len(again) == left


def test_another_recipe_does_not_go_on_from_the_saved_starts(tmp_path, finished, monkeypatch):
    killed(tmp_path / "run", monkeypatch, 3, init_seed=5)
    assert files(run(tmp_path / "run")) == files(finished)


def test_a_run_s_seed_draws_the_start_where_each_says_so(tmp_path):
    """One start each, few iterations: the paths still show where they began."""
    recipe = {"steps": 3, "restarts": 1}
    one, two = (run(tmp_path / str(seed), seed=seed, init_seed="each", **recipe) for seed in (1, 2))
    same = run(tmp_path / "same", seed=9, init_seed=1, **recipe)
    kept = [stored.load_model(manifest).colours for manifest in (one, two, same)]
    assert torch.equal(kept[0], kept[2])
    assert not torch.equal(kept[0], kept[1])


def test_more_iterations_of_the_best_start_and_a_ridge_do_what_they_say(tmp_path, finished):
    ridge = 1e-2
    optimizer = {**RECIPE["optimizer"], "ridge": ridge}
    short = run(tmp_path / "short", steps=5)
    bent = run(tmp_path / "bent", optimizer=optimizer, steps=200)
    assert checkpoints.checkpoint_steps(short) == [5]
    losses = {
        name: Manifest.read(path, "model").about["final"]["train_loss"]
        for name, path in [("full", finished), ("short", short), ("bent", bent)]
    }
    assert losses["full"] < losses["bent"] < losses["short"]
    model = stored.load_model(bent)
    masked_loss(model, torch.from_numpy(DATA["train"].tokens.astype("int64")))[0].mean().backward()
    for parameter in model.parameters():
        assert (parameter.grad + ridge * parameter.detach()).abs().max() < 2e-3


def test_the_first_row_of_a_fit_has_the_loss_of_its_start(tmp_path):
    """A row is written where a look begins: losses belong to the iteration that stands beside."""
    manifest = run(tmp_path / "run", restarts=1, steps=8)
    history = pd.read_parquet(Manifest.read(manifest, "model").file("history.parquet"))
    torch.manual_seed(torch_seed(4, "weights"))
    start = build(description(3)).double()
    tokens = torch.from_numpy(DATA["train"].tokens.astype("int64"))
    with torch.no_grad():
        expected = masked_loss(start, tokens, *choose_masks(*tokens.shape, "all"))[0].mean()
    found = history[(history["split"] == "train") & (history["step"] == 0)]["loss"]
    assert found.tolist() == [pytest.approx(float(expected), rel=1e-6)]


def test_a_start_that_diverges_is_passed_over_and_none_left_is_an_error(tmp_path, monkeypatch):
    first = lbfgs.Fit._evaluate

    def evaluate(self, vector, bad=(0,)):
        if len(self.restarts) in bad:
            with torch.no_grad():
                vector.fill_(math.inf)
        return first(self, vector)

    monkeypatch.setattr(lbfgs.Fit, "_evaluate", evaluate)
    about = Manifest.read(run(tmp_path / "one"), "model").about
    assert about["restarts"][0]["objective"] is None
    assert about["kept"] != 0
    assert about["final"]["train_loss"] < 0.95
    monkeypatch.setattr(
        lbfgs.Fit, "_evaluate", lambda self, vector: evaluate(self, vector, (0, 1, 2))
    )
    with pytest.raises(NonFiniteLoss, match="each of 3 restarts became infinite or not a number"):
        run(tmp_path / "all")
    assert not (tmp_path / "all" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"validation": 61}, r"training\.validation"),  # there are 60
        ({"sizes": {**description(3), "length": 9}}, "the model 9"),
    ],
)
def test_what_the_sequences_do_not_have_is_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "run", **changes)
