"""What figure 3 says: three layers (section 5), thresholds over c, classifiers (section 6)."""

import math

import numpy as np
import pandas as pd

from manybody.claims import reading, verdicts
from manybody.claims.multi_index import gates, public
from manybody.claims.multi_index.fig1 import at_least
from manybody.claims.multi_index.gates import Gate, place, spread
from manybody.claims.reading import BOUND, Table, Value, channel

LEFT, MIDDLE, RIGHT = "fig. 3 left", "fig. 3, phase diagram", "fig. 3 right"

ALPHA_3 = 0.205
SINGLE_LAYER = {0.05: 0.239, 0.2: 0.320, 0.4: 0.405, 0.6: 0.483}
SINGLE_LAYER |= {0.8: 0.575, 0.9: 0.672, 0.95: 0.790, 0.98: 1.017}
SHARE = 0.03
ONSET_1, ONSET_SHARE = 1.01, 0.05
RATIO_2 = 0.75  # alpha lambda_2 at the onset of layer 1
# What one scrambling of 1024 points scatters by, relative, measured.
SPREAD_3, SPREAD_ONSET, SPREAD_RATIO = 0.014, 0.035, 0.04
SPREAD = {0.05: 0.042, 0.2: 0.029, 0.4: 0.016, 0.6: 0.01, 0.8: 0.012, 0.9: 0.01}
SPREAD |= {0.95: 0.013, 0.98: 0.015}
SHARED = 0.05  # relative gap of two thresholds that count as one
PUBLIC = gates.Public(
    f"{LEFT}: L = 3, public data, V + 1e-3", public.DEEP_SETTING, public.DEEP, 0.05, ""
)
MASS = 1e-3  # error of quadrature over the law of x

# Section 6: BERT's tokeniser and the public settings but for the start of W, under which no step
# of that learning rate could turn the layers as fast as the landmarks say.
QUESTIONS = {"epochs": 40, "batch": 16, "learning_rate": 5e-5, "held_out": 0.2, "length": 32}
QUESTIONS |= {"width": 128, "hidden": 64}
VOCABULARY = 30522
STARTS = {1: 0.14, 2: 0.131}
START_TOLERANCE = 0.02
CROSSINGS = {1: {0.5: 16, 0.9: 51, 0.95: 70}, 2: {0.5: 139, 0.9: 251, 0.95: 269}}
CROSSING_SHARE = 0.2
LATE = {1: (0.5, 0.99), 2: (2.0, 0.9997)}  # epoch from which the similarity is above
QUIET = (60, 0.15)  # layer 2 stays below until this step


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from the files of the figure's rule."""
    found = reading.read(files, block, context)
    deep = found["deep"]
    return verdicts.table(
        [
            *deep_claims(deep, found["deep_regularised"]),
            *phase_claims(deep, found["untied"]),
            *question_claims(found["docstrings"]),
            *question_claims(found["trec"]),
        ]
    )


# --- Three layers --------------------------------------------------------------------------------


def deep_claims(plain: Table, regularised: Table) -> list[dict]:
    """The specification's numbers at c = 1 without regulariser; the stored public ones, which are
    with V + 1e-3; and the paper's claim that the shallow layers share a threshold, of both."""
    return [
        *gates.claims(deep_gates(plain.entry), plain),
        *gates.public_claims(regularised, PUBLIC),
        *(_shared_claim(table) for table in (plain, regularised)),
    ]


def deep_gates(entry: dict) -> list[Gate]:
    if reading.departure(entry, skip=1, regulariser=0):
        return []
    places = [
        ("alpha_3 at c = 1", place("threshold", "alpha_3", 1), ALPHA_3, SHARE, SPREAD_3),
        *(
            (
                f"alpha at Q33 = {x:g}, Q11 = Q22 = 0",
                place("curve", "Q33 alone", x),
                value,
                SHARE,
                SPREAD[x],
            )
            for x, value in SINGLE_LAYER.items()
        ),
        (
            "alpha_1 at c = 1 (alpha lambda_1 = 1)",
            place("threshold", "alpha_1", 1),
            ONSET_1,
            ONSET_SHARE,
            SPREAD_ONSET,
        ),
        (
            "alpha lambda_2 at the onset of layer 1",
            place("onset ratio", "alpha lambda_2 at onset of 1", 1),
            RATIO_2,
            ONSET_SHARE,
            SPREAD_RATIO,
        ),
    ]
    return [
        Gate(
            f"{LEFT}: L = 3, {text}: specification",
            find,
            value,
            share * value,
            spread(scatter * value, entry),
            entry["scrambles"],
        )
        for text, find, value, share, scatter in places
    ]


def _shared_claim(table: Table) -> dict:
    """The paper: layers 1 and 2 of three start at the same alpha. Here the gap of their thresholds,
    which share points, with the error of independent ones, over the smaller one."""
    c = table.entry["skip"]
    claim = (
        f"{LEFT}: L = 3, layers 1 and 2 share a threshold (alpha_2 / alpha_1 - 1), c = {c:g}, "
        f"{channel(table.entry)}"
    )
    found = [table.at("threshold", f"alpha_{layer}", c) for layer in (1, 2)]
    if any(value is None or math.isnan(value.value) for value in found):
        return verdicts.not_run(claim, "not both were found")
    first, second = found
    ratio = second.value / first.value
    error = ratio * math.hypot(first.error / first.value, second.error / second.value)
    return verdicts.within(claim, ratio - 1, error, 0.0, SHARED, runs=first.runs)


