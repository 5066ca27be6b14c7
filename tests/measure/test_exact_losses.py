"""Losses of true conditionals, against enumeration, of marginals, and of one-layer models."""

import math
from itertools import combinations, permutations

import numpy as np
import planted_runs
import pytest
import torch
from torch.nn.functional import cross_entropy

from manybody import models
from manybody.data import cut, enumeration, tree
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.many_body import SPLITS
from manybody.io import sequences
from manybody.measure import equations, truths


@pytest.fixture
def hamiltonian():
    random = np.random.default_rng(3)
    couplings = np.zeros((4, 4, 4))
    for sites in combinations(range(4), 3):
        value = random.normal()
        for place in permutations(sites):
            couplings[place] = value
    colours = np.zeros((3, 3, 3))
    for a in range(3):
        colours[a, a, a] = 1.0
    return Hamiltonian(couplings, colours, 0.15)


def by_enumeration(probabilities, tokens):
    """Mean over sites of -log p(x_i | rest), from all states (|V|,) * L."""
    found = []
    for row in tokens:
        total = 0.0
        for site in range(len(row)):
            place = (*row[:site], slice(None), *row[site + 1 :])
            total -= np.log(probabilities[place][row[site]] / probabilities[place].sum())
        found.append(total / len(row))
    return np.array(found)


def test_losses_on_a_cut_are_those_of_the_whole_law(tmp_path, hamiltonian):
    hamiltonian.save(tmp_path / "h.safetensors", {})
    source = dict(
        source="planted", at=2, kept="marginals", seed=0,
        sequences={"train": 2, "validation": 2, "test": 30},
    )  # fmt: skip
    out = {split: tmp_path / f"{split}.parquet" for split in SPLITS}
    cut.make(source, "cut", [tmp_path / "h.safetensors"], out)
    targets = {"cut": (out["test"], 30), "part": (out["test"], 20)}
    found, about = truths.evaluate(tmp_path / "h.safetensors", "manybody.data.hamiltonian", targets)
    tokens = sequences.Sequences.open(out["test"]).tokens
    law = enumeration.probabilities(hamiltonian).reshape((3,) * 4)
    true = found[(found["quantity"] == "truth") & (found["series"] == "cut")]
    assert true["y"].to_numpy() == pytest.approx(by_enumeration(law, tokens), abs=1e-12)
    # Of the cut's own law the loss is another, known for the whole file only.
    own = found[found["quantity"] == "own"]
    exact = by_enumeration(cut.Cut(hamiltonian, 2, "marginals").probabilities, tokens)
    assert own["series"].tolist() == ["cut"]
    assert own["y"].item() == pytest.approx(exact.mean(), abs=1e-9)
    assert abs(own["y"].item() - true["y"].mean()) > 1e-3
    assert (found["series"] == "part").sum() == 20
    assert about["targets"]["cut"] == {"at": 2, "kept": "marginals"}


def test_losses_on_a_filtered_tree_are_those_of_the_whole_tree(tmp_path):
    paths = {}
    for level in (0, 2):
        source = dict(
            depth=2, level=level, vocabulary=3, rules={"deviation": 1.0}, seed=2,
            sequences={"train": 2, "validation": 2, "test": 25},
        )  # fmt: skip
        out = {split: tmp_path / f"{level}-{split}.parquet" for split in SPLITS}
        tree.make(source, f"tree-{level}", [], out)
        paths[level] = out["test"]
    targets = {"whole": (paths[0], None), "leaves": (paths[2], None)}
    found, about = truths.evaluate(paths[0], "manybody.data.tree", targets)
    states = np.stack(np.indices((3,) * 4), axis=-1).reshape(-1, 4)
    law = np.exp(tree.of(source | {"level": 0}).log_probability(states)).reshape((3,) * 4)
    for name, level in (("whole", 0), ("leaves", 2)):
        tokens = sequences.Sequences.open(paths[level]).tokens
        true = found[(found["quantity"] == "truth") & (found["series"] == name)]["y"].to_numpy()
        assert true == pytest.approx(by_enumeration(law, tokens), abs=1e-12)
    own = found[found["quantity"] == "own"].set_index("series")["y"]
    assert own["leaves"] < found[found["series"] == "leaves"]["y"].iloc[:25].mean()
    assert about["targets"] == {"whole": {"level": 0}, "leaves": {"level": 2}}


