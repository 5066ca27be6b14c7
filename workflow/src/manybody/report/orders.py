"""Which orders of interaction matter in a text, by small trial models, before clones are drawn.

A trial model's loss on text is known with its logits cut at each degree in some positions of the
context, the others being text (`evaluation.spectrum.anchored_loss`); degree d is order d + 1. What
the loss falls by from one order to another is the most that clones of these orders could differ by
for the sake of their order, if their generators learn no more than the trial has.

A figure compares the losses of a student on two clones. From chance it tells differences above
two standard errors: those of so many sequences each, whose losses vary as those of n-grams do, and
those of the mean of as many students as there are trials, whose losses vary as the trials' do.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody import models
from manybody.claims.simplicity.spectra import Spectra
from manybody.claims.verdicts import DEVIATIONS, ERRORS, decided, margin
from manybody.io import tables
from manybody.io.atomic import read_json
from manybody.io.checkpoints import history

NOTHING = 0.0005  # nats, that three digits do not show
Order = int | None  # None if only the length of a sequence bounds it


class Gain(NamedTuple):
    """What the orders above one, up to another, take off the loss: nats, half the 95 % interval."""

    value: float
    width: float
    answer: str


def by_order(runs: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The anchored loss of the runs of a spectrum, in nats, means over runs: a row an order.

    Columns order, loss, loss_se, excess (over that of all orders), excess_se. Runs are asked about
    the same tokens, so that the errors of the choice of tokens are averaged, not divided.
    """
    found = []
    for run in runs:
        for name in ("loss", "excess"):
            part = run[run["quantity"] == f"anchored {name}"].assign(name=name)
            found.append(part[["name", "order", "value", "se"]])
    means = pd.concat(found).groupby(["name", "order"]).mean()
    loss, excess = means.loc["loss"], means.loc["excess"]
    parts = {"loss": loss["value"], "loss_se": loss["se"]}
    parts |= {"excess": excess["value"], "excess_se": excess["se"]}
    return pd.DataFrame(parts).rename_axis("order").rename(lambda degree: degree + 1).reset_index()


def gain(runs: Sequence[pd.DataFrame], low: int, high: Order, visible: float) -> Gain:
    """Whether the orders above `low` up to `high` take off more than is `visible` (nats).

    `yes` if the 95 % interval lies above it, `no` if below, else `undecided`; so it is with one
    run, and where the positions that were cut are too few to tell the two orders apart. The error
    is that of the choice of tokens and, by Student's t, that of the seeds of training.
    """
    values, errors = [], []
    for run in runs:
        excess = run[run["quantity"] == "anchored excess"].set_index("order")
        most = excess.index.max()
        first, last = (min(most if order is None else order - 1, most) for order in (low, high))
        values.append(excess["value"][first] - excess["value"][last])
        # Not more than this, however the two go together; all orders have no error.
        errors.append(excess["se"][first] + excess["se"][last])
    if first == last:
        return Gain(math.nan, math.inf, "undecided")
    value, seeds = float(np.mean(values)), len(values)
    of_seeds = np.std(values, ddof=1) / math.sqrt(seeds) if seeds > 1 else math.nan
    width = math.hypot(margin(float(np.mean(errors))), margin(of_seeds, seeds))
    return Gain(value, width, decided(value - width > visible, value + width < visible))


def smallest(runs: Sequence[pd.DataFrame], n_grams: list[dict], sequences: int) -> float:
    """The smallest difference (nats) of a student's losses on two clones that a figure can see.

    n_grams: as of `inspection.ngram_losses`; the highest order gives the spread of a sequence's
    loss. Each clone has so many `sequences`.
    """
    spread = n_grams[-1]["error"] * math.sqrt(n_grams[-1]["sequences"])
    full = [run[run["quantity"] == "anchored loss"]["value"].iloc[-1] for run in runs]
    of_seeds = np.std(full, ddof=1) if len(full) > 1 else 0.0
    parts = spread * math.sqrt(2 / sequences), of_seeds / math.sqrt(len(full))
    return float(ERRORS * math.hypot(*parts))


