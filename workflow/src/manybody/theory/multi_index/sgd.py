"""Stochastic gradient descent on deep attention: two tied layers, softmax, two tokens, rank one.

Teacher and student are (W_1, W_2), rows of N(0, 1), with indices z_l = W_l X / sqrt(D), h = B z_2
and y = softmax(h h^T) (docs/science/multi-index.md, section 1). The student minimises, on a batch,

    sum |y - yhat|_F^2 / D + weight_decay / (2 D) |W|^2

by a few updates in a row on the same batch (figure 2 right of the paper). y depends on X through
four numbers only: a sample's gradient needs its own indices alone, and its two tokens are read once
an update, while they are in the nearest cache. An epoch is a pass over all samples, in a new order.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd

from manybody.data.vector_loops import SUMS
from manybody.io.compiled import njit
from manybody.io.progress import Progress
from manybody.io.tables import joined, rows
from manybody.theory.multi_index.channel_loops import last_index, logistic

FINE = 5  # epochs at the start in which weights are looked at after every batch: layer 2 is fast


def cosines(weights: np.ndarray, teacher: np.ndarray) -> np.ndarray:
    """|w_l . w*_l| / (|w_l| |w*_l|) of each layer; weights and teacher (2, D)."""
    weights = weights / np.abs(weights).max(axis=-1, keepdims=True)
    teacher = teacher / np.abs(teacher).max(axis=-1, keepdims=True)
    norms = np.sqrt((weights**2).sum(axis=-1) * (teacher**2).sum(axis=-1))
    return np.abs((weights * teacher).sum(axis=-1)) / norms


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of theory of one entry of the config, and what it was made from.

    entry: the keys of `config.theory.GradientDescent`. Quantities, seed = run:

    - `cosine 1`, `cosine 2`: x epoch, y |w.w*| / (|w| |w*|) of the layer; after every batch in the
      first epochs, then after each epoch;
    - `loss`, series train: x epoch, y mean over it of |y - yhat|_F^2 of a sample, each before the
      updates that saw it.

    Raises `ValueError` where weights overflow.
    """
    shared, own = np.random.SeedSequence(entry["seed"]).spawn(2)
    streams = own.spawn(entry["runs"])
    label = f"SGD at D = {entry['dimension']}"
    total = entry["runs"] * entry["epochs"]
    with ThreadPoolExecutor(entry["threads"]) as pool, Progress(total, "epochs", label) as progress:
        run = partial(_run, entry, shared, progress.update)
        parts = list(pool.map(run, range(len(streams)), streams))
    return joined([found for part in parts for found in part], entry)


def _run(
    entry: dict,
    shared: np.random.SeedSequence,
    report: Callable[..., None],
    run: int,
    stream: np.random.SeedSequence,
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
    outputs(np.einsum("ki,nti->nkt", teacher, tokens) / math.sqrt(size), skip, targets)

    decay, rate = entry["weight_decay"] / size, float(entry["learning_rate"])
    epochs, found, losses = [0.0], [cosines(weights, teacher)], []
    for epoch in range(entry["epochs"]):
        batches = np.array_split(generator.permutation(count), range(batch, count, batch))
        loss = 0.0
        for number, some in enumerate(batches, 1):
            loss += visit(weights, tokens, targets, some, entry["repeats"], rate, decay, skip)
            if not np.isfinite(weights).all():
                raise ValueError(
                    f"learning_rate: found {entry['learning_rate']:g}, with which the weights of "
                    f"run {run} overflow in epoch {epoch + 1}; expected a smaller one"
                )
            if epoch < FINE or number == len(batches):
                epochs.append(epoch + number / len(batches))
                found.append(cosines(weights, teacher))
        losses.append(loss / count)
        report(1, loss=losses[-1])
    first, second = np.transpose(found)
    return [
        rows("cosine 1", "", epochs, first, seed=run),
        rows("cosine 2", "", epochs, second, seed=run),
        rows("loss", "train", range(1, len(losses) + 1), losses, seed=run),
    ]


# --- Updates on one batch, one sample after another -----------------------------------------------


@njit(nogil=True, cache=True)
def visit(weights, tokens, targets, rows, repeats, rate, decay, skip):
    """`repeats` updates of `weights` on the samples `rows`; sum |y - yhat|_F^2 before the first.

    weights (2, D), moved: one row a layer; tokens (n, 2, D); targets (n, 2), y12 and y21. An update
    is w -= rate (gradient + decay w), with the gradient of sum |y - yhat|_F^2 / D over the samples.
    """
    size = weights.shape[1]
    gradient = np.empty_like(weights)
    first = 0.0
    for repeat in range(repeats):
        gradient[:] = 0.0
        total = 0.0
        for n in rows:
            total += add_sample(weights, tokens[n], targets[n], skip, gradient)
        if repeat == 0:
            first = total
        scale = rate / (size * math.sqrt(size))
        for k in range(2):
            for i in range(size):
                weights[k, i] -= scale * gradient[k, i] + rate * decay * weights[k, i]
    return first


@njit(nogil=True, cache=True, fastmath=SUMS, forceinline=True)
def add_sample(weights, x, y, skip, gradient):
    """Adds sqrt(D) d|y - yhat|_F^2 / dw of one sample to `gradient` (2, D); its |y - yhat|_F^2."""
    size = weights.shape[1]
    u = v = a = b = 0.0
    for i in range(size):
        u += weights[0, i] * x[0, i]
        v += weights[0, i] * x[1, i]
        a += weights[1, i] * x[0, i]
        b += weights[1, i] * x[1, i]
    root = 1 / math.sqrt(size)
    error, du, dv, da, db = derivatives(u * root, v * root, a * root, b * root, y[0], y[1], skip)
    for i in range(size):
        gradient[0, i] += du * x[0, i] + dv * x[1, i]
        gradient[1, i] += da * x[0, i] + db * x[1, i]
    return error


@njit(nogil=True, cache=True)
def derivatives(u, v, a, b, y12, y21, skip):
    """|y - yhat|_F^2 of indices z_1 = (u, v), z_2 = (a, b), and its derivatives by the four."""
    p, q, h1, h2 = last_index(u, v, a, b, skip)
    found12, found21 = logistic(-h1 * (h1 - h2)), logistic(-h2 * (h2 - h1))
    e12, e21 = found12 - y12, found21 - y21
    # Rows of y sum to one, so each error stands twice in the norm.
    t1 = 4 * e12 * found12 * (1 - found12)
    t2 = 4 * e21 * found21 * (1 - found21)
    d1 = -t1 * (2 * h1 - h2) + t2 * h2
    d2 = -t2 * (2 * h2 - h1) + t1 * h1
    da = d1 * (1 - p + skip) + d2 * q
    db = d1 * p + d2 * (1 - q + skip)
    s1 = d1 * (b - a) * p * (1 - p)
    s2 = d2 * (a - b) * q * (1 - q)
    du = -s1 * (2 * u - v) + s2 * v
    dv = -s2 * (2 * v - u) + s1 * u
    return 2 * (e12 * e12 + e21 * e21), du, dv, da, db


@njit(nogil=True, cache=True)
def outputs(z, skip, y):
    """Fills y (n, 2), y12 and y21, of indices z (n, 2, 2): layer, token."""
    for n in range(len(z)):
        _, _, h1, h2 = last_index(z[n, 0, 0], z[n, 0, 1], z[n, 1, 0], z[n, 1, 1], skip)
        y[n, 0], y[n, 1] = logistic(-h1 * (h1 - h2)), logistic(-h2 * (h2 - h1))
