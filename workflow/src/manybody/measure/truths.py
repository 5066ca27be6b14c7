"""Losses that are known without a model: of a source's own conditionals, and of single sites.

A model that has learned its source ends with the loss of the source's own conditionals on any set
of sequences, also of a cut, a filtered tree and a clone. The least possible on a cut is less, that
of its own conditionals. Losses are nats per token, every site masked in turn. N sequences, L sites.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from manybody.io.sequences import Sequences
from manybody.io.tables import rows
from manybody.measure.intervals import mean

SAID = ("at", "kept", "level")  # what a document says of the distribution of a cut or a tree
BLOCK = 2**22  # logits held at a time


def evaluate(
    truth: str | Path, module: str, targets: Mapping[str, tuple[str | Path, int | None]]
) -> tuple[pd.DataFrame, dict]:
    """Loss of a masked token under the true conditionals, for each sequence of named sets.

    truth: the file with the conditionals, which `read_conditionals` of the `module` of this name
    reads. targets: name -> (path of a Sequences file, how many of its first sequences; None for
    all). Returns a table of theory, a row a sequence, its number in x, its loss in y, quantity
    `truth`, the set in `series`; a row `own` with its standard error for each set that is a whole
    file whose document says the loss of its own distribution. And what the documents say of the
    distributions: `at` and `kept` of a cut, `level` of a tree.
    """
    conditionals = import_module(module).read_conditionals(truth)
    frames, said = [], {}
    for name, (path, count) in targets.items():
        found = Sequences.open(path)
        tokens = found[:count].astype(np.int64)
        frames.append(rows("truth", name, range(len(tokens)), of_truth(conditionals, tokens)))
        stated = found.about.get("losses", {})
        own = stated.get("own") or stated.get("masked")
        if own and len(tokens) == len(found):
            frames.append(rows("own", name, [0], [own[0]], own[1]))
        said[name] = {key: found.about[key] for key in SAID if key in found.about}
    return pd.concat(frames, ignore_index=True), {"targets": said}


def of_truth(truth, tokens: np.ndarray) -> np.ndarray:
    """Loss of the true conditionals (5) on each of tokens (N, L), the mean over sites: (N,).

    truth: a `Hamiltonian`, or another source of `vocabulary` and `log_conditionals`.
    """
    tokens = np.asarray(tokens, np.int64)
    step = max(1, BLOCK // (tokens.shape[1] * truth.vocabulary))
    found = []
    for part in np.split(tokens, range(step, len(tokens), step)):
        own = np.take_along_axis(truth.log_conditionals(part), part[:, :, None], axis=2)
        found.append(-own[:, :, 0].mean(axis=1))
    return np.concatenate(found)


def of_marginals(tokens: np.ndarray, vocabulary: int) -> tuple[float, float]:
    """Loss of the single-site marginals of tokens (N, L) on themselves, the mean entropy of a site
    (nats), and its standard error over sequences."""
    counts = np.stack([np.bincount(site, minlength=vocabulary) for site in tokens.T])
    with np.errstate(divide="ignore"):
        loss = -np.log(counts / len(tokens))  # (L, |V|); infinite only where nothing is
    return mean(np.take_along_axis(loss, tokens.T.astype(np.int64), axis=1).mean(axis=0))[:2]
