"""Runs on a known Hamiltonian with planted plateaus, ends and orders of layers."""

import math

import numpy as np
import pandas as pd
import planted_runs

from manybody.data.hamiltonian import Hamiltonian
from manybody.io import sequences, tables
from manybody.papers import inputs as keys
from manybody.papers.simplicity.staircase import Inputs, Runs

LENGTH, VOCABULARY, HELD_OUT = 10, 5, 4096
SOURCE = {
    "order": 4,
    "length": LENGTH,
    "vocabulary": VOCABULARY,
    "sequences": {"train": 25600, "validation": HELD_OUT, "test": HELD_OUT},
}
LINES = {2: 1.5220, 3: 1.4455, 4: 1.4133}
TRAIN = {2: 1.5196, 3: 1.4482, 4: 1.4109}
TRUTH = 1.4111
STEPS_PER_EPOCH = 100
EPOCHS = [*range(5), *np.arange(5, 201, 2.5)]
FEW_EPOCHS = [*range(5), *range(20, 201, 20)]
# Epochs of the drops below the 2-body line and below the 3-body line; epochs at which layer 1, 2
# and 3 move. What never happens in 200 epochs is at 10^4.
NEVER = 1e4
SEEDS = {
    0: ((27, 51), (51, 27, 2)),
    1: ((32, NEVER), (32, NEVER, 2)),
    2: ((47, 120), (120, 47, 3)),
    3: ((NEVER, NEVER), (NEVER, NEVER, 2)),
    4: ((90, 195), (195, 90, 2)),
    5: ((60, NEVER), (60, NEVER, 2)),
    6: ((22, 24), (24, 22, 2)),
    7: ((70, 130), (70, 130, 3)),
}
PROTOCOL = {seed: ((20 + 3 * seed, 45 + 6 * seed), (45, 20, 2)) for seed in range(12)}


def staircase_loss(epochs, drops, truth=1.4125):
    """From ln 5 to the 2-body line at epoch 2, then one line down at each drop."""
    levels = [math.log(VOCABULARY), LINES[2], LINES[3], truth]
    loss = np.full(len(epochs), levels[0])
    for high, low, time in zip(levels, levels[1:], (1.0, *drops), strict=False):
        fallen = 1 / (
            1 + np.minimum(time / np.maximum(epochs, 1e-3), 1e3) ** (6 if time < 2 else 40)
        )
        loss += (low - high) * fallen
    return loss


def rows_of(epochs, loss, tokens):
    return planted_runs.rows(epochs, loss, tokens, STEPS_PER_EPOCH)


def write_run(folder, description, rows, train_loss=1.4, seed=0, **about):
    known = dict(description=description, source="many-body", seed=seed, **about)
    return planted_runs.write(folder, rows, final={"train_loss": train_loss}, **known)


def write_network(folder, layers, drops=(), epochs=EPOCHS, seed=0, held_out=HELD_OUT):
    """A network whose loss falls at `drops`."""
    epochs = np.asarray(epochs, float)
    description = dict(architecture="factored", layers=layers, length=LENGTH, vocabulary=VOCABULARY)
    noise = np.random.default_rng(seed).normal(0, 3e-4, len(epochs)) * np.minimum(epochs, 1)
    rows = rows_of(epochs, staircase_loss(epochs, drops) + noise, held_out * LENGTH)
    return write_run(folder, description, rows, seed=seed)


def displacements(moves, epochs=EPOCHS, seed=0):
    """Displacements of a network whose layer m passes 0.1 at the epoch `moves[m - 1]`."""
    rows = [
        (seed, round(epoch * STEPS_PER_EPOCH), layer + 1, 0.5 * (epoch >= time) + 1e-6 * epoch)
        for epoch in epochs
        for layer, time in enumerate(moves)
    ]
    return pd.DataFrame(rows, columns=["seed", "step", "layer", "value"])


