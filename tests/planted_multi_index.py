"""Tables of theory with planted numbers, and what the figures make of them."""

import copy
import math
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from claimed import by_name

from manybody.io import tables
from manybody.papers import readings
from manybody.papers.inputs import with_files
from manybody.papers.multi_index import public

COLUMNS = ["quantity", "series", "seed", "x", "y", "y_err"]
ALPHAS = np.round(0.05 * np.arange(1, 33), 2)
ERROR = 1e-6
SAMPLED = {"skip": 1, "activation": "softmax", "points": 16384, "scrambles": 8}
GAMP_ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9, 1.0, 1.1, 1.2, 1.5)


class Maker:
    """Rows of a table, one call a curve."""

    def __init__(self, **entry):
        self.entry, self.frames, self.about = entry, [], {}

    def add(self, quantity, series, x, y, error=math.nan, seed=0):
        """A curve of each seed: x, y and seed are numbers or broadcast against each other."""
        parts = np.broadcast_arrays(np.atleast_1d(np.asarray(x, float)), np.asarray(y, float), seed)
        columns = {name: part.ravel() for name, part in zip(("x", "y", "seed"), parts, strict=True)}
        self.frames.append(
            pd.DataFrame(dict(quantity=quantity, series=series, **columns, y_err=error))
        )
        return self

    def off(self, quantity, factor, columns="y", **where):
        """The same rows with the numbers of a quantity, or several, multiplied by `factor`.

        where: column -> the value, or values, at which they are.
        """
        frame = self.frame().round({"x": 9})
        here = frame["quantity"].isin(np.atleast_1d(quantity))
        for column, values in where.items():
            here &= frame[column].isin(np.atleast_1d(values))
        assert here.any(), (quantity, where)
        frame.loc[here, columns] *= factor
        return self.of([frame])

    def without(self, quantity):
        """The same rows but for those of a quantity."""
        return self.of([frame[frame["quantity"] != quantity] for frame in self.frames])

    def of(self, frames):
        changed = copy.copy(self)
        changed.frames = frames
        return changed

    def frame(self):
        if not self.frames:
            return pd.DataFrame(columns=COLUMNS).astype({"x": float, "y": float, "y_err": float})
        return pd.concat(self.frames, ignore_index=True)[COLUMNS]

    def document(self):
        return {"entry": self.entry, **self.about}

    def table(self):
        return readings.Table(self.frame(), self.document())


def state_evolution(regulariser, failed=(), **changes):
    """Has the stored public overlaps where they are known."""
    made = Maker(regulariser=regulariser, **(SAMPLED | changes))
    for name, stored in public.OVERLAPS.items():
        places = [min(stored) - 0.05, *stored, 3.0]
        q = np.interp(ALPHAS, places, [0.0, *stored.values(), 0.999])
        made.add("overlap", name, ALPHAS, q, ERROR)
        made.add("overlap informed", name, ALPHAS, q, ERROR)
    for series in ("from 0", "informed"):
        made.add("converged", series, ALPHAS, ~readings.same(ALPHAS[:, None], failed).any(axis=1))
    return (
        made.add("error plug-in", "both layers", ALPHAS, 0.385 * np.exp(-4 * ALPHAS), ERROR)
        .add("error plug-in", "layer 2 only", ALPHAS, 0.385 * np.exp(-3 * ALPHAS) + 0.03, ERROR)
        .add("threshold", "alpha_1", made.entry["skip"], 0.72, 0.001)
        .add("threshold", "alpha_2", made.entry["skip"], 0.185)
    )


def thresholds(**changes):
    skips = [0.01, 0.04, 0.5, 1, 2, 4]
    entry = {"activation": "softmax", "regulariser": 0, "points": 32768, "scrambles": 16}
    return (
        Maker(**(entry | {"skips": skips} | changes))
        .add("alpha_2", "exact", skips, [0.28, 0.26, 0.2027, 0.1855, 0.1743, 0.1691])
        .add("alpha_1", "self-consistent", skips, 0.7194, 5e-4)
        .add("alpha_1", "literal", skips, 1 / 6)
        .add("alpha_1 difference", "c = 1", skips, 1e-5, 1e-4)
    )