def phase_claims(deep: Table, untied: Table) -> list[dict]:
    """What holds at every c: the bound, and the last layer first."""
    values = pd.concat([deep.get("threshold", f"alpha_{layer}")["y"] for layer in (1, 2, 3)])
    return [
        at_least(f"{MIDDLE}: L = 3, all thresholds at or above 1/6", values, BOUND),
        *_untied_claims(untied),
        _order_claim("L = 3, the last layer before layer 1", deep, "alpha_3", "alpha_1"),
        # the two change places between c = 1 and 2
        _order_claim("L = 3, layer 1 before layer 2 up to c = 1", deep, "alpha_1", "alpha_2", 1.0),
        _order_claim(
            "L = 2, untied, the last layer before the first", untied, "L = 2 last", "L = 2 first"
        ),
    ]


def _untied_claims(table: Table) -> list[dict]:
    """The bound of the untied link, its thresholds above it, and the mass of its law of x."""
    values = [table.get("threshold", series) for series in table.series("threshold")]
    bound = table.get("bound")["y"]
    claim = f"{MIDDLE}: untied, all thresholds at or above the bound of two layers"
    if not values or not len(bound):
        return [verdicts.failed(claim, "exact", "missing in the table")]
    rows = [at_least(claim, pd.concat(values)["y"], float(bound.iloc[0]))]
    mass = table.get("mass")
    if len(mass):
        claim = f"{MIDDLE}: untied, mass of the law of x: largest difference from 1"
        worst = float((mass["y"] - 1).abs().max())
        rows.append(verdicts.identity(claim, worst, 0.0, MASS))
    return rows


def _order_claim(text: str, table: Table, first: str, second: str, most: float = math.inf) -> dict:
    """The gap of two thresholds at the c, up to `most`, where it is smallest, of those c at which
    both were found and their iterations converged."""
    claim = f"{MIDDLE}: {text}: smallest gap over c"
    both = table.get("threshold", first).merge(
        table.get("threshold", second), on="x", suffixes=("", "_second")
    )
    both = both[both["y"].notna() & both["y_second"].notna() & (both["x"] <= most)]
    failed = [*table.failed(first), *table.failed(second)]
    both = both[~reading.is_in(both["x"], failed)] if failed else both
    if not len(both):
        return verdicts.not_run(claim, "not in the table")
    gaps = both["y_second"] - both["y"]
    at = gaps.idxmin()
    error = np.hypot(both["y_err"].fillna(0), both["y_err_second"].fillna(0))[at]
    claim += f", c = {both.loc[at, 'x']:g} of {len(both)}"
    runs = table.entry["scrambles"]
    return verdicts.gap(claim, float(gaps[at]), float(error), runs=runs)


# --- Classifiers of questions and of sentences ---------------------------------------------------


def question_claims(table: Table) -> list[dict]:
    """Section 6: the order of the layers; of TREC by BERT's tokeniser also the published means of 8
    runs."""
    text = f"{RIGHT}: {reading.classified(table)}"
    claim = f"{text}: the similarity of layer 1 passes .5 before that of layer 2, steps"
    if not table.series("similarity 1"):
        return [verdicts.not_run(claim, "no questions: set `questions` of the entry")]
    first, second = (
        reading.crossings(table.get(f"similarity {layer}"), 0.5) for layer in reading.LAYERS
    )
    rows = [verdicts.positive(claim, (second - first).dropna().to_numpy())]
    words = table.about["tokenizer"]
    other = words["from"] != "file" or words["vocabulary"] != VOCABULARY
    ours = isinstance(table.entry["questions"], dict)
    if ours or other or reading.departure(table.entry, **QUESTIONS):
        return rows
    return rows + _landmark_claims(f"{text}, BERT's tokeniser", table)


def _landmark_claims(text: str, table: Table) -> list[dict]:
    runs = {layer: reading.matrix(table.get(f"similarity {layer}")) for layer in reading.LAYERS}
    steps = table.about["steps"] / table.entry["epochs"]
    rows = [
        gates.near(
            f"{text}: similarity of layer {layer} at first",
            reading.mean(runs[layer].iloc[:, 0]),
            value,
            START_TOLERANCE,
        )
        for layer, value in STARTS.items()
    ]
    for layer, places in CROSSINGS.items():
        for level, step in places.items():
            found = _mean_crossing(runs[layer], level)
            claim = f"{text}: step at which the similarity of layer {layer} is {level:g}"
            rows.append(gates.near(claim, found, step, CROSSING_SHARE * step))
    for layer, (epoch, bound) in LATE.items():
        found = runs[layer].loc[:, runs[layer].columns >= epoch * steps].mean()
        claim = f"{text}: similarity of layer {layer} after epoch {epoch:g}: the least mean"
        rows.append(_bound_claim(claim, float(found.min()), bound, above=True))
    step, bound = QUIET
    found = runs[2].loc[:, runs[2].columns <= step].mean()
    claim = f"{text}: similarity of layer 2 until step {step}: the largest mean"
    rows.append(_bound_claim(claim, float(found.max()), bound, above=False))
    return rows


def _mean_crossing(runs: pd.DataFrame, level: float) -> Value:
    """Where the mean over runs passes a level; error: that of the runs' own crossings."""
    found = reading.first_crossing(runs.columns, runs.mean(), level)
    own = [reading.first_crossing(runs.columns, run, level) for run in runs.to_numpy()]
    return reading.mean(place for place in own if not math.isnan(place))._replace(value=found)


def _bound_claim(claim: str, value: float, bound: float, above: bool) -> dict:
    holds = "yes" if (value >= bound if above else value <= bound) else "no"
    sign = ">=" if above else "<="
    return verdicts.row(claim, "paper", holds, value, math.nan, f"{sign} {bound:g}", math.nan)
