"""Order spectra of runs whose M_k rise to planted values at planted half-times."""

import numpy as np
import pandas as pd

from manybody.io import tables
from manybody.measure.half_times import Spectra
from manybody.papers import style
from manybody.papers.simplicity import spectrum, spectrum_truth

STEPS = [0, *np.unique(np.geomspace(50, 3000, 40).round().astype(int))]
ENDS = {1: 4.0, 2: 0.5, 3: 0.05}
HALVES = {1: 600.0, 2: 1100.0, 3: 1300.0}
BERT = dict(architecture="bert", layers=2, heads=4, width=64, mlp=128, length=16, vocabulary=400)
TRUE = dict(architecture="energy", length=8, order=4, vocabulary=4)
SHARES = (0.66, 0.27, 0.07)  # of the orders 2, 3, 4 of the truth
PRETRAINED = dict(
    architecture="pretrained", objective="next-token", vocabulary=50, length=32,
    config={"architectures": ["GPTNeoXForCausalLM"], "n_layer": 2, "n_embd": 16},
)  # fmt: skip
FACTORED = dict(
    architecture="factored", layers=2, rank=32, length=16, vocabulary=400, variant="exact"
)


def drawn(step, order, value, se):
    """Replicates of a value, independent of those of other steps and orders."""
    return value + se * np.random.default_rng([step, order]).normal(size=100)


def rows(step, quantity, order, value, se, **more):
    found = dict(
        step=step, quantity=quantity, order=order, value=value, se=se, floor=0.0, asked=0.0,
        share=value / 4, share_se=se / 4, draws=640, forwards=1920, reached=True, state="measured",
        replicates=drawn(step, order, value, se),
    )  # fmt: skip
    return found | more


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
    return pd.DataFrame(found)[tables.SPECTRA.schema.names]


def spectra(runs=(0, 1, 2), name="bert", description=BERT, law="text", **planted):
    """Spectra of these runs, the same of each."""
    return Spectra({seed: (table(**planted), about(name, description, law)) for seed in runs})


def about(name="bert", description=BERT, law="text"):
    entry = {"law": law, "sequences": 4000, "orders": 3, "anchored": {"size": 8, "targets": 64}}
    return dict(description=description, source="docs", model=name, spectrum=name, entry=entry)


def of_spectrum(runs=(0, 1, 2), **planted) -> spectrum.Tables:
    """Of a generator of order 3, another, a student with these runs, and another distribution."""
    vanishing = table(ends={1: 4.0, 2: 0.2, 3: 1e-13}, steps=STEPS[-1:])
    generators = [Spectra({0: (vanishing, about("n2", FACTORED))}), spectra((0,), "other")]
    laws = [spectra((0,), "bert-unigram", law="unigram", excess=())]
    return spectrum.tables_of(generators, [spectra(runs, **planted)], laws)


def of_shares(shares=SHARES, description=TRUE, steps=STEPS[-1:], se=0.01) -> Spectra:
    """W and M of degrees 1, 2, ...; they grow as the step does."""
    found = [
        rows(step, quantity, d, 4 * share * step / steps[-1], se)
        for step in steps
        for d, share in enumerate(shares, 1)
        for quantity in ("W", "M")
    ]
    return Spectra({0: (pd.DataFrame(found), about("known", description))})


def beside_truth(**changed) -> style.Tables:
    """A student near the truth, an estimate of the truth, and a model of pairs."""
    found = (
        dict(
            truth=of_shares(),
            estimate=of_shares((0.6, 0.3, 0.1), se=0.1),
            student=of_shares(description=BERT, steps=STEPS),
            pairs=of_shares((1.0, 0.0, 0.0), FACTORED),
            excess=0.004,
        )
        | changed
    )
    ends = [[1.0], [1.0], [3.0, 1.2, 1 + found.pop("excess")], [1.1]]
    runs = [pd.DataFrame({"step": 1500 * np.arange(len(end)), "loss": end}) for end in ends]
    return spectrum_truth.tables_of(**found, runs=runs)


def series(steps, suspect=None, losses=True, name="mine") -> Spectra:
    """A pretrained model at these steps, one of them suspect, with or without losses."""
    found = []
    for step in steps:
        state = "suspect" if step == suspect else "measured"
        for k in (1, 2, 3):
            value = step**2 / (step**2 + (100 * k) ** 2) / 10**k
            known = dict(share=1.5 / 10 ** (k - 1), share_se=0.01, state=state)
            found.append(rows(step, "M", k, value, 0.05 * value, **known))
    last = steps[-1]
    found += [rows(last, f"span {k}", i, i**-2.0, 0.001) for k in (1, 2, 3) for i in range(k, 32)]
    found += [rows(last, "anchored excess", d, 0.5**d, 0.01) for d in range(9 * losses)]
    said = about(name, PRETRAINED)
    said |= {"suspects": {str(suspect): ["why"]}} if suspect else {}
    return Spectra({0: (pd.DataFrame(found), said)})


def passage(length: int) -> Spectra:
    """A causal model: each token is acted on by the one before, in pairs, and by the one two
    before, with others, but nothing acts on token 3; the first target that is asked is 1."""
    found = []
    for target in range(1, length):
        for source in range(target):
            value = {1: 1.0, 2: 0.5}.get(target - source, 1e-5) * {3: 0, 7: 2}.get(target, 1)
            share = 0.9 if target - source == 1 else 0.1
            found.append(rows(10, f"influence on {target}", source, value, 0.0))
            found.append(rows(10, f"pairs on {target}", source, value * share, 0.0))
    said = about("mine", PRETRAINED)
    said["passage"] = [["a", " word", "\n", "", "."][i % 5] for i in range(length)]
    return Spectra({0: (pd.DataFrame(found), said)})
