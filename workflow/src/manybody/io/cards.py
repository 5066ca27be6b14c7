"""Cards of clones: what is to be known of a clone before anything that is built on it is read.

One JSON document a source: the cards of all its clones, chains of trained models and n-grams.
A value that a clone of its kind does not have is a `Lacking`, which says why; nothing is left out.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from manybody.io.atomic import ArtifactError, read_json, write_json

KIND = "clone cards"


class Part(BaseModel):
    """A mapping of which every key is there, and no other."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Lacking(Part):
    """What stands where a clone has no such value."""

    lacking: str = Field(min_length=1)  # why, in words that end a sentence


class Measured(Part):
    """A number with its standard error."""

    value: float
    error: float


class Generator(Part):
    """The law that a clone is drawn from."""

    model: str  # an entry of the config: of `models`, or the source of n-grams
    seed: int | Lacking
    step: int | Lacking
    label: str  # in words, with the order
    order: int | Lacking  # of interaction


class Loss(Part):
    """The generator's loss on text, nats a token."""

    text: Measured | Lacking
    task: Literal["masked", "next"]  # a token given all others, or those before it
    masked: Measured | Lacking  # given all others, to compare clones of all kinds by
    on: str  # which sequences are the text


class Distance(Part):
    """Total variation of pooled frequencies to the training text: of the clone, and of as many
    sequences of the text, which is what sampling alone makes."""

    clone: float
    text: float


class State(Part):
    """A clone after some sweeps."""

    sweep: int | Lacking
    loss: Measured  # the generator's on it, nats a token
    ratio: Measured | Lacking  # of that to the loss on text
    unigram: Distance
    bigram: Distance
    copied: Distance | Lacking  # share of the runs of 8 tokens that stand in the training text
    called: str  # "a sample", or "the state after n sweeps"


class Scores(Part):
    """-E / L (nats a token), mean over chains, after some sweeps."""

    sweep: list[int] = Field(min_length=2)
    value: list[float]
    error: list[float]


class Twins(Part):
    """The same clone from the other start, after as many sweeps."""

    name: str
    sweep: int
    score: Measured  # noise less text, of -E / L
    loss: Measured  # of the generator's own loss
    agree: Literal["yes", "undecided", "no"]

    @property
    def words(self) -> str:
        said = {"yes": "agree", "no": "do not agree", "undecided": "may agree or not"}[self.agree]
        return f"chains from text and from noise {said}"


class Card(Part):
    """All that is to be known of a clone."""

    name: str
    source: str  # of the text
    digest: str  # sha256 of the clone's manifest, or of the file of sequences
    generator: Generator
    sampler: str  # in words
    start: str | Lacking
    sequences: int
    loss: Loss
    states: list[State] = Field(min_length=1)  # saved sweeps, in order
    energy: str | Lacking
    scores: Scores | Lacking
    twins: Twins | Lacking
    rhat: float | Lacking  # split R-hat of the score, second half of the sweeps
    effective: float | Lacking  # independent draws that the chains are worth
    accepted: float | Lacking  # share of the proposals of another token, last sweep
    kept: float | Lacking  # share of the positions that hold the token of the start, last sweep
    swapped: float | Lacking  # least share of swaps between neighbouring temperatures
    why: str  # what calls it a sample, or keeps it from being called one


class Cards(Part):
    """The file."""

    kind: Literal[KIND]
    cards: list[Card]


def write(path: str | Path, cards: Iterable[Card]) -> None:
    """Writes cards atomically, the same bytes for equal cards."""
    write_json(path, Cards(kind=KIND, cards=list(cards)).model_dump())


def read(path: str | Path) -> list[Card]:
    """The cards in `path`; `ArtifactError` names the file and the key that is not as it should."""
    try:
        return Cards.model_validate(read_json(path)).cards
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ArtifactError(
            f"{path} has no cards of clones: {where}: {first['msg']}. Delete it and run the same "
            "snakemake command again to remake it."
        ) from error
