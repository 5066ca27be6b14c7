"""Students of known distributions that learn planted orders at planted steps."""

import numpy as np
import pandas as pd
import planted_spectra
from planted_losses import table

from manybody.io import tables
from manybody.io.tables import rows
from manybody.measure.half_times import Spectra
from manybody.papers.inputs import distinct, with_files
from manybody.papers.simplicity import truths

STEPS = np.array([0, *np.unique(np.geomspace(10, 3000, 48).round())])
SEQUENCES, LENGTH = 60, 8
CUTS = {"cut-2": 60.0, "cut-3": 240.0, "test": 900.0}  # steps where 5 % of the drop are left
HALVES = {1: 100.0, 2: 400.0, 3: 1100.0}
ENDS = {"cut-2": 1.3, "cut-3": 1.15, "test": 1.05}  # of the exact conditionals
LAWS = {"cut-2": {"at": 2, "kept": "marginals"}, "cut-3": {"at": 3, "kept": "marginals"}}
PART = {
    "evaluation": "known",
    "control": "test",
    "spectrum": "known",
    "exact": [{"label": "cuts", "targets": list(CUTS)}],
}


def losses(times, apart, seeds=(0, 1, 2)):
    """Losses of sequences, that fall to `apart` nats above the exact ones, and the exact table."""
    difficulty = np.random.default_rng(1).normal(0, 0.3, SEQUENCES)
    frames, truth = [], []
    for name, time in times.items():
        end = ENDS[name]
        truth.append(rows("truth", name, range(SEQUENCES), end + difficulty))
        if name in LAWS:
            truth.append(rows("own", name, [0], [end - 0.1], 0.01))
        for seed in seeds:
            noise = np.random.default_rng([seed, len(frames)])
            left = 1 / (1 + 19 * (STEPS / (time * np.exp(0.02 * (seed - 1)))) ** 4)
            level = end + apart.get(name, 0.0) + (1.6 - end) * left + 1e-3 * seed
            each = level[:, None] + difficulty + noise.normal(0, 1e-3, (len(STEPS), SEQUENCES))
            frames.append(table(name, seed, STEPS, each, length=LENGTH))
    return pd.concat(frames, ignore_index=True), pd.concat(truth, ignore_index=True)


def spectrum(halves=HALVES, seeds=(0, 1, 2)):
    about = dict(
        description=planted_spectra.BERT | {"length": LENGTH}, source="known", entry={}, seed=0
    )
    measured = planted_spectra.table(halves=halves, excess=())
    return Spectra({seed: (measured, about) for seed in seeds})


def student(cuts=CUTS, halves=HALVES, apart=None, seeds=(0, 1, 2)):
    """A student whose losses stop falling at these steps, `apart` nats from the exact ones."""
    found, truth = losses(cuts, apart or {}, seeds)
    laws = {name: LAWS.get(name, {}) for name in cuts}
    given = spectrum(halves, seeds), truths.KnownTruth(**PART)
    return truths.student_of(found, truth, laws, *given)


def of_figure():
    """Two students, of which the second's M_k grow earlier."""
    return truths.tables_of([student(), student(halves={1: 50.0, 2: 70.0, 3: 90.0})])


def written(folder, write_run):
    """Files of the student; `write_run` writes a manifest.

    Returns inputs with their files, and the block.
    """
    found, truth = losses(CUTS, {})
    laws = {name: LAWS.get(name, {}) for name in CUTS}
    tables.write_theory(folder / "truths.parquet", truth, {"targets": laws})
    paths = {"truths": [str(folder / "truths.parquet")], "losses": [], "runs": [], "spectra": []}
    for seed, mine in found.groupby("seed"):
        for kind in ("losses", "spectra"):
            paths[kind].append(str(folder / f"{kind}-{seed}.parquet"))
        tables.LOSSES.write(paths["losses"][-1], mine.drop(columns="seed"), {})
        about = planted_spectra.about("known") | {"seed": seed}
        tables.SPECTRA.write(paths["spectra"][-1], planted_spectra.table(excess=()), about)
        paths["runs"].append(str(write_run(folder / f"run-{seed}", seed)))
    sets = {"cut-2": {"source": "cut-2"}, "cut-3": {"source": "cut-3"}, "test": {}}
    targets = {name: given | {"split": "test", "sequences": 60} for name, given in sets.items()}
    config = {
        "evaluations": {
            "known": dict(source="known", model="bert", seeds=[0, 1, 2], targets=targets)
        },
        "models": {"bert": {"architecture": "bert"}},
        "spectra": {"known": {"seeds": [0, 1, 2]}},
    }
    block = truths.Block.model_validate({"students": [PART]})
    inputs = truths.Inputs.of(block, config)
    kinds = [kind for key in distinct(inputs) for kind in key.KINDS]
    assert {kind: kinds.count(kind) for kind in kinds} == {k: len(v) for k, v in paths.items()}
    return with_files(inputs, paths), block
