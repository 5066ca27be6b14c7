"""Measures of Markov chains: whether they agree, and how far they have left their start."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables
from manybody.io.manifest import Manifest
from manybody.measure.intervals import margin
from manybody.models import labels

FORGOTTEN = 0.1  # share of the start's tokens that a chain may still hold, or has come back to
RHAT = 1.05  # split R-hat up to which chains count as mixed
MET = "the chains agree, and have left their start"
SAMPLES = "samples.md"


class Agreement(NamedTuple):
    """A comparison of chains from text and from noise: noise less text, with standard errors.

    `score` is -E / L and `loss` their generator's own loss, in nats a token; `holds` is the answer.
    """

    score: tuple[float, float]
    loss: tuple[float, float]
    holds: str


def agreement(
    traces: Sequence[pd.DataFrame], losses: Sequence[tuple[float, float]], sweep: int, chains: int
) -> Agreement:
    """Compares chains from text with those from noise.

    traces: of both, text first. losses: their generator's own losses on the state after `sweep`
    sweeps, with standard errors. They agree if the mean scores and the own losses do within their
    margins (Student, over chains) and R-hat of both is below 1.05; not if any of these fails.
    """
    text, noise = (trace.set_index("sweep").loc[sweep] for trace in traces)
    score = noise["score"] - text["score"], math.hypot(text["score_se"], noise["score_se"])
    loss = losses[1][0] - losses[0][0], math.hypot(losses[0][1], losses[1][1])
    beyond = [abs(value) - margin(error, chains) for value, error in (score, loss)]
    beyond += [rhat_of(trace) - RHAT for trace in traces]
    holds = "undecided"  # where NaN is neither within nor beyond
    if any(one > 0 for one in beyond):
        holds = "no"
    elif all(one <= 0 for one in beyond):
        holds = "yes"
    return Agreement(score, loss, holds)


def drift(trace: pd.DataFrame, sweep: int) -> tuple[float, float]:
    """Change of the mean score over the last quarter before `sweep`, over its total change.

    The chains are the same ones throughout and their scores are correlated in time, so two errors
    are both too large, and the smaller is taken: that of two independent sets of chains, and that
    of a walk with independent steps from sweep to sweep (their sd times the root of their number).
    """
    known = trace.set_index("sweep").loc[:sweep]
    score = known["score"]
    start = sweep - max(1, round(sweep / 4))
    total = score.loc[sweep] - score.loc[0]
    if len(score) < 3 or total == 0:
        return math.nan, math.nan
    steps = score.loc[start:sweep].diff().dropna()
    walk = steps.std(ddof=1) * math.sqrt(len(steps))
    apart = math.hypot(*known["score_se"].loc[[start, sweep]])
    error = np.nanmin([walk, apart]) if len(steps) > 1 else apart
    return float((score.loc[sweep] - score.loc[start]) / total), float(error / abs(total))


def kept(trace: pd.DataFrame, sweep: int, chains: int) -> tuple[float, float]:
    """Share of the positions that hold, after `sweep` sweeps, the token that the chain started
    from, with the error of as many independent chains, whose positions move together; NaN for a
    sweep that the trace does not have."""
    changed = trace.set_index("sweep")["changed"]
    if sweep not in changed.index:
        return math.nan, math.nan
    share = 1 - float(changed.loc[sweep])
    return share, math.sqrt(max(share * (1 - share), 0) / chains)


def rhat_of(trace: pd.DataFrame) -> float:
    """Split R-hat of the score, over the second half of the sweeps; NaN for too few of them."""
    return float(trace["rhat"].iloc[-1])


def in_words(rhat: float, kept: float) -> str:
    """Split R-hat of the score and the share of the start that is left, in words."""
    if rhat != rhat:
        return "too few sweeps to say whether the chains agree"
    faults = ["the chains do not agree"] * (rhat >= RHAT)
    faults += ["part of the start is left"] * (kept >= FORGOTTEN)
    return " and ".join(faults) or MET


def known(path: str | Path) -> dict:
    """What manifest, trace and samples of a clone say; `kept`: share that is as at first."""
    about, trace = tables.read_trace(path)
    last = trace.iloc[-1]
    manifest = Manifest.read(path, "clones")
    left, rhat = 1 - float(last["changed"]), float(last["rhat"])
    return {
        "name": Path(path).parent.name,
        "source": about["source"],
        "generator": labels.target({"original": False, **about}, rank=True),
        "sweeps": int(last["sweep"]),
        "kept": left,
        "rhat": rhat,
        "effective": float(last["effective_samples"]),
        "verdict": in_words(rhat, left),
        "samples": manifest.file(SAMPLES).read_text("utf-8") if SAMPLES in manifest.names() else "",
    }
