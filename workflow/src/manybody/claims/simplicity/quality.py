"""What figure 3 reads: generators, their chains, and a student that is tested on them."""

from typing import NamedTuple

import pandas as pd

from manybody.claims import labels
from manybody.claims.simplicity.evaluated import Evaluated, clone_paths, read_evaluated
from manybody.io import tables


class Chains(NamedTuple):
    """A clone: its manifest's `about` and its trace."""

    about: dict
    trace: pd.DataFrame

    @property
    def label(self) -> str:
        return labels.generator(self.about["generator"]["description"])


class Quality(NamedTuple):
    """What the figure compares.

    generators: evaluation -> run, each tested on the target `block["test"]`; those of
    `block["generators"]` from low to high order, and `block["wide_generator"]` if it is there.
    chains: clone -> chains; `block["chains"]` are those that are shown. student: one run, tested
    on the pairs of targets `block["pairs"]`, each the same chains at two sweeps, and on
    `block["control"]`. `block["twins"]`, if there are any: an evaluation of a generator and its
    targets `text` and `noise`, its own clones from either start.
    """

    generators: dict[str, Evaluated]
    chains: dict[str, Chains]
    student: Evaluated
    block: dict


def read(files, block: dict, context: dict) -> Quality:
    """Of each evaluation one run, that of the first seed which the block asks for."""
    runs = {name: read_evaluated(files, [name], context)[0] for name in context["targets"]}
    student = runs.pop(block["evaluation"])
    clones = clone_paths(files, context)
    chains = {name: Chains(*tables.read_trace(path)) for name, path in clones.items()}
    return Quality(runs, chains, student, block)


def generator_label(run: Evaluated, rank: bool = False) -> str:
    """`n = 2, order 3`, with its rank where that sets it apart."""
    description = run.about["description"]
    text = labels.generator(description)
    return f"{text}, rank {description.get('rank') or 'full'}" if rank else text
