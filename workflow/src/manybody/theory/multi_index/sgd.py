"""Stochastic gradient descent on deep attention: two tied layers, softmax, two tokens, rank one.

Teacher and student are (W_1, W_2), rows of N(0, 1), with indices z_l = W_l X / sqrt(D), h = B z_2
and y = softmax(h h^T) (docs/science/multi-index.md, section 1). The student minimises, on a batch,

    sum |y - yhat|_F^2 / D + weight_decay / (2 D) |W|^2

by a few updates in a row on the same batch (figure 2 right of the paper). y depends on X through
four numbers only, so a gradient costs two passes over the tokens, and nothing is differentiated by
a library. An epoch is a pass over all samples, in a new order.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd

from manybody.io.progress import Progress
from manybody.theory.multi_index.sgd_loops import outputs, visit
from manybody.theory.rows import joined, rows

FINE = 5  # epochs at the start in which weights are looked at after every batch: layer 2 is fast


def cosines(weights: np.ndarray, teacher: np.ndarray) -> np.ndarray:
    """|w_l . w*_l| / (|w_l| |w*_l|) of each layer; weights and teacher (2, D)."""
    weights, teacher = (
        rows / np.abs(rows).max(axis=-1, keepdims=True) for rows in (weights, teacher)
    )
    norms = np.sqrt((weights**2).sum(axis=-1) * (teacher**2).sum(axis=-1))
    return np.abs((weights * teacher).sum(axis=-1)) / norms


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of theory of one entry of the config, and what it was made from.

    entry: `skip` (c >= 0), `dimension` (D), `alpha` (samples over D), `batch` (samples; the last
    of an epoch may be smaller), `repeats` (updates in a row on a batch), `learning_rate`,
    `weight_decay` (times D), `init_scale` (standard deviation of the student's weights at first),
    `epochs`, `runs`, `same_teacher` (true: runs differ in their data only; false: also in teacher
    and start), `seed`, `threads` (runs at once; no number depends on it). Quantities, seed = run:

    - `cosine 1`, `cosine 2`: x epoch, y |w.w*| / (|w| |w*|) of the layer; after every batch in the
      first epochs, then after each epoch;
    - `loss`, series train: x epoch, y mean over it of |y - yhat|_F^2 of a sample, each before the
      updates that saw it.

    Raises `ValueError` for a bad entry, naming key and value, and where weights overflow.
    """
    shared, own = np.random.SeedSequence(entry["seed"]).spawn(2)
    streams = own.spawn(entry["runs"])
    label = f"SGD at D = {entry['dimension']}"
    total = entry["runs"] * entry["epochs"]
    with ThreadPoolExecutor(entry["threads"]) as pool, Progress(total, "epochs", label) as progress:
        jobs = enumerate(streams)
        parts = list(pool.map(lambda job: _run(entry, shared, *job, progress.update), jobs))
    return joined([found for part in parts for found in part], entry)


def _run(
    entry: dict,
    shared: np.random.SeedSequence,
    run: int,
    stream: np.random.SeedSequence,
    report: Callable[..., None],
) -> list[pd.DataFrame]:
    size, skip = entry["dimension"], float(entry["skip"])
    count, batch = round(entry["alpha"] * size), entry["batch"]
    generator = np.random.default_rng(stream)
    common = np.random.default_rng(shared) if entry["same_teacher"] else generator
    teacher = common.normal(size=(2, size))
    weights = entry["init_scale"] * common.normal(size=(2, size))
    tokens = generator.normal(size=(count, 2, size))
    targets = np.empty((count, 2))
    # Sums in numpy's own order, not a library's, whose order may hang on its number of threads.
    indices = np.einsum("ki,nti->nkt", teacher, tokens) / math.sqrt(size)
    outputs(indices, skip, targets)

    decay, rate = entry["weight_decay"] / size, float(entry["learning_rate"])
    batches = -(-count // batch)
    epochs, found, losses = [0.0], [cosines(weights, teacher)], []
    for epoch in range(entry["epochs"]):
        order = generator.permutation(count)
        loss = 0.0
        for number in range(batches):
            some = order[number * batch : (number + 1) * batch]
            loss += visit(weights, tokens, targets, some, entry["repeats"], rate, decay, skip)
            if not np.isfinite(weights).all():
                raise ValueError(
                    f"learning_rate: found {entry['learning_rate']:g}, with which the weights of "
                    f"run {run} overflow in epoch {epoch + 1}; expected a smaller one"
                )
            if epoch < FINE or number == batches - 1:
                epochs.append(epoch + (number + 1) / batches)
                found.append(cosines(weights, teacher))
        losses.append(loss / count)
        report(1, loss=losses[-1])
    first, second = np.transpose(found)
    whole = np.arange(1, len(losses) + 1)
    return [
        rows("cosine 1", "", epochs, first, seed=run),
        rows("cosine 2", "", epochs, second, seed=run),
        rows("loss", "train", whole, losses, seed=run),
    ]
