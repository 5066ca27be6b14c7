"""Runs of full couplings: the network's conditionals, two fits, weights, scores."""

import numpy as np
import pytest
import torch
from test_pair_fit import sequences as drawn

from manybody.data.pair_model import PairModel
from manybody.data.sequence_weights import neighbours, write as write_weights
from manybody.io import sequences
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.measure.contacts import blocks, score_run
from manybody.models import build
from manybody.models.stored import load_model
from manybody.training import pair_fit
from manybody.training.loop import train_files

MODEL = dict(
    architecture="factored", layers=1, heads="full", rank=None, bias="site", variant="exact",
)  # fmt: skip
RECIPE = dict(
    objective="masked", masks="all", steps=100, restarts=1, validation=6, precision="float64",
    threads=1, sequence_weights="identity",
    optimizer=dict(name="lbfgs", history=5, couplings="gremlin"),
)  # fmt: skip


def test_the_network_has_the_conditionals_of_its_pair_model():
    rng = np.random.default_rng(0)
    couplings = rng.normal(size=(5, 5, 3, 3))
    couplings += couplings.transpose(1, 0, 3, 2)
    couplings[np.arange(5), np.arange(5)] = 0
    pairs = PairModel(rng.normal(size=(5, 3)), couplings, {})
    network = build({**MODEL, "vocabulary": 3, "length": 5}).double()
    network.take(pairs)
    tokens = rng.integers(0, 3, (4, 5))
    given = torch.from_numpy(tokens)
    logits = network.head(network.all_masked_features(given)).detach().numpy()
    np.testing.assert_allclose(logits, pairs.logits(tokens), atol=1e-12)
    rows, sites = torch.tensor([3, 0, 3]), torch.tensor([4, 1, 0])
    some = network.masked_logits(given, rows, sites).detach().numpy()
    np.testing.assert_allclose(some, pairs.logits(tokens)[rows, sites], atol=1e-12)
    # Two sites that are masked together do not see one another.
    mask = torch.tensor([[True, True, False, False, False]]).expand(4, -1)
    alone = PairModel(pairs.fields, couplings.copy(), {})
    alone.couplings[0, 1] = alone.couplings[1, 0] = 0
    hidden = network(given, mask).detach().numpy()[:, :2]
    np.testing.assert_allclose(hidden, alone.logits(tokens)[:, :2], atol=1e-12)


@pytest.mark.parametrize("heads", [None, 2])
def test_weights_are_of_all_sequences_and_the_held_out_loss_is_not(heads, tmp_path):
    tokens, _ = drawn(66, 7)
    about = dict(identity=0.8, gap=0, effective=1.0, aligned="ACDEFGH", numbers=list(range(7)))
    paths = {split: tmp_path / f"{split}.parquet" for split in ("train", "validation", "test")}
    for (split, path), part in zip(paths.items(), np.split(tokens, [54, 60]), strict=True):
        sequences.write(path, part.astype(np.uint8), 5, {**about, "split": split})
    train, held = (Sequences.open(paths[split]).tokens[:] for split in ("train", "validation"))
    weights = {
        count: 1.0 / neighbours(some, 0.8).counts for count, some in ((54, train), (66, tokens))
    }
    paths["sequence_weights"] = tmp_path / "weights.parquet"
    write_weights(paths["sequence_weights"], weights[54], paths["train"], about)
    optimizer = RECIPE["optimizer"] | ({"heads": heads} if heads else {})
    manifest = train_files(
        MODEL,
        paths,
        recipe=RECIPE | {"optimizer": optimizer},
        out=tmp_path / "run",
        seed=0,
        init_seed=1,
        about={},
    )
    run = Manifest.read(manifest, "model")
    fits = {}
    for count, some in ((54, train), (66, tokens)):
        family = pair_fit.Family(some, 5, weights[count])
        fits[count] = pair_fit.solve(family, (0.01 * 6 * 4, 0.01), heads=heads, kind=float).model
    found = blocks(run)
    np.testing.assert_allclose(found.couplings, fits[66].couplings, atol=1e-6)
    np.testing.assert_allclose(found.fields, fits[66].fields, atol=1e-6)
    logits = fits[54].logits(held)
    losses = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, held[..., None], 2)[..., 0]
    assert run.about["final"]["validation_loss"] == pytest.approx(losses.mean(), abs=1e-5)
    np.testing.assert_allclose(run.about["held_out"], losses.mean(axis=1), atol=1e-5)
    scores, said = score_run(manifest, paths["train"])
    np.testing.assert_allclose(scores, found.norms(0))
    assert said["heads"] == (heads or "full")
    assert said["sequences"] == 66
    assert said["effective"] == pytest.approx(weights[66].sum())
    network = load_model(manifest).double()
    np.testing.assert_allclose(
        network.all_masked_features(torch.from_numpy(held.astype(int))).detach().numpy(),
        fits[66].logits(held), atol=1e-5,
    )  # fmt: skip
