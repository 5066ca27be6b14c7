"""Tables of the Potts paper's other figures with planted numbers."""

import numpy as np
import pandas as pd

from manybody.claims.potts import recovery
from manybody.evaluation.contacts import write_scores

REPLICA = {
    "kind": "replica",
    "gamma": 2.5,
    "ridge": 1e-2,
    "length": 60,
    "alphas": [0.1, 0.5, 1.0, 2.0, 4.0],
    "realisations": 24,
    "sizes": [30, 60, 120],
    "size_realisations": 1000,
    "seed": 4,
    "threads": 1,
}


def curve_of_losses(ridges=(1e-3, 1e-2, 0.1), shift=1.0):
    """Curves of the shape that the specification found, with scatter over realisations."""
    generator, sizes = (
        np.random.default_rng(0),
        np.array([2, 6, 14, 20, 28, 36, 44, 60, 80, 100, 120, 140, 170, 200]),
    )
    rows = []
    for rank, ridge in enumerate(ridges):
        test = 1 + (30 / 3**rank) * np.exp(-(np.log(sizes / (40 * shift)) ** 2))
        train = 0.7 / (1 + (75 * shift / sizes) ** 4)
        for seed in range(12):
            for quantity, values in (("test loss", test), ("training loss", train)):
                scatter = np.exp(0.05 * generator.normal(size=len(sizes)))
                rows += [
                    (quantity, f"{ridge:g}", seed, size, value, np.nan)
                    for size, value in zip(sizes, values * scatter, strict=True)
                ]
    rows.append(("optimum", "", 0, np.nan, 0.69, np.nan))
    columns = ["quantity", "series", "seed", "x", "y", "y_err"]
    return pd.DataFrame(rows, columns=columns), {"length": 20}


def recovered(runs: int, factor: float = 1.0) -> tuple[pd.DataFrame, dict]:
    """A table of the default setting with the numbers that were measured there, and their sd."""
    sizes = list(recovery.MEASURED)
    draws = np.random.default_rng(runs)
    rows, slopes = [], []
    for seed in range(runs):
        slopes.append(-0.97 * factor + 0.011 * draws.standard_normal())
        for size in sizes:
            scale, noise = 3000 / size, draws.standard_normal(3)
            rows += [
                ("coupling error", seed, size, factor * scale * (0.0546 + 0.0042 * noise[0]), 0.0),
                ("pearson", seed, size, 1 - factor * scale * (0.0334 + 0.0027 * noise[1]), 0.0),
                ("score correlation", seed, size, 0.99, 0.0),
                ("excess loss", seed, size, factor * scale * (0.0063 + 0.0012 * noise[2]), 4e-4),
            ]
    rows += [("expected excess", 0, size, 19.0 / size, np.nan) for size in sizes]
    mean, error = np.mean(slopes), np.std(slopes, ddof=1) / np.sqrt(runs)
    rows.append(("mean slope", 0, 0, mean, error))
    frame = pd.DataFrame(rows, columns=["quantity", "seed", "x", "y", "y_err"])
    source = dict(length=20, vocabulary=20, couplings="contact-map", colours="stored")
    entry = {"sizes": sizes, "realisations": runs, "ridge": recovery.RIDGE}
    return frame.assign(series=""), dict(entry=entry, length=20, source=source, beta=1.707)


def write_contacts(folder, couplings, noise, **about):
    """A table of scores: |J| with noise of this size."""
    draws = np.random.default_rng(0).standard_normal(couplings.shape)
    scores = np.abs(couplings) + noise * (draws + draws.T)
    np.fill_diagonal(scores, 0)
    document = dict(source="planted", model="one-head", seed=0, heads=1, weighted=False)
    write_scores(folder / "scores.parquet", scores, document | {"sequences": 3000} | about)
    return folder / "scores.parquet"
