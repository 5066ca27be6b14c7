"""What figures 1, 4 and 5 read: a student's losses on clones, while it learns original text.

The block of such a figure names targets: a `ladder` of clones from low to high order and the
`control` (original text); for figures 4 and 5 `late_steps`, and where they are run `early_stopped`,
`wide`, `norm` (a ladder of clones by the norm score) and `chain_inits` (two targets: test and
unigram starts). Its `generators` are tested on test text, on which the premise of claim 11 rests.
"""

from collections.abc import Sequence

from manybody.claims import labels
from manybody.claims.simplicity.evaluated import Evaluated, read_evaluated, read_student
from manybody.io import tables


class Student:
    """A student's losses, by the roles that a figure's block gives to targets.

    generators: runs of generators with their losses on test text.
    """

    def __init__(self, tested: Evaluated, block: dict, generators: Sequence[Evaluated] = ()):
        self.about, self.losses, self.targets, self.history = tested
        self.block, self.generators = block, generators
        self.curves = tables.learning_curves(self.losses)
        self.seeds = int(self.losses["seed"].nunique())
        self.labels = {name: labels.target(document) for name, document in self.targets.items()}


def read(files, block: dict, context: dict) -> Student:
    """The student of a figure, from the files of its rule."""
    generators = read_evaluated(files, block.get("generators", []), context)
    return Student(read_student(files, block, context), block, generators)