# --- By equations --------------------------------------------------------------------------------

FACTORED = dict(architecture="factored", layers=1, rank=None, bias=False, variant="exact")
INTERPOLATED = dict(architecture="interpolated")


def built(description):
    torch.manual_seed(0)
    model = models.build(description).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model


def write_run(folder, model, **about):
    about = dict(description=model.description, model=folder.name, seed=2, steps=[0, 9], **about)
    return planted_runs.of_checkpoints(folder, {9: dict(model.named_parameters())}, **about)


@pytest.mark.parametrize(("length", "vocabulary"), [(7, 5), (4, 6)])
def test_one_layer_models_lose_what_they_do_copy_by_copy(length, vocabulary, tmp_path):
    made = {
        "free": FACTORED | {"attention": "free"},
        "softmax": FACTORED | {"attention": "softmax"},
        "low-rank": FACTORED | {"attention": "free", "rank": 2},
        "a0": INTERPOLATED | {"a": 0},
        "a0.5": INTERPOLATED | {"a": 0.5},
        "a1": INTERPOLATED | {"a": 1.0},
        "deep": FACTORED | {"layers": 2},
        "fields": FACTORED | {"bias": True},
    }
    made = {
        name: built(description | {"length": length, "vocabulary": vocabulary})
        for name, description in made.items()
    }
    paths = [write_run(tmp_path / name, model) for name, model in made.items()]
    paths.append(write_run(tmp_path / "diverged", made["free"], diverged=9))
    tokens = np.random.default_rng(0).integers(0, vocabulary, (30, length))
    hamiltonian = Hamiltonian(1 - np.eye(length), -np.eye(vocabulary) / 2, 0.8)
    sequences.write(tmp_path / "validation.parquet", tokens, vocabulary, {})
    hamiltonian.save(tmp_path / "hamiltonian.safetensors", {})
    found = equations.evaluate(
        paths, tmp_path / "validation.parquet", tmp_path / "hamiltonian.safetensors"
    )
    known = found[found["quantity"] == "loss"]
    assert list(known["series"].unique()) == ["free", "softmax", "low-rank", "a0", "a0.5", "a1"]
    assert set(known["seed"]) == {2}
    for name, losses in known.groupby("series"):
        copies, masks = torch.from_numpy(tokens).repeat_interleave(length, 0), torch.eye(length)
        logits = made[name].double()(copies, masks.bool().repeat(30, 1))[masks.bool().repeat(30, 1)]
        each = cross_entropy(logits, torch.from_numpy(tokens).flatten(), reduction="none")
        assert losses["x"].tolist() == list(range(30))
        expected = each.detach().numpy().reshape(30, length).mean(1)
        np.testing.assert_allclose(losses["y"], expected, rtol=1e-12, err_msg=name)
    optimum = found[found["quantity"] == "optimum"]["y"]
    np.testing.assert_array_equal(optimum, truths.of_truth(hamiltonian, tokens))


def test_single_site_marginals_are_an_entropy():
    tokens = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])
    assert truths.of_marginals(tokens, 3) == pytest.approx((math.log(2), 0))
    uneven = np.array([[0], [0], [0], [1]])
    entropy = 0.25 * math.log(4) + 0.75 * math.log(4 / 3)
    error = np.std([0.0, 0, 0, math.log(3)], ddof=1) / 2
    assert truths.of_marginals(uneven, 2) == pytest.approx((entropy, error))
