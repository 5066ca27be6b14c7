"""Losses of true conditionals on the sequences that a model is tested on.

A model that has learned its source ends with the loss of the source's own conditionals on any set
of sequences: those of a cut, of a filtered tree and of a clone, too. The least possible on a cut is
less, the loss of the cut's own conditionals.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from manybody.io.sequences import Sequences
from manybody.measure.equations import of_truth
from manybody.theory.rows import rows

SAID = ("at", "kept", "level")  # what a document says of the distribution of a cut or a tree


def evaluate(
    truth: str | Path, module: str, targets: Mapping[str, tuple[str | Path, int | None]]
) -> tuple[pd.DataFrame, dict]:
    """Loss of a masked token under the true conditionals, for each sequence of named sets.

    truth: the file with the conditionals, which `read_conditionals` of the `module` of this name
    reads. targets: name -> (path of a Sequences file, how many of its first sequences; None for
    all). Returns a table of
    theory, a row a sequence, its number in x, its loss in y, quantity `truth`, the set in `series`;
    a row `own` with its standard error for each set that is a whole file whose document says the
    loss of its own distribution. Losses are nats per token, every position masked in turn. And
    what the documents say of the laws: `at` and `kept` of a cut, `level` of a tree.
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
