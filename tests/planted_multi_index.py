"""Tables of theory with planted numbers, and what `judge` and `draw` of the figures are given."""

import copy
import math

import numpy as np
import pandas as pd
from manybody.claims.multi_index import fig1, fig2, fig3, fig5, messages, public
from manybody.claims.multi_index import runs as message_runs

from manybody.claims import reading
from manybody.claims.reading import Table
from manybody.io import tables

COLUMNS = ["quantity", "series", "seed", "x", "y", "y_err"]
ALPHAS = [round(0.05 * k, 2) for k in range(1, 33)]
ERROR = 1e-6
BASE = {"skip": 1, "activation": "softmax", "points": 16384, "scrambles": 8, "seed": 0}
APART = math.sqrt(2 / math.pi)  # mean size of a normal number: of directions drawn apart
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

    def points(self, quantity, series, values, error=ERROR):
        return self.add(quantity, series, list(values), list(values.values()), error)

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
        changed = copy.copy(self)
        changed.frames = [frame]
        return changed

    def frame(self):
        if not self.frames:
            return pd.DataFrame(columns=COLUMNS).astype({"x": float, "y": float, "y_err": float})
        return pd.concat(self.frames, ignore_index=True)[COLUMNS]

    def table(self):
        return Table(self.frame(), {"entry": self.entry, **self.about})


def overlap(alphas, places):
    """Q at each alpha through `places`, Q -> alpha."""
    q = [0.0, *places, 1.0]
    values = list(places.values())
    start = values[0] - 0.2 * (values[1] - values[0])
    return np.interp(alphas, [start, *values, 3.0], [0.0, *q[1:-1], 0.999])


def converged(alphas, failed):
    return ~reading.is_in(alphas, failed) if failed else 1


def state_evolution(regulariser, failed=(), **changes):
    """Obeys every landmark of the specification at this regulariser."""
    made = Maker(kind="multi-index-state-evolution", regulariser=regulariser, **(BASE | changes))
    alphas, skip = np.array(ALPHAS), BASE["skip"]
    alone, along = fig1.SINGLE_LAYER, fig1.ALONG[regulariser]
    overlaps = {"Q11": overlap(alphas, along), "Q22": overlap(alphas, alone)}
    for name, q in overlaps.items():
        if regulariser:  # what the public runs have, where it is known
            stored = public.OVERLAPS[name]
            near = (alphas >= min(stored)) & (alphas <= max(stored))
            q[near] = np.interp(alphas[near], list(stored), list(stored.values()))
        made.add("overlap", name, alphas, q, ERROR)
        made.add("overlap informed", name, alphas, q, ERROR)
        made.add("informed difference", name, 0.85, 1e-4, 1e-5)
    for layer in reading.LAYERS:
        made.points("expected", f"alpha of layer {layer}", {q: along[q] for q in (0.5, 0.8)}, 1e-5)
    for (one, two), values in fig1.ERRORS.items():
        series = f"{one:g},{two:g}"
        for name, value, other in zip(
            ("plug-in", "posterior mean"), values[:2], (0.0344, 0.01081), strict=True
        ):
            made.add(f"{name} at", series, two, value or other, ERROR)
            made.add(f"expected {name}", series, two, value or other, ERROR)
    for series in ("from 0", "informed"):
        made.add("converged", series, alphas, converged(alphas, failed))
    return (
        made.points("curve", "Q22 alone", alone)
        .points("expected", "alpha of Q22 alone", {q: alone[q] for q in (0.3, 0.6, 0.9)}, 1e-5)
        .points("curve", "alpha along Q11", along | ({0.99: 0.999} if regulariser == 0 else {}))
        .points("curve", "Q22 along Q11", fig1.REST[regulariser])
        .add("error plug-in", "both layers", alphas, 0.385 * np.exp(-4 * alphas), ERROR)
        .add("error plug-in", "layer 2 only", alphas, 0.385 * np.exp(-3 * alphas) + 0.03, ERROR)
        .add("threshold", "alpha_1", skip, fig1.ALPHA_1[regulariser], ERROR)
        .add("threshold", "alpha_2", skip, fig1.ALPHA_2)
        .add("threshold", "lambda_1 at Q = 0", skip, 0.1624)
        .add("expected", "alpha_2", skip, fig1.ALPHA_2)
        .add("expected", "lambda_1", skip, 0.1624)
        .add("derivative", "2 dlogZ/dQ - G", range(10), np.linspace(-2, 2, 10), 1.0)
        .add("nishimori", "", range(10), np.linspace(-2, 2, 10), 1.0)
    )


