"""Typed options: the base class of the mappings of a config, and the types of their values."""

from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WrapValidator,
)

NAME = r"^[A-Za-z0-9_.-]+$"


def key(description: str, default: Any = ..., **bounds) -> Any:
    """A key of a block; one without a default has to be given."""
    return Field(default, description=description, **bounds)


def number(**bounds) -> Any:
    """The type of a number within bounds. An integer stays one, and is written as one."""
    return Annotated[float, Field(**bounds), WrapValidator(_as_written)]


def _as_written(value, check):
    check(value)
    return value


Count = Annotated[int, Field(ge=1)]
Positive = number(gt=0)
Text = Annotated[str, Field(min_length=1)]
Repository = Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]  # of the Hugging Face hub


class Block(BaseModel):
    """A mapping of the config: one field a key, with type, bounds, default and description.

    A key that the class does not name is refused. Values are taken as they are written: 2.0 is no
    integer, since paths are made of numbers, `true` is no number, nor is what is not finite. A key
    may be left out if it has a default, which is None where nothing takes its place.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Choices that do not fit together: the key ('' for all), and a sentence that says so."""
        yield from ()

    def misfits(self, path: str, config) -> Iterator[str]:
        """Sentences on what does not fit to other entries of `config`; `path` leads to the block.

        It is called when all names in the config are known to be those of entries.
        """
        yield from ()


def _different(items: list) -> list:
    if len(set(items)) < len(items):
        raise ValueError("items are repeated")
    return items


NotNegative = number(ge=0)
Inside = number(gt=0, lt=1)
Several = Annotated[int, Field(ge=2)]
Seed = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(pattern=NAME)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
Different = AfterValidator(_different)


def different(item: Any, fewest: int = 1) -> Any:
    """The type of a list of different items."""
    field = Field(min_length=fewest, json_schema_extra={"uniqueItems": True})
    return Annotated[list[item], field, Different]


Seeds = different(Seed)


# Parts of entries that names and numbers refer to, beside the entries themselves: targets of an
# evaluation, those of them that are clones, runs of an evaluation or a spectrum, checkpoints of a
# model or of the model of an entry, sweeps that a clone saves, and as many sequences as a split of
# a source has.
PARTS = (
    "targets",
    "clone targets",
    "seeds",
    "steps",
    "sweeps",
    "sequences of validation",
    "sequences of test",
)


class Reference(str):
    """A name of an entry of one block of the config, one that `fits` if only some do.

    `wanted` says which ones do, to stand in a message behind "expected a source". The entry has the
    values of the keys `same` in common with the first entry that the key `like` names, or with the
    block around that has them. If `block` is one of `PARTS`, it is a name of such a part of each
    entry that the key `of` names. Keys are those of the block that the name is in, or of one around
    it. `pipeline.check` resolves all of it.
    """

    block: str
    wanted: str
    fits: Callable[[Block], Any]
    of: str
    same: tuple[str, ...]
    like: str | None


class PartNumber(int):
    """A number that is a part of each entry that the key `of` names, as a `Reference` is."""

    block: str
    of: str


def refers(
    block: str,
    *kinds: str,
    wanted: str | None = None,
    fits: Callable[[Block], Any] | None = None,
    of: str = "evaluation",
    same: tuple[str, ...] = (),
    like: str | None = None,
) -> Any:
    """The type of the names of entries in `block`: all, those of these kinds, or those that fit.

    `refers("targets")` is that of the targets of the block's own evaluation.
    """
    wanted = wanted or f"of kind {' or '.join(kinds)}"
    fits = fits or (lambda entry: not kinds or entry.kind in kinds)

    def made(name: str) -> Reference:
        reference = Reference(name)
        reference.block, reference.wanted, reference.fits = block, wanted, fits
        reference.of, reference.same, reference.like = of, same, like
        return reference

    return Annotated[str, Field(pattern=NAME), AfterValidator(made)]


def numbered(block: str, of: str, least: int = 0) -> Any:
    """The type of numbers that are one of the other `PARTS` of the entries that `of` names."""

    def made(number: int) -> PartNumber:
        part = PartNumber(number)
        part.block, part.of = block, of
        return part

    return Annotated[int, Field(ge=least), AfterValidator(made)]


def nearest_of(*blocks: type[Block]) -> Any:
    """The type of a mapping that is one of `blocks`: the one whose keys it comes nearest to."""

    def nearest(value) -> str | None:
        if not isinstance(value, dict):
            return None
        return min(blocks, key=lambda block: distance(value, *_keys(block))).__name__

    tagged = [Annotated[block, Tag(block.__name__)] for block in blocks]
    return Annotated[reduce(or_, tagged), Discriminator(nearest)]


def _keys(block: type[Block]) -> tuple[list[str], list[str]]:
    fields = block.model_fields
    return list(fields), [name for name, field in fields.items() if field.is_required()]


def distance(value: dict, known: list[str], required: list[str]) -> int:
    """How far a mapping's keys are from those of a block: an unknown one counts more.

    An unknown key that is null counts not at all: it takes back that of another block.
    """
    given = {str(name) for name, part in value.items() if part is not None}
    return 3 * len(given - set(known)) + 2 * len(set(required) - set(value))


def inside(path: str, value) -> Iterator[tuple[str, Any]]:
    """`value` and all that lies in it, each with the path that leads there."""
    for where, found, _ in nested(path, value):
        yield where, found


def nested(path: str, value, around: tuple[Block, ...] = ()) -> Iterator[tuple[str, Any, tuple]]:
    """The same with the blocks that each lies in, the innermost first; a block lies in itself."""
    if isinstance(value, Block):
        around = (value, *around)
    yield path, value, around
    for step, part in _parts_of(value):
        yield from nested(f"{path}{step}", part, around)


def _parts_of(value) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Block):
        for name, field in type(value).model_fields.items():
            if name in value.model_fields_set:
                yield f".{field.alias or name}", getattr(value, name)
    elif isinstance(value, dict):
        yield from ((f".{name}", part) for name, part in value.items())
    elif isinstance(value, list):
        yield from ((f"[{place}]", part) for place, part in enumerate(value))
