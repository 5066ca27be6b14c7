"""Losses that are known without a forward pass: of true conditionals, and of equations.

A model that has learned its source ends with the loss of the source's own conditionals on any set
of sequences: those of a cut, of a filtered tree and of a clone, too. The least possible on a cut is
less, the loss of the cut's own conditionals.

Histories hold means over sequences only. What factored attention (potts, eq. 4) and the
interpolation (eq. 2) lose on one sequence follows from a few matrices, in double precision and
without torch, so that models can be paired. Losses are nats per token, every site masked in turn.
N sequences, L sites.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import log_softmax

from manybody import models
from manybody.data.hamiltonian import Hamiltonian, read_tensor
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.io.theory_rows import rows

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


def evaluate_equations(
    manifests: Iterable[str | Path], validation: str | Path, energy: str | Path
) -> pd.DataFrame:
    """Loss of each sequence of a validation split, in the columns of a table of theory.

    manifests: of runs on one source; a run that diverged, or that no equation here is about, has no
    rows. energy: the source's Hamiltonian. A row a sequence, its number in x, its loss in y:
    quantity `optimum`, the true conditionals; `loss`, the last checkpoint of the model that the
    series names.
    """
    tokens = Sequences.open(validation).tokens
    places = range(len(tokens))
    frames = [rows("optimum", "", places, of_truth(Hamiltonian.load(energy), tokens))]
    for path in manifests:
        run = Manifest.read(path, "model")
        each = None if "diverged" in run.about else _of_run(run, tokens)
        if each is not None:
            frames.append(rows("loss", run.about["model"], places, each, seed=run.about["seed"]))
    return pd.concat(frames, ignore_index=True)


def _of_run(run: Manifest, tokens: np.ndarray) -> np.ndarray | None:
    """Losses (N,) of a run's last checkpoint; None where no equation gives them."""
    checkpoint = run.file(f"step-{run.about['steps'][-1]}.safetensors")
    description = run.about["description"]
    logits = models.about(description).equation(partial(read_tensor, checkpoint))
    return None if logits is None else of_logits(logits, description["vocabulary"], tokens)


def of_truth(truth, tokens: np.ndarray) -> np.ndarray:
    """Loss of the true conditionals (5) on each of tokens (N, L): (N,).

    truth: a `Hamiltonian`, or another source of `vocabulary` and `log_conditionals`.
    """
    return _in_blocks(tokens, truth.vocabulary, truth.log_conditionals)


def of_logits(logits: Callable, vocabulary: int, tokens: np.ndarray) -> np.ndarray:
    """Loss of logits(part) (n, L, |V|) on each of tokens (N, L): (N,)."""
    return _in_blocks(tokens, vocabulary, lambda part: log_softmax(logits(part), axis=-1))


def _in_blocks(tokens: np.ndarray, vocabulary: int, logs) -> np.ndarray:
    """Mean over sites of -log p of the tokens; logs(part) is (n, L, |V|)."""
    tokens = np.asarray(tokens, np.int64)
    step = max(1, BLOCK // (tokens.shape[1] * vocabulary))
    found = np.empty(len(tokens))
    for start in range(0, len(tokens), step):
        part = tokens[start : start + step]
        own = np.take_along_axis(logs(part), part[:, :, None], axis=2)
        found[start : start + step] = -own[:, :, 0].mean(axis=1)
    return found
