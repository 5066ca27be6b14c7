"""Runs on a known Hamiltonian with planted plateaus, ends and orders of layers."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory

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
SHARES = [0.02, 0.5, 0.4, 0.08]
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
    4: ((90, 196), (196, 90, 2)),
    5: ((60, NEVER), (60, NEVER, 2)),
    6: ((22, 24), (24, 22, 2)),
    7: ((70, 130), (70, 130, 3)),
}
# Of two layers one run never leaves the 2-body line, and another does not rest there.
TWO = {
    **{seed: ((21 + seed,), (21 + seed, 2)) for seed in range(8)},
    8: ((NEVER,), (NEVER, 2)),
    9: ((3,), (3, 2)),
}
PROTOCOL = {seed: ((20 + 3 * seed, 45 + 6 * seed), (45, 20, 2)) for seed in range(12)}


def staircase_loss(epochs, drops, truth=1.4125):
    """From ln 5 to the 2-body line at epoch 2, then one line down at each drop."""
    levels = [math.log(VOCABULARY), LINES[2], LINES[3], truth]
    loss = np.full(len(epochs), levels[0])
    for high, low, time in zip(levels, levels[1:], (1.0, *drops), strict=False):
        left = np.minimum(time / np.maximum(epochs, 1e-3), 1e3) ** (6 if time < 2 else 40)
        loss += (low - high) / (1 + left)
    return loss


def rows_of(epochs, loss, tokens):
    return planted_runs.rows(epochs, loss, tokens, STEPS_PER_EPOCH)


def write_run(folder, description, rows, train_loss=1.4, seed=0, **about):
    known = dict(description=description, source="many-body", seed=seed, **about)
    return planted_runs.write(folder, rows, final={"train_loss": train_loss}, **known)


def write_network(folder, model, layers, epochs, seeds):
    """Runs of a network, {seed: (drops, moves)}: the loss falls at `drops`, and the displacement of
    layer m passes 0.1 at the epoch `moves[m - 1]`."""
    description = dict(architecture="factored", layers=layers, length=LENGTH, vocabulary=VOCABULARY)
    epochs, runs, moved = np.asarray(epochs, float), [], []
    for seed, (drops, moves) in seeds.items():
        noise = np.random.default_rng(seed).normal(0, 3e-4, len(epochs)) * np.minimum(epochs, 1)
        rows = rows_of(epochs, staircase_loss(epochs, drops) + noise, HELD_OUT * LENGTH)
        path = write_run(folder / model / f"seed-{seed}", description, rows, seed=seed)
        runs.append(trained(model, seed, path))
        moved += [
            (seed, round(epoch * STEPS_PER_EPOCH), layer, 0.5 * (epoch >= time) + 1e-6 * epoch)
            for epoch in epochs
            for layer, time in enumerate(moves, 1)
        ]
    frame = pd.DataFrame(moved, columns=["seed", "step", "layer", "value"])
    tables.DISPLACEMENTS.write(folder / f"{model}.parquet", frame, {})
    moved = keys.Displacements(source="many-body", model=model)
    moved = with_file(moved, folder / f"{model}.parquet")
    return Runs(runs=runs, moved=moved, recipe="ADAM, rate 0.01")


def write_line(folder, name, order, loss, train, held_out=HELD_OUT):
    sizes = dict(order=order, length=LENGTH, vocabulary=VOCABULARY)
    rows = rows_of([0], [loss], held_out * LENGTH)
    path = write_run(folder / name, dict(architecture="energy", **sizes), rows, train)
    return trained(name, 0, path)


def make(folder, seeds=SEEDS, protocol=None, order=4, deep_epochs=EPOCHS, lines=None, two=TWO):
    """The inputs of a figure, whose files are written to `folder`.

    seeds, protocol: drops and moves of the deepest network by two recipes, {seed: (drops, moves)}.
    two: those of two layers.
    lines: {name: (order, loss, training loss, held-out sequences)} in place of the planted ones.
    """
    couplings, colours = (np.zeros((size,) * order) for size in (LENGTH, VOCABULARY))
    shares = {"shares": SHARES[:order]}
    Hamiltonian(couplings, colours, 0.1).save(folder / "hamiltonian.safetensors", shares)
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (HELD_OUT, LENGTH))
    sequences.write(folder / "validation.parquet", tokens, VOCABULARY, {})
    models = {
        "n1": (1, FEW_EPOCHS, {seed: ((), (2,)) for seed in range(7)}),
        "n2": (2, EPOCHS, two),
        "n3": (3, deep_epochs, seeds),
    }
    models |= {"n3-protocol": (3, FEW_EPOCHS, protocol)} if protocol else {}
    groups = [write_network(folder, name, *model) for name, model in models.items()]
    names = {2: "two", 3: "three", 4: "four"}
    planted = {name: (of, LINES[of], TRAIN[of]) for of, name in names.items()}
    planted |= {"true": (order, TRUTH, TRUTH)} | (lines or {})
    *fits, truth = (write_line(folder, name, *line) for name, line in planted.items())
    return Inputs(
        source={**SOURCE, "order": order},
        networks=groups[:3],
        protocols=groups[3:],
        lines=fits,
        truth=truth,
        held_out=with_file(keys.Sequences(source="many-body"), folder / "validation.parquet"),
        hamiltonian=with_file(
            keys.Hamiltonian(source="many-body"), folder / "hamiltonian.safetensors"
        ),
    )


def trained(model, seed, path):
    return with_file(keys.Trained(source="many-body", model=model, seed=seed), path)


def with_file(key, path):
    key._files[key.KINDS[0]] = str(path)
    return key


def tables_of(module, *names):
    """The tables of a figure of planted runs, or of several staircases, one of each name."""
    with TemporaryDirectory() as folder:
        inputs = make(Path(folder), protocol=None if names else PROTOCOL)
        if not names:
            return module.tables(inputs, None)
        truths = (inputs.truth.model_copy(update={"source": name}) for name in names)
        parts = [inputs.model_copy(update={"truth": truth}) for truth in truths]
        return module.tables(module.Inputs(parts=parts), None)