def page(
    config: dict,
    spectra: Iterable[str | Path],
    manifests: Iterable[str | Path],
    ngrams: Iterable[str | Path],
    clones: Iterable[str],
) -> str:
    """What trial models say, as Markdown.

    spectra: the tables of all runs of one spectrum of kind `draws`, with its anchored loss.
    manifests: those of the runs. ngrams: of the source, what `inspection.ngram_losses` found.
    clones: names of those that the figures are made of; those of other sources are left out.
    """
    read = {number: tables.read_spectra(path) for number, path in enumerate(spectra)}
    trial, counted = Spectra(read), read_json(*ngrams)
    runs, about = list(trial.runs.values()), trial.about
    cut, label = trial.entry["anchored"], models.about(about["description"]).label
    final = [_final(path) for path in manifests]
    loss, error = (float(np.mean(values)) for values in zip(*final, strict=True))
    rows = [
        f"| {row.order if row.order <= cut['size'] else 'all'} | {row.loss:.3f} ± "
        f"{row.loss_se:.3f} | {row.excess:.3f} ± {row.excess_se:.3f} |\n"
        for row in by_order(runs).itertuples()
        if row.order > cut["size"] or abs(row.excess) + row.excess_se >= NOTHING
    ]
    said = [
        "## Which orders matter\n",
        f"By trial models ({label}, {len(runs)} trainings of {runs[0]['step'].max()} steps): "
        f"the loss in nats of {cut['targets']} masked tokens of the test text, where interactions "
        f"above an order are taken away among {cut['size']} tokens of the context, those of most "
        "influence; with the others, which stay as they are, a higher order can pass for a lower "
        "one.\n",
        "| orders up to | loss | above that of all orders |\n| --- | --- | --- |\n" + "".join(rows),
        *_learned(loss, error, counted),
        *_comparisons(config, clones, about, runs, (loss, error), counted),
    ]
    return "\n".join(said)


def _final(manifest: str | Path) -> tuple[float, float]:
    """The validation loss at the end, and its standard error."""
    last = history(manifest).query("split == 'validation'").iloc[-1]
    return last["loss"], last["loss_se"]


def _worse(loss: float, error: float, one: dict) -> bool:
    return loss - one["masked"] > DEVIATIONS * math.hypot(error, one["error"])


def _learned(loss: float, error: float, n_grams: list[dict]) -> list[str]:
    """What n-grams know that the trial has not learned."""
    names = {1: "unigrams", 2: "bigrams", 3: "trigrams"}
    better = [one for one in n_grams if _worse(loss, error, one)]
    text = f"The trials lose {loss:.2f} ± {error:.2f} nats a masked token of the validation text. "
    if not better:
        return [text + "No n-grams lose less.\n"]
    known = " and ".join(f"{names[one['order']]} ({one['masked']:.2f})" for one in better)
    return [
        f"{text}Less lose {known}: there is more in the text than the trials have learned, and of "
        "which order that is they cannot say.\n"
    ]


def _comparisons(config, names, about, runs, trial, n_grams) -> list[str]:
    """Of each order of the clones and the next one, whether the clones could differ by it."""
    clones = {name: config["clones"][name] for name in names}
    clones = {name: clone for name, clone in clones.items() if clone["source"] == about["source"]}
    of_order: dict[Order, list[str]] = {}
    for name, clone in clones.items():
        order = _order(config["models"][clone["model"]], about["description"])
        of_order.setdefault(order, []).append(name)
    orders = sorted(of_order, key=lambda order: math.inf if order is None else order)
    if len(orders) < 2:
        return ["Clones of two orders are not among the figures of this config.\n"]
    sequences = min(clone["chains"] for clone in clones.values())
    visible = smallest(runs, n_grams, sequences)
    said = [
        f"A figure of {sequences} sequences of each clone, and of {len(runs)} such students, can "
        f"see differences of {visible:.2g} nats and more.\n"
    ]
    for low, high in pairwise(orders):
        found = gain(runs, low, high, visible)
        said.append(f"- {_sentence(low, high, of_order, found, _worse(*trial, n_grams[1]))}")
    return [*said, ""]


def _sentence(low: int, high: Order, clones: dict, found: Gain, unlearned: bool) -> str:
    between = " and ".join(
        f"{'any order' if order is None else f'order {order}'} ({', '.join(clones[order])})"
        for order in (low, high)
    )
    if math.isnan(found.value):
        return f"Clones of {between}: undecided, as the cut positions are too few to tell."
    answers = {
        "yes": "could differ by their order",
        "no": "could not be seen to differ by their order, if their generators lose no less than "
        "the trials; where they differ, it is by something else",
        "undecided": "could or could not differ by their order: undecided",
    }
    answer = found.answer
    why = ""
    if answer == "no" and unlearned:
        answer, why = "undecided", ", as the trials have not even learned what bigrams say"
    worth = f"{found.value:.3f} ± {found.width:.3f} nats (95 % interval)"
    return f"Clones of {between} {answers[answer]}{why}. The orders between are worth {worth}."


def _order(model: dict, sizes: dict) -> Order:
    about = models.about({**model, **{key: sizes[key] for key in ("vocabulary", "length")}})
    return about.order if about.bounded and not about.nominal else None
