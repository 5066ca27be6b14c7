"""Models that were tested on sequence sets, as the figures of losses read them."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from manybody.io import tables
from manybody.io.manifest import Manifest


class Evaluated(NamedTuple):
    """A trained model and its losses on the targets of one evaluation.

    about and history: of its run, the first one where there are several seeds. losses: as of
    `tables.read_losses`. targets: what is behind each target (`tables.read_targets`).
    """

    about: dict
    losses: pd.DataFrame
    targets: dict
    history: pd.DataFrame | None = None


def clone_paths(files, context: dict) -> dict[str, str]:
    """The manifest of each clone of a figure."""
    return dict(zip(context["clones"], files["clones"], strict=True))


def read_clones(files, names: Sequence[str], context: dict) -> list[Manifest]:
    """Manifests of the clones `names`."""
    paths = clone_paths(files, context)
    return [Manifest.read(paths[name], "clones") for name in names]


def read_evaluated(files, names: Sequence[str], context: dict) -> list[Evaluated]:
    """The runs of the evaluations `names`, each seed on its own, from the files of a rule."""
    clones, found = clone_paths(files, context), []
    for (name, seed), losses, manifest in zip(
        context["runs"], files["losses"], files["runs"], strict=True
    ):
        if name in names:
            about, history = tables.read_run(manifest)
            targets = tables.read_targets(context["targets"][name], clones)
            found.append(Evaluated(about, tables.read_losses({seed: losses}), targets, history))
    return found


def read_student(files, block: dict, context: dict) -> Evaluated:
    """The block's `evaluation`, all its seeds in one table of losses."""
    runs = read_evaluated(files, [block["evaluation"]], context)
    return runs[0]._replace(losses=pd.concat([run.losses for run in runs], ignore_index=True))
