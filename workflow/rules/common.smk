"""Names that all rules use: what the package answers of paths, sources, models, figures and jobs."""

import re
from pathlib import Path

from manybody.config.files import command
from manybody.data import SPLITS
from manybody.io.atomic import sha256
from manybody.io.code_digest import code_digest
from manybody.models import ARCHITECTURES
from manybody.papers import module_name
from manybody.pipeline.families import USES, Families
from manybody.pipeline.figures import Figures
from manybody.pipeline.jobs import DRAWN, SEQUENCES_FIRST, WIDE, Jobs, growing
from manybody.pipeline.models import Models
from manybody.pipeline.paths import Paths
from manybody.pipeline.sources import Sources, digests

paths = Paths(config)
sources = Sources(paths, checked)
models = Models(paths, sources)
figures = Figures(paths, sources, checked)
families = Families(paths, checked)
jobs = Jobs(paths, figures)
paths, sources, models, figures, families = map(Asked, (paths, sources, models, figures, families))

RESULTS = paths.results
SEQUENCES, HAMILTONIAN = paths.sequences, paths.hamiltonians
MODEL, CLONE, CARDS = paths.models, paths.clone, paths.cards
LOSSES, TRUTH, EQUATIONS = paths.losses, paths.truths, paths.equations
SPECTRUM, DISPLACEMENTS = paths.spectra, paths.displacements
CLOCK = paths.clocks
MAPS, CONTACTS, KNOWN = paths.maps, paths.contacts, paths.known
THEORY, CURVE = paths.theory, paths.curves
CHUNK, USED, FAMILIES = paths.chunk, paths.used, paths.families
FIGURE = paths.figure
SCRIPTS = ROOT / "workflow" / "scripts"


wildcard_constraints:
    corpus="[A-Za-z0-9_.-]+",
    source="[A-Za-z0-9_.-]+",
    model="[A-Za-z0-9_.-]+",
    clone="[A-Za-z0-9_.-]+",
    evaluation="[A-Za-z0-9_.-]+",
    spectrum="[A-Za-z0-9_.-]+",
    figure="[A-Za-z0-9_]+",
    paper="[a-z-]+",
    seed="[0-9]+",
    split="|".join(SPLITS),
    theory="[A-Za-z0-9_.-]+",
    curve="[A-Za-z0-9_.-]+",
    families="[A-Za-z0-9_.-]+",
    chunk="[0-9]+",
    use="|".join(USES),


def named(names):
    """A constraint that only these names meet."""
    return "|".join(map(re.escape, names)) or "(?!)"


def code(script, *modules):
    """Digest of the code behind a script's numbers; `modules` are imported by name at run time."""
    return code_digest(SCRIPTS / script, modules)
