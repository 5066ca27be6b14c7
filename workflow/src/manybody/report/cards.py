"""Cards of clones in words and lines, as the page and a data set show them."""

import math
from collections.abc import Iterable, Mapping, Sequence

from manybody.data import COPIED, RUN
from manybody.measure.cards import Beside, Card, Estimate, State

WIDE, HIGH = 120, 36  # of a drawing, in its own units


def rounded(value: Estimate | float | None, form: str = ".2f") -> str:
    """A value rounded to two digits of its error, or in this form; a dash where there is none."""
    if value is None:
        return "–"
    if not isinstance(value, tuple):
        return format(value, form)
    places = 1 - math.floor(math.log10(value[1])) if value[1] else 4
    form = f".{max(0, places)}f"
    return f"{round(value[0], places):{form}} ± {round(value[1], places):{form}}"


def beside(pair: Beside | None, form: str = ".2f") -> str:
    """A clone's value, and in brackets that of as much test text."""
    return "–" if pair is None else f"{pair[0]:{form}} ({pair[1]:{form}})"


def copies(state: State) -> bool:
    """True where so much of it stands in the training text that it is said to be a copy."""
    return state.copied is not None and state.copied[0] > COPIED


def sentence(card: Card, sweep: int | None = None) -> str:
    """All that is to be known of a clone after a saved sweep, the last by default."""
    state = _state(card, sweep)
    start = f" from {card.start}" if card.start else ""
    tokens = " of next tokens" if card.task == "next" else ""
    parts = [
        f"{card.label}: {state.called} ({card.sampler}{start})",
        f"its generator's loss{tokens} is {rounded(card.text)} on text and {rounded(state.loss)} "
        "on the clone",
        f"off the training text by {state.unigram[0]:.2f} in unigrams and {state.bigram[0]:.2f} in "
        f"bigrams (as much test text by {state.unigram[1]:.2f} and {state.bigram[1]:.2f})",
    ]
    if card.rhat is not None:
        effective = f"{rounded(card.effective, '.0f')} effective samples"
        parts.append(f"in {card.scores[-1][0]} sweeps R-hat {card.rhat:.2f} and {effective}")
    parts.append(card.why)
    if copies(state):
        parts.append(
            f"{state.copied[0]:.0%} of its runs of {RUN} tokens stand in the training text "
            f"({state.copied[1]:.0%} of those of test text)"
        )
    return "; ".join(parts) + "."


def _state(card: Card, sweep: int | None) -> State:
    return next((one for one in card.states if one.sweep == sweep), card.states[-1])


def drawing(card: Card, cards: Iterable[Card]) -> dict | None:
    """-E / L against sweeps: points of the clone's line and of its pair's, and both axes' ends."""
    if card.scores is None:
        return None
    other = next((one for one in cards if card.paired and one.name == card.paired.name), None)
    lines = [card.scores, *([other.scores] if other else [])]
    sweeps = max(line[-1][0] for line in lines)
    low, high = (pick(value for line in lines for _, value, _ in line) for pick in (min, max))
    height = HIGH / (high - low or 1.0)
    return {
        "lines": [
            " ".join(
                f"{WIDE * sweep / sweeps:.1f},{(high - value) * height:.1f}"
                for sweep, value, _ in line
            )
            for line in lines
        ],
        "low": f"{low:.2f}",
        "high": f"{high:.2f}",
        "sweeps": sweeps,
        "pair": other and other.name,
    }


def of_figures(
    shown: Mapping[str, Sequence[tuple[str, int | None]]], cards: Iterable[Card]
) -> dict[str, dict]:
    """For each figure how many of its clones are samples, and each card with its `sentence`.

    shown: of each figure the clones, [name, sweep].
    """
    known = {card.name: card for card in cards}
    return {
        figure: {
            "samples": sum(
                _state(known[name], sweep).called == "a sample" for name, sweep in states
            ),
            "clones": [(known[name], sentence(known[name], sweep)) for name, sweep in states],
        }
        for figure, states in shown.items()
        if states
    }