def gamp(runs=8, size=1000, alphas=GAMP_ALPHAS, init="informed", failed=(), bad=1, **changes):
    """Runs go to cosines whose squares are the public overlaps.

    The first `bad` of them do not converge at the alphas in `failed`.
    """
    informed = init == "informed"
    entry = dict(
        skip=1, dimension=size, alphas=list(alphas), runs=runs, iterations=30, points=256,
        damping=1, regulariser=1e-3, noise=1e-3, init=init,
        overlaps=[0.3, 0.6] if informed else None,
    )  # fmt: skip
    made = Maker(**(entry | changes))
    theory = state_evolution(1e-3).table()
    draws = np.random.default_rng(5)
    steps, seeds = np.arange(31), np.arange(runs)[:, None]
    for alpha in alphas:
        series = f"{alpha:g}"
        for layer, rise in ((1, (17, 1.5)), (2, (4, 0.7))):
            name = f"{layer}{layer}"
            stored = public.MESSAGE_PASSING[f"Q{name}"]
            q = stored.get(alpha, theory.between("overlap", f"Q{name}", alpha)[0])
            mean = q / (1 + np.exp(-(steps - rise[0]) / rise[1]))
            found = np.clip(mean + 0.004 * draws.standard_normal((runs, 1)), 1e-4, 1)
            made.add(f"cosine {layer}", series, steps, np.sqrt(found), seed=seeds)
            for part in "MQ":
                made.add(f"{part}{name}", series, steps, found, seed=seeds)
                if informed:
                    made.add(f"SE {part}{name}", series, steps, mean, ERROR)
        end = public.MESSAGE_PASSING["error plug-in"].get(alpha, 0.005)
        error = np.where(steps < 3, 0.44, np.where(steps < 17, 0.039, end))
        error = error * (1 + 1e-3 * seeds)
        made.add("error plug-in", series, steps, error, seed=seeds)
        made.add("converged", series, 0, (alpha not in failed) | (seeds >= bad), seed=seeds)
    return made


LEARNING = {  # the cosine of each layer -> its epoch
    1: {
        0.02: 0, 0.106: 13, 0.317: 32, 0.44: 50, 0.529: 53, 0.7: 80, 0.793: 89, 0.81: 120,
        0.867: 300,
    },
    2: {0.102: 1.4, 0.511: 2.2, 0.92: 2.9, 0.95: 2.92, 0.998: 10},
}  # fmt: skip


def sgd(epochs=500, **changes):
    """Passes the public levels when the public runs do."""
    settings = {"same_teacher": False, "runs": 8, "epochs": epochs}
    made = Maker(**(public.SGD_SETTING | settings | changes))
    times = np.concatenate([np.arange(1, 191) / 38, np.arange(6, epochs + 1)])
    for run in range(made.entry["runs"]):
        late = 1 + 0.002 * run
        for layer, places in LEARNING.items():
            at = np.array(list(places.values())) * late
            made.add(
                f"cosine {layer}",
                "",
                times,
                np.interp(times, at, list(places), left=0.01),
                seed=run,
            )
    return made


def deep(failed=(), **changes):
    entry = dict(skip=1, regulariser=0, skips=[0.5, 1, 2], points=4096, scrambles=16)
    made = Maker(**(entry | changes))
    alphas = np.linspace(0.05, 2, 40)
    for name, stored in public.DEEP.items():
        q = np.interp(alphas, [min(stored) - 0.05, *stored], [0, *stored.values()])
        made.add("overlap", name, alphas, q, 1e-3)
    for name, value in (("alpha_3", 0.205), ("alpha_1", 1.01), ("alpha_2", 1.15)):
        skips = np.array(made.entry["skips"])
        made.add("threshold", name, skips, value + 0.05 * (1 - skips), 1e-3)
    return (
        made.add("error plug-in", "all layers", alphas, 0.4 * np.exp(-2 * alphas), 1e-4)
        .add("error plug-in", "last layer only", alphas, 0.4 * np.exp(-1.5 * alphas), 1e-4)
        .add("converged", "", alphas, ~readings.same(alphas[:, None], failed).any(axis=1))
    )


