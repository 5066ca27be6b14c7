"""Order spectra of runs whose M_k rise to planted values at planted half-times."""

import numpy as np
import pandas as pd

from manybody.io import tables
from manybody.papers.simplicity.spectra import Spectra

STEPS = [0, *np.unique(np.geomspace(50, 3000, 40).round().astype(int))]
ENDS = {1: 4.0, 2: 0.5, 3: 0.05}
HALVES = {1: 600.0, 2: 1100.0, 3: 1300.0}
BERT = dict(architecture="bert", layers=2, heads=4, width=64, mlp=128, length=16, vocabulary=400)
FACTORED = dict(
    architecture="factored", layers=2, rank=32, length=16, vocabulary=400, variant="exact"
)


def rows(step, quantity, order, value, se, **more):
    found = dict(step=step, quantity=quantity, order=order, value=value, se=se, floor=0.0)
    found |= dict(asked=0.0, share=value / 4, share_se=se / 4, draws=640, forwards=1920)
    return found | dict(reached=True, state="measured") | more


def rise(step, half, end):
    """`end` at the last step, half of it at `half`."""
    # v(t) = t^2 / (t^2 + c), with v(half) = v(last) / 2
    last = STEPS[-1]
    c = half**2 * last**2 / (last**2 - 2 * half**2)
    return end * step**2 / (step**2 + c) * (last**2 + c) / last**2


def table(halves=HALVES, ends=ENDS, relative=0.02, excess=(1.5, 0.1, 0.01, 0.0), steps=STEPS):
    """halves, ends: by k. excess: of the anchored loss, by degree; none if empty."""
    found = []
    for step in steps:
        for k, end in ends.items():
            value = rise(step, halves[k], end)
            found.append(rows(step, "M", k, value, relative * value + 1e-15))
        found.append(rows(step, "Var g", 0, 4.0, 0.1))
    found += [rows(steps[-1], "anchored excess", d, e, 0.002) for d, e in enumerate(excess)]
    return pd.DataFrame(found)[tables.SPECTRA_SCHEMA.names]


def spectra(runs=(0, 1, 2), name="bert", description=BERT, law="text", **planted):
    """Spectra of these runs, the same of each."""
    return Spectra({seed: (table(**planted), about(name, description, law)) for seed in runs})


def about(name="bert", description=BERT, law="text"):
    entry = {"law": law, "sequences": 4000, "orders": 3, "anchored": {"size": 8, "targets": 64}}
    return dict(description=description, source="docs", model=name, spectrum=name, entry=entry)
