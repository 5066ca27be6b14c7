"""Cards of clones in words and lines, as the page and a data set show them."""

from collections.abc import Iterable, Mapping, Sequence

from manybody.claims import scorecard
from manybody.data import COPIED, RUN
from manybody.io.cards import Card, Distance, Lacking, Measured, State

WIDE, HIGH = 120, 36  # of a drawing, in its own units


def number(value: Measured | float | Lacking, form: str = ".2f") -> str:
    """A value rounded to two digits of its error, or in this form; a dash where there is none."""
    if isinstance(value, Lacking):
        return "–"
    if isinstance(value, Measured):
        return scorecard.measured({"value": value.value, "standard_error": value.error})
    return format(value, form)


def copies(state: State) -> bool:
    """Whether so much of it stands in the training text that it is said to be a copy."""
    return isinstance(state.copied, Distance) and state.copied.clone > COPIED


def sentence(card: Card, sweep: int | None = None) -> str:
    """What is to be known of a clone after a saved sweep, the last by default, in one sentence."""
    state, text = _state(card, sweep), card.loss.text
    start = "" if isinstance(card.start, Lacking) else f" from {card.start}"
    tokens = " of next tokens" if card.loss.task == "next" else ""
    parts = [
        f"{card.generator.label}: {state.called} ({card.sampler}{start})",
        f"its generator's loss{tokens} is {number(text)} on text and {number(state.loss)} on the "
        f"clone (ratio {number(state.ratio)})",
        f"off the training text by {state.unigram.clone:.2f} in unigrams and "
        f"{state.bigram.clone:.2f} in bigrams (as much test text by {state.unigram.text:.2f} and "
        f"{state.bigram.text:.2f})",
    ]
    if not isinstance(card.scores, Lacking):
        known = f"R-hat {number(card.rhat)} and {number(card.effective, '.0f')} effective samples"
        if isinstance(card.rhat, Lacking):
            known = f"no R-hat, as {card.rhat.lacking}"
        parts.append(f"in {card.scores.sweep[-1]} sweeps {known}")
        parts.append(card.twins.lacking if isinstance(card.twins, Lacking) else card.twins.words)
    if copies(state):
        parts.append(_copied(state.copied))
    return "; ".join(parts) + "."


def _state(card: Card, sweep: int | None) -> State:
    return next((one for one in card.states if one.sweep == sweep), card.states[-1])


def _copied(shares: Distance) -> str:
    return (
        f"{shares.clone:.0%} of its runs of {RUN} tokens stand in the training text "
        f"({shares.text:.0%} of those of test text)"
    )


def rows(card: Card) -> list[tuple[str, str]]:
    """All that a card holds but for its states, as names and words; why where a value lacks."""
    text = {"masked": "given all others", "next": "given those before it"}[card.loss.task]
    twins = card.twins
    if not isinstance(twins, Lacking):
        twins = (
            f"{twins.name}, after {twins.sweep} sweeps: scores differ by {number(twins.score)}, "
            f"own losses by {number(twins.loss)} nats a token; do they agree? {twins.agree}"
        )
    made = card.generator
    return [
        (name, f"none: {value.lacking}" if isinstance(value, Lacking) else str(value))
        for name, value in (
            ("what it is", f"{card.states[-1].called}: {card.why}"),
            ("generator", f"{made.label}; model {made.model}"),
            ("seed", made.seed),
            ("step", made.step),
            ("order of interaction", made.order),
            ("sampler", card.sampler),
            ("score", card.energy),
            ("start", card.start),
            ("sequences", card.sequences),
            ("loss on text", _of(card.loss.text, f"nats a token {text}; {card.loss.on}")),
            ("loss on text, masked", _of(card.loss.masked, "nats a token given all others")),
            ("from text and from noise", twins),
            ("R-hat", _of(card.rhat)),
            ("effective samples", _of(card.effective, form=".0f")),
            ("proposals accepted", _of(card.accepted, form=".0%")),
            ("start left", _of(card.kept, form=".0%")),
            ("swaps, the fewest", _of(card.swapped, form=".0%")),
            (
                "score against sweeps",
                card.scores if isinstance(card.scores, Lacking) else "drawn above",
            ),
        )
    ]