def held(**changes):
    """Obeys figure 5's landmarks."""
    entry = BASE | dict(regulariser=0.0, alpha=1.2, overlaps=list(fig5.LANDMARKS)) | changes
    return Maker(kind="multi-index-fixed-overlap", **entry).points("fixed", "Q11", fig5.LANDMARKS)


def thresholds(**changes):
    skips = [0.01, 0.04, *fig1.ALPHA_2_OVER, 1000]
    second = [0.28, 0.26, *fig1.ALPHA_2_OVER.values(), 1 / 6]
    entry = {"activation": "softmax", "regulariser": 0, "points": 32768, "scrambles": 16}
    made = Maker(
        kind="multi-index-thresholds", **(entry | {"skips": skips, "tolerance_1": 7e-4} | changes)
    )
    wide = {c: value for c, value in zip(skips, second, strict=True) if c >= 0.25}
    small = {c: value for c, value in fig1.LAMBDA_1.items() if c >= 0.25}
    for series, places in fig1.APPROACH.items():
        made.points("lambda_1", series, {c: 1 / value for c, value in places.items()})
    return (
        made.points("alpha_2", "expected", wide, math.nan)
        .points("lambda_1", "expected", small | {1000: 1e-6}, math.nan)
        .points("lambda_1", "at Q = 0", fig1.LAMBDA_1 | {1000: 1e-6}, math.nan)
        .points("onset", "V22", fig1.ONSET)
        .add("alpha_2", "exact", skips, second)
        .add("alpha_1", "self-consistent", skips, 0.7194, 5e-4)
        .add("alpha_1", "literal", skips, 1 / 6)
        .add("alpha_1 difference", "c = 1", skips, 1e-5, 1e-4)
        .add("first order", "", skips, np.less(skips, 0.05))
        .add("transition", "", [0.01, 0.04], [0.275, 0.258])
    )


def gamp(runs=8, size=1000, alphas=GAMP_ALPHAS, init="informed", failed=(), bad=1, **changes):
    """Runs go to cosines whose squares are state evolution's overlaps.

    The first `bad` of them do not converge at the alphas in `failed`.
    """
    informed = init == "informed"
    entry = dict(
        skip=1, dimension=size, alphas=list(alphas), runs=runs, iterations=30, points=256,
        damping=1, regulariser=1e-3, noise=1e-3, side_information=0, init=init,
        overlaps=messages.START if informed else None,
    )  # fmt: skip
    made = Maker(kind="multi-index-gamp", **(entry | changes))
    theory = state_evolution(1e-3).table()
    draws = np.random.default_rng(5)
    steps, seeds = np.arange(31), np.arange(runs)[:, None]
    for alpha in alphas:
        series = f"{alpha:g}"
        for layer, rise in ((1, (17, 1.5)), (2, (4, 0.7))):
            name = f"{layer}{layer}"
            q = theory.between("overlap", f"Q{name}", alpha)[0]
            mean = q / (1 + np.exp(-(steps - rise[0]) / rise[1]))
            if informed and alpha == message_runs.ALPHA:
                known = [row[layer - 1] for row in messages.STEPS]
                mean = np.concatenate([[messages.START[layer - 1]], known, mean[5:]])
            found = np.clip(mean + 0.004 * draws.standard_normal((runs, 1)), 1e-4, 1)
            made.add(f"cosine {layer}", series, steps, np.sqrt(found), seed=seeds)
            for part in "MQ":
                made.add(f"{part}{name}", series, steps, found, seed=seeds)
                if informed:
                    made.add(f"SE {part}{name}", series, steps, mean, ERROR)
        for quantity in message_runs.ACROSS:
            y = APART * (1 + 0.1 * draws.standard_normal((runs, 1))) / math.sqrt(size)
            made.add(quantity, series, steps, y, seed=seeds)
        error = np.where(steps < 3, 0.44, np.where(steps < 17, 0.039, 0.005))
        made.add("error plug-in", series, steps, error, seed=seeds)
        made.add("converged", series, 0, (alpha not in failed) | (seeds >= bad), seed=seeds)
    return made


SGD = fig2.SETTING | {"same_teacher": False, "runs": 8, "epochs": 500}
LEARNING = {  # the cosine of each layer -> its epoch
    1: {
        0.02: 0, 0.106: 13, 0.317: 32, 0.44: 50, 0.529: 53, 0.7: 80, 0.793: 89, 0.81: 120,
        0.867: 300,
    },
    2: {0.102: 1.4, 0.511: 2.2, 0.92: 2.9, 0.95: 2.92, 0.998: 10},
}  # fmt: skip


