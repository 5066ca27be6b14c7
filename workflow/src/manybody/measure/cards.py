"""Cards of clones: what to know of a clone before reading what is built on it.

One JSON file holds the cards of all clones of a source: chains of trained models, and n-grams. A
value that a clone of its kind does not have is null, and `why` gives the reason.
"""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from manybody.io.atomic import ArtifactError, read_json, write_json

Estimate = tuple[float, float]  # a value and its standard error
Beside = tuple[float, float]  # of the clone, and of as many test sequences


class Part(BaseModel):
    """A mapping of which every key is there, and no other."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class State(Part):
    """A clone after some sweeps."""

    sweep: int | None
    loss: Estimate  # the generator's on it, nats a token
    unigram: Beside  # total variation of pooled frequencies to the training text
    bigram: Beside
    copied: Beside | None  # share of the runs of 8 tokens that stand in the training text
    called: str  # "a sample", or "the state after n sweeps"


class Paired(Part):
    """The same clone from the other start; differences are noise less text, in nats a token."""

    name: str
    sweep: int  # the last that both have saved
    score: Estimate  # difference of -E / L
    loss: Estimate  # difference of the generator's own loss
    agree: Literal["yes", "undecided", "no"]


class Card(Part):
    """All that a reader of a clone decides by."""

    name: str
    source: str  # of the text
    digest: str  # sha256 of the clone's manifest, or of the file of sequences
    label: str  # of the generator, in words, with the order
    model: str  # the generator's entry of the config: of `models`, or the source of n-grams
    seed: int | None
    step: int | None
    order: int | None  # of interaction, where one bounds the generator
    sampler: str  # in words, with the score
    start: str | None
    text: Estimate | None  # the generator's loss on test sequences, nats a token
    task: Literal["masked", "next"]  # of losses: a token given all others, or those before it
    states: list[State] = Field(min_length=1)  # saved sweeps, in order
    scores: list[tuple[int, float, float]] | None  # sweep, mean -E / L (nats a token), error
    paired: Paired | None
    rhat: float | None  # split R-hat of the score, second half of the sweeps
    effective: float | None  # independent draws that the chains are worth
    kept: float | None  # share of the positions that hold the token of the start, last sweep
    why: str  # what calls it a sample, or keeps it from being called one


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
