"""Sentences with intervals about models, from their order spectra: a run ends with them."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from manybody.measure.half_times import Spectra
from manybody.papers import claims as records
from manybody.papers.simplicity import spectra

CONTEXTS = {
    "text": "another text",
    "unigram": "draws of the unigram distribution",
    "model": "the model's own draws",
}
Named = tuple[str, records.Comparison]  # whose the comparison is
GROWTH = "The step at which M_2 comes to half of its end, over that of M_1, is {}."
PAIRS = "The loss of pairs alone above that of all orders, in nats a token, is {}."


def in_words(parts: Iterable[Named], unit: Callable = float) -> list[str]:
    """Values with their intervals, and whose they are; those without an interval are left out."""
    found = [(name, (part.value, *part.interval())) for name, part in parts]
    return [
        f"{records.written(*map(unit, numbers))} for {name}"
        for name, numbers in found
        if all(map(math.isfinite, numbers))
    ]


def additive(id: str, models: Sequence[Spectra]) -> records.Claim:
    """The share of the variance of the logits that is at least additive in the tokens.

    With W_d the variance of degree d, the sum of W_d over d > 1 is at most M_2, and at most
    M_1 - Var g (controls, section 6), which is taken where M_2 was not measured.
    """
    parts, said = [], []
    for one in models:
        k = min(2, max(one.orders))
        name, ends = spectra.name_of(one, models), [one.end(seed, "M", k) for seed in one.runs]
        label = f"{name}: {3 - k} - M_{k} / Var g"
        mine = [records.above(label, 3 - k - x["share"], x["share_se"], 0.5) for x in ends]
        lows = [part.interval()[0] for part in mine]
        if all(map(math.isfinite, lows)):
            said.append(f"{math.floor(100 * min(max(min(lows), 0), 1) + 1e-9)} % for {name}")
        parts += mine
    statement = (
        "By the bound 1 - M_2 / Var g most of the variance of the logits is additive in the tokens"
    )
    claim = records.judged(id, statement, parts, scope(models), "it is above one half")
    return claim.says(
        "The share of the variance of the logits that is additive in the tokens is at least {}; at "
        "most the rest needs three tokens or more (contexts: "
        f"{CONTEXTS[models[0].entry.get('law', 'text')]}).",
        said,
    )


def growth(models: Sequence[Spectra]) -> Iterator[Named]:
    """The logarithm of the half-time of M_2 over that of M_1: over runs, of one by its contexts."""
    for one in models:
        if one.followed and {1, 2} <= {*one.orders}:
            part = spectra.half_time_ratio(one, 1, 2, f"{one.short}: ")
            if len(one.runs) == 1:
                part = records.above(part.label, part.value, part.resolution)
            yield spectra.name_of(one, models), part


def cut(models: Sequence[Spectra], degree: int, words: str) -> Iterator[Named]:
    """The loss of logits cut above a degree, less that of all, where tokens were exchanged."""
    for one in models:
        mine = one.at_end("anchored excess").set_index("order")
        if degree in mine.index:
            name = spectra.name_of(one, models)
            label = f"{name}: loss of {words} above that of all orders"
            yield name, records.above(label, *mine.loc[degree, ["value", "se"]])


def claims(id: str, models: Sequence[Spectra], given: Mapping[str, tuple]) -> list[records.Claim]:
    """Those of a figure, with sentences. given: of `all_judged`, half-times and pairs first."""
    half_times, alone, *others = records.all_judged(id, given, scope(models))
    return [
        additive(f"{id}/additive", models),
        half_times.says(GROWTH, in_words(growth(models), math.exp)),
        alone.says(PAIRS, in_words(cut(models, 1, "pairs alone"))),
        *others,
    ]


def scope(models: Sequence[Spectra]) -> str:
    """The models, and the numbers of their runs."""
    return ", ".join(f"{one.label} ({len(one.runs)} runs)" for one in models)
