"""Small sources of spins, many-body and Potts: their files, and the user's own tensors."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from manybody.data import many_body, potts
from manybody.data.hamiltonian import Hamiltonian
from manybody.io.sequences import Sequences

MANY_BODY = dict(
    kind="many-body", order=3, length=6, vocabulary=3, colours="potts", logit_scale=2.0,
    couplings=dict(vectors=50, variables="signs", probability=0.8),
    sweeps=10, sequences=dict(train=600, validation=200, test=100), seed=0,
)  # fmt: skip
POTTS = dict(
    kind="potts", length=6, vocabulary=3, couplings="contact-map", colours={"gaussian": 5},
    temperature={"beta": 0.8}, sweeps=30, sequences=dict(train=600, validation=200, test=100),
    seed=0,
)  # fmt: skip
MAKE = {"many-body": many_body.make, "potts": potts.make}


def run(source: dict, folder, threads: int = 1) -> dict:
    """The files that a source with this entry in the config writes."""
    out = {split: folder / f"{split}.parquet" for split in many_body.SPLITS}
    MAKE[source["kind"]](source, "toy", folder / "hamiltonian.safetensors", out, threads)
    return {"hamiltonian": folder / "hamiltonian.safetensors", **out}


def check_splits(files: dict, source: dict, model: Hamiltonian) -> None:
    """Each split has its sequences, and its document says what their test finds."""
    for split, count in source["sequences"].items():
        sequences = Sequences.open(files[split])
        assert sequences.tokens.shape == (count, model.length)
        assert (sequences.vocabulary, sequences.about["split"]) == (model.vocabulary, split)
        test = many_body.self_test(model, sequences.tokens)
        known = set(map(tuple, Sequences.open(files["train"]).tokens.tolist()))
        share = np.mean([tuple(row) in known for row in sequences.tokens.tolist()])
        assert sequences.about.get("repeated", 1.0) == share
        assert sequences.about["self_test"] == pytest.approx(test)
        assert abs(test["difference"]) < 4 * test["standard_error"]


def own_files(folder, **named) -> dict:
    """The config's entries for the user's own tensors."""
    found = {}
    for name, tensor in named.items():
        path = folder / f"{name}.safetensors"
        save_file({name: np.ascontiguousarray(tensor)}, path)
        found[name] = {"file": str(path)}
    return found


def tensors(length, vocabulary, seed=0):
    """J and U of eq. 1 of docs/science/potts.md, all entries of both signs."""
    rng = np.random.default_rng(seed)
    couplings, colours = rng.normal(size=(length,) * 2), rng.normal(size=(vocabulary,) * 2)
    couplings = np.triu(couplings, 1)
    return couplings + couplings.T, colours + colours.T


def pair_law(length=5, vocabulary=3, beta=0.4) -> Hamiltonian:
    """The Hamiltonian of these tensors."""
    couplings, colours = tensors(length, vocabulary)
    return Hamiltonian(couplings, -colours / 2, beta)