SETTLED = {1: {0.14: 0, 0.5: 16, 1: 130}, 2: {0.13: 60, 0.5: 139, 1: 540}}  # similarity: step


def trec(runs=8, **changes):
    """The first layer settles first; nothing without questions."""
    entry = dict(questions="train.label", learning_rate=5e-5, init_scale=3e-4, epochs=40, runs=runs)
    made = Maker(**(entry | changes))
    if made.entry["questions"] is None:
        return made
    steps = np.concatenate([np.arange(0, 300), np.arange(300, 10921, 60)])
    for run in range(runs):
        for layer, places in SETTLED.items():
            late = np.array([*places.values()]) * (1 + 0.01 * run)
            y = np.interp(steps, late, list(places)) + 1e-4 * run
            made.add(f"similarity {layer}", "", steps, y, seed=run)
    return made


def held(**changes):
    """Rises with Q22."""
    places = {0.93: 0.0, 0.95: 0.0, 0.97: 0.28, 0.99: 0.67, 0.999: 0.95}
    entry = SAMPLED | dict(regulariser=0.0, alpha=1.2, overlaps=list(places))
    return Maker(**(entry | changes)).add("fixed", "Q11", list(places), list(places.values()), 1e-4)


WHOLE = {
    "fig1": lambda: dict(
        state_evolution=state_evolution(0.0),
        regularised=state_evolution(1e-3),
        gamp=gamp(),
        thresholds=thresholds(),
    ),
    "fig2": lambda: dict(gamp=gamp(alphas=(1.2,)), sgd=sgd()),
    "fig3": lambda: dict(
        deep=deep(),
        deep_regularised=deep(regulariser=1e-3),
        trec=trec(),
        docstrings=trec(questions={"packages": {}, "of_each": 5}),
    ),
    "fig5": lambda: dict(fixed_overlap=held()),
}


@cache
def planted(figure):
    """What a figure reads, by role; made once, so that nothing is to be added to it."""
    return WHOLE[figure]()


def module(figure):
    return import_module(f"manybody.papers.multi_index.{figure}")


def given(figure, folder, **made):
    """Block and inputs of a figure of planted tables, but for those in `made`."""
    paths, roles = [], planted(figure) | made
    for role, maker in roles.items():
        paths.append(folder / f"{role}.parquet")
        tables.write_theory(paths[-1], maker.frame(), maker.document())
    block = module(figure).Block(theory={role: role for role in roles})
    config = {"theory": {role: maker.entry for role, maker in roles.items()}}
    inputs = module(figure).Inputs.of(block, config)
    order = [folder / f"{key.theory}.parquet" for key in inputs.theory.values()]
    return block, with_files(inputs, {"theory": order})


def of(figure, folder, **made):
    """The numbers of a figure."""
    block, inputs = given(figure, folder, **made)
    return module(figure).tables(inputs, block)


def whole(figure):
    """The numbers of a figure, all planted; some did not converge, and errors are large
    enough for bands."""
    failing = {
        "fig1": lambda: dict(
            regularised=state_evolution(1e-3, failed=(0.75,)).off("overlap", 1e4, "y_err"),
            thresholds=thresholds().off("alpha_1", 100, "y_err"),
            gamp=gamp(failed=(0.9,)),
        ),
        "fig3": lambda: dict(deep=deep(failed=(1.0,))),
    }
    with TemporaryDirectory() as folder:
        return of(figure, Path(folder), **failing.get(figure, dict)())


def judged(figure, folder, **made):
    """The claims of a figure, by the last part of their id."""
    return by_name(module(figure).claims(of(figure, folder, **made)))
