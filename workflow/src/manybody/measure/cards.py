"""Cards of clones: what to know of a clone before reading what is built on it, also in words.

One JSON file holds the cards of all clones of a source. A value that a clone does not have is null.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from manybody.data import COPIED, RUN
from manybody.io import tables
from manybody.io.atomic import ArtifactError, read_json, write_json

Estimate = tuple[float, float]  # a value and its standard error


class Part(BaseModel):
    """A mapping of which every key is there, and no other."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Measured(Part):
    """Sequences beside a generator and the training text that it learned."""

    loss: Estimate  # the generator's on them, nats a token
    unigram: float  # total variation of pooled frequencies to the training text
    bigram: float
    copied: float | None  # share of the runs of 8 tokens that stand in the training text


class State(Measured):
    """A clone after some sweeps."""

    sweep: int
    sample: bool

    @property
    def called(self) -> str:
        """Its name in sentences: a sample, or the state that so many sweeps have left."""
        return "a sample" if self.sample else f"the state after {self.sweep} sweeps"

    @property
    def copies(self) -> bool:
        """True where so much stands in the training text that it is said to be a copy."""
        return self.copied is not None and self.copied > COPIED


class Card(Part):
    """All that a reader of a clone decides by."""

    name: str
    source: str  # of the text
    digest: str  # sha256 of the clone's manifest
    label: str  # of the generator, in words, with the order
    model: str  # of the config, with seed and step of its run
    sampler: str  # in words, with the score and what chains start from
    text: Measured  # as many test sequences
    task: Literal["masked", "next"]  # of losses: a token given all others, or those before it
    states: list[State] = Field(min_length=1)  # saved sweeps, in order
    agree: Literal["yes", "undecided", "no"] | None  # chains from text and from noise
    rhat: float | None  # split R-hat of the score, second half of the sweeps
    effective: float | None  # independent draws that the chains are worth
    kept: float | None  # share of the positions that hold the token of the start, last sweep
    why: str  # what calls it a sample, or keeps it from being called one, with numbers of the pair

    def state(self, sweep: int | None = None) -> State:
        """The state after a saved sweep, the last by default."""
        return next((one for one in self.states if one.sweep == sweep), self.states[-1])

    def sentence(self, sweep: int | None = None) -> str:
        """All that is to be known of a clone after a saved sweep, the last by default."""
        state = self.state(sweep)
        tokens = " of next tokens" if self.task == "next" else ""
        parts = [
            f"{self.label}: {state.called} ({self.sampler})",
            f"its generator's loss{tokens} is {rounded(self.text.loss)} on text and "
            f"{rounded(state.loss)} on the clone",
            f"off the training text by {state.unigram:.2f} in unigrams and {state.bigram:.2f} in "
            f"bigrams (as much test text by {self.text.unigram:.2f} and {self.text.bigram:.2f})",
        ]
        if self.rhat is not None:
            parts.append(
                f"in {self.states[-1].sweep} sweeps R-hat {self.rhat:.2f} and "
                f"{rounded(self.effective, '.0f')} effective samples"
            )
        parts.append(self.why)
        if state.copies:
            parts.append(
                f"{state.copied:.0%} of its runs of {RUN} tokens stand in the training text "
                f"({self.text.copied:.0%} of those of test text)"
            )
        return "; ".join(parts) + "."


class Cards(Part):
    """The file."""

    cards: list[Card]


def write(path: str | Path, cards: list[Card]) -> None:
    """Writes cards atomically, the same bytes for equal cards."""
    write_json(path, Cards(cards=cards).model_dump())


def read(path: str | Path) -> list[Card]:
    """Reads the cards in `path`; `ArtifactError` names the file and the first wrong key."""
    try:
        return Cards.model_validate(read_json(path)).cards
    except ValidationError as error:
        first = error.errors()[0]
        raise ArtifactError(
            f"{path} has no cards of clones: {'.'.join(map(str, first['loc']))}: {first['msg']}. "
            "Delete it and run the same snakemake command again to remake it."
        ) from error


def rounded(value: Estimate | float | None, form: str = ".2f") -> str:
    """A value rounded to two digits of its error, or in this form; a dash where there is none."""
    if value is None:
        return "–"
    if not isinstance(value, tuple):
        return format(value, form)
    places = 1 - math.floor(math.log10(value[1])) if value[1] else 4
    return " ± ".join(f"{round(one, places):.{max(0, places)}f}" for one in value)


def beside(clone: float | None, text: float | None, form: str = ".2f") -> str:
    """A clone's value, and in brackets that of as much test text."""
    return "–" if clone is None else f"{clone:{form}} ({text:{form}})"


def generators(
    config: dict, losses: Iterable[str | Path], ngrams: Iterable[str | Path]
) -> list[str]:
    """A sentence on the loss of each generator on its text, against that of bigrams.

    losses: `{evaluation}/seed-{n}.parquet`, of evaluations on the test split. ngrams:
    `{source}/ngrams.json`; generators of other sources are left out.
    """
    counted = {Path(path).parent.name: read_json(path) for path in ngrams}
    found = []
    for path in map(Path, losses):
        evaluation = config["evaluations"][path.parent.name]
        source, targets = evaluation["source"], evaluation["targets"]
        if source not in counted:
            continue
        tested = next(name for name, of in targets.items() if of.get("split") == "test")
        curve = tables.learning_curves(tables.read_losses({0: path}))
        last = curve[curve["target"] == tested].iloc[-1]
        bigrams = next(one["masked"] for one in counted[source] if one["order"] == 2)
        said = (
            f"{evaluation['model']} loses {last['loss']:.2f} ± {last['loss_se']:.2f} nats a masked "
            f"token of the test text, bigrams {bigrams:.2f}."
        )
        if last["loss"] > bigrams:
            said += " Its clones show what it lacks: train it longer, or as `advise` suggests."
        found.append(said)
    return found