def _of(value: Measured | float | Lacking, words: str = "", form: str = ".2f"):
    return value if isinstance(value, Lacking) else f"{number(value, form)} {words}".strip()


def shown(card: Card, cards: Iterable[Card]) -> dict:
    """A card as the page's template shows it."""
    last, twins, on_text = card.states[-1], card.twins, number(card.loss.text)
    if card.loss.task == "next":
        on_text += f" next, {number(card.loss.masked)} masked"
    cells = {
        "generator": card.generator.label,
        "what it is": last.called,
        "loss on text": on_text,
        "on the clone": number(last.loss),
        "ratio": number(last.ratio),
        "unigrams off": _pair(last.unigram),
        "bigrams off": _pair(last.bigram),
        "copied": _pair(last.copied, ".0%"),
        "text and noise": "–" if isinstance(twins, Lacking) else twins.agree,
        "R-hat": number(card.rhat),
        "effective": number(card.effective, ".0f"),
    }
    return {
        "id": f"{card.source}-{card.name}",
        "name": card.name,
        "source": card.source,
        "cells": cells,
        "copies": copies(last),
        "twins": getattr(twins, "agree", None),
        "drawing": drawing(card, cards),
        "rows": rows(card),
        "states": [
            (
                number(state.sweep, "d"),
                state.called,
                number(state.loss),
                number(state.ratio),
                _pair(state.unigram),
                _pair(state.bigram),
                _pair(state.copied, ".0%"),
            )
            for state in card.states
        ],
    }


def _pair(value: Distance | Lacking, form: str = ".2f") -> str:
    """A clone's value, and in brackets the text's own."""
    if isinstance(value, Lacking):
        return "–"
    return f"{value.clone:{form}} ({value.text:{form}})"


def drawing(card: Card, cards: Iterable[Card]) -> dict | None:
    """-E / L against sweeps: points of the clone's line and of its twin's, and both axes' ends."""
    twin = next((one for one in cards if one.name == getattr(card.twins, "name", None)), None)
    lines = [one.scores for one in (card, twin) if one and not isinstance(one.scores, Lacking)]
    if isinstance(card.scores, Lacking):
        return None
    sweeps = max(line.sweep[-1] for line in lines)
    low, high = (pick(value for line in lines for value in line.value) for pick in (min, max))
    height = HIGH / (high - low or 1.0)
    return {
        "lines": [
            " ".join(
                f"{WIDE * sweep / sweeps:.1f},{(high - value) * height:.1f}"
                for sweep, value in zip(line.sweep, line.value, strict=True)
            )
            for line in lines
        ],
        "low": f"{low:.2f}",
        "high": f"{high:.2f}",
        "sweeps": sweeps,
        "twin": twin.name if len(lines) > 1 else None,
    }


def of_figures(
    shown: Mapping[str, Sequence[tuple[str, int | None]]], cards: Iterable[Card]
) -> dict[str, dict]:
    """For each figure what its clones are: a `summary`, and of each, [name, sweep], a sentence."""
    known, found = {card.name: card for card in cards}, {}
    for figure, states in shown.items():
        picked = [(known[name], _state(known[name], sweep)) for name, sweep in states]
        if picked:
            found[figure] = {
                "summary": _summary([state for _, state in picked]),
                "clones": [
                    {
                        "id": f"{card.source}-{card.name}",
                        "name": card.name,
                        "text": sentence(card, state.sweep),
                    }
                    for card, state in picked
                ],
            }
    return found


def _summary(states: Sequence[State]) -> str:
    samples = sum(state.called == "a sample" for state in states)
    ratios = [state.ratio.value for state in states if isinstance(state.ratio, Measured)]
    text = f"{samples} of {len(states)} are samples, the others states that sweeps have left"
    if ratios:
        text += (
            f"; the generators' losses on them are {min(ratios):.2f} to {max(ratios):.2f} of those "
            "on text"
        )
    return text