def sgd(**changes):
    """Passes layer 2's and layer 1's landmarks."""
    made = Maker(kind="multi-index-sgd", **(SGD | changes))
    epochs = np.concatenate([np.arange(1, 191) / 38, np.arange(6, 501)])
    for run in range(made.entry["runs"]):
        late = 1 + 0.002 * run
        for layer, places in LEARNING.items():
            at = np.array(list(places.values())) * late
            y = np.interp(epochs, at, list(places), left=0.01)
            made.add(f"cosine {layer}", "", epochs, y, seed=run)
        made.add("loss", "train", epochs[190:], 1 / epochs[190:], seed=run)
    return made


def deep(failed=(), **changes):
    entry = dict(skip=1, regulariser=0, skips=[0.5, 1, 2], points=4096, scrambles=16) | changes
    made = Maker(kind="multi-index-deep", **entry)
    alphas = np.linspace(0.05, 2, 40)
    for name, stored in public.DEEP.items():
        q = np.interp(alphas, [min(stored) - 0.05, *stored], [0, *stored.values()])
        made.add("overlap", name, alphas, q, 1e-3)
    values = {"alpha_3": (0.205, 0.02), "alpha_1": (1.01, 0.05), "alpha_2": (1.15, 0.05)}
    for name, (value, slope) in values.items():
        skips = np.array(entry["skips"])
        made.add("threshold", name, skips, value + slope * (1 - skips), 1e-3)
    return (
        made.points("curve", "Q33 alone", fig3.SINGLE_LAYER)
        .add("onset ratio", "alpha lambda_2 at onset of 1", 1, 0.75, 1e-3)
        .add("error plug-in", "all layers", alphas, 0.4 * np.exp(-2 * alphas), 1e-4)
        .add("error plug-in", "last layer only", alphas, 0.4 * np.exp(-1.5 * alphas), 1e-4)
        .add("converged", "", alphas, converged(alphas, failed))
    )


def untied(c_two=1.0, **changes):
    made = Maker(**(dict(kind="multi-index-untied", layers=[1, 2], scrambles=4) | changes))
    skips = [0.5, 1, 2]
    for series, value in (("L = 1", 0.3), ("L = 2 last", 0.35), ("L = 2 first", 1.6)):
        made.add("threshold", series, skips, [value * 1.1, value, 0.9 * value], 1e-3)
    return (
        made.add("bound", "", skips, 0.1)
        .add("mass", "", skips, 1 + 1e-7)
        .add("converged", "L = 2 first", skips, [1, 1, c_two])
    )


# Of each layer: the step at which its similarity leaves its start, and steps of its last values.
ENDS = {1: (0, {0.992: 130, 1: 10920}), 2: (60, {0.99: 290, 0.9999: 540})}


def trec(runs=8, **changes):
    entry = dict(questions="train.label", tokenizer="vocab.txt", init_scale=3e-4, epsilon=1e-6)
    made = Maker(kind="multi-index-trec", **(entry | {"runs": runs} | fig3.QUESTIONS | changes))
    if made.entry["questions"] is None:
        made.about = {"questions": None}
        return made
    words = {"from": "file", "vocabulary": fig3.VOCABULARY}
    made.about = {"tokenizer": words, "steps": 10920}
    steps = np.concatenate([np.arange(0, 300), np.arange(300, 10921, 60)])
    for run in range(runs):
        late = 1 + 0.01 * run
        for layer, (quiet, ends) in ENDS.items():
            crossings = {S: step * late for S, step in fig3.CROSSINGS[layer].items()}
            places = {fig3.STARTS[layer]: quiet} | crossings | ends
            y = np.interp(steps, list(places.values()), list(places))
            made.add(f"similarity {layer}", "", steps, y, seed=run)
    return made


def exact():
    return (
        Maker(kind="multi-index-exact")
        .add("identity", "links: deep attention = its link function", 1e-10, 3e-13)
        .add("identity", "denoiser = dblquad with equal boxes", 1e-4, 2e-6)
    )


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
        docstrings=trec(questions={"packages": {}, "of_each": 5}, tokenizer=None),
        untied=untied(),
    ),
    "fig5": lambda: dict(fixed_overlap=held(), exact=exact()),
}


def given(figure, folder, **made):
    """Files, block and context of a figure whose tables obey the specification, but for `made`."""
    paths, roles = [], WHOLE[figure]() | made
    for role, maker in roles.items():
        paths.append(folder / f"{role}.parquet")
        tables.write_theory(paths[-1], maker.frame(), {"entry": maker.entry, **maker.about})
    names = {role: f"table-of-{role}" for role in roles}
    return {"theory": paths}, {"theory": names}, {"theory": list(names.values())}