def write_line(folder, order, loss, train, held_out=HELD_OUT):
    sizes = dict(order=order, length=LENGTH, vocabulary=VOCABULARY)
    rows = rows_of([0], [loss], held_out * LENGTH)
    return write_run(folder, dict(architecture="energy", **sizes), rows, train)


def write_source(folder, order=4, held_out=HELD_OUT):
    """A Hamiltonian with its document, and uniform validation sequences."""
    folder.mkdir(parents=True, exist_ok=True)
    couplings = np.zeros((LENGTH,) * order)
    for sites in np.ndindex(*couplings.shape):
        couplings[sites] = float(len(set(sites)) == order)
    colours = np.zeros((VOCABULARY,) * order)
    colours[(np.arange(VOCABULARY),) * order] = 1.0
    made = Hamiltonian(couplings, colours, 0.1)
    made.save(folder / "hamiltonian.safetensors", {"shares": made.shares().tolist()})
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (held_out, LENGTH))
    sequences.write(folder / "validation.parquet", tokens, VOCABULARY, {})


def make(folder, seeds=SEEDS, protocol=None, order=4, deep_epochs=EPOCHS, lines=None):
    """The inputs of a figure, whose files are written to `folder`.

    seeds, protocol: drops and moves of the deepest network by two recipes, {seed: (drops, moves)}.
    lines: {name: (order, loss, training loss, held-out sequences)} in place of the planted ones.
    """
    write_source(folder / "sequences", order)
    runs = {}  # by model and seed: layers, drops, moves, epochs
    for seed in range(3):
        runs["n1", seed] = 1, (), (2,), FEW_EPOCHS
        runs["n2", seed] = 2, (21 + seed,), (21 + seed, 2), EPOCHS
    runs |= {("n3", seed): (3, *planted, deep_epochs) for seed, planted in seeds.items()}
    runs |= {
        ("n3-protocol", seed): (3, *planted, FEW_EPOCHS)
        for seed, planted in (protocol or {}).items()
    }
    models = {}
    for (model, seed), (layers, drops, moves, epochs) in runs.items():
        path = write_network(folder / model / f"seed-{seed}", layers, drops, epochs, seed)
        models.setdefault(model, []).append((seed, path, displacements(moves, epochs, seed)))
    planted = {
        name: (order, LINES[order], TRAIN[order])
        for order, name in ((2, "two"), (3, "three"), (4, "four"))
    }
    planted |= {"true": (order, TRUTH, TRUTH)} | (lines or {})
    references = {
        name: trained(name, 0, write_line(folder / name, *line)) for name, line in planted.items()
    }
    truth = references.pop("true")
    hamiltonian = keys.Hamiltonian(source="many-body")
    held_out = keys.Sequences(source="many-body")
    hamiltonian._files["hamiltonians"] = str(folder / "sequences" / "hamiltonian.safetensors")
    held_out._files["sequences"] = str(folder / "sequences" / "validation.parquet")
    return Inputs(
        source={**SOURCE, "order": order},
        networks=[group(folder, name, models[name]) for name in ("n1", "n2", "n3")],
        protocols=[group(folder, name, models[name]) for name in models if name == "n3-protocol"],
        lines=list(references.values()),
        truth=truth,
        held_out=held_out,
        hamiltonian=hamiltonian,
    )


def trained(model, seed, path):
    key = keys.Trained(source="many-body", model=model, seed=seed)
    key._files["models"] = str(path)
    return key


def group(folder, model, made):
    """Runs of a model, [(seed, manifest, displacements)], with one file of displacements."""
    moved = keys.Displacements(source="many-body", model=model)
    moved._files["displacements"] = str(folder / f"{model}.parquet")
    tables.write_displacements(folder / f"{model}.parquet", pd.concat(one[2] for one in made), {})
    runs = [trained(model, seed, path) for seed, path, _ in made]
    return Runs(runs=runs, moved=moved, recipe="ADAM, rate 0.01")
