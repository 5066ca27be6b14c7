"""Typed options: the base class of the mappings of a config, and the types of their values."""

from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, WrapValidator

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


class Condition(NamedTuple):
    """`key` has one of `values` where each of the keys in `where` has one of the values there.

    values: one, a tuple of several, or a function true of them. why, expected: parts of a refusal.
    """

    key: str
    values: Any
    where: dict[str, Any]
    why: str = ""
    expected: str = ""

    def refusals(self, block: "Block") -> Iterator[tuple[str, str]]:
        """The key with a sentence, where `block` breaks the condition."""
        others = {name: getattr(block, name) for name in self.where}
        applies = all(_among(value, self.where[name]) for name, value in others.items())
        if not applies or _among(value := getattr(block, self.key), self.values):
            return
        free = self.values is None and not type(block).model_fields[self.key].is_required()
        shown = "one" if free and isinstance(value, Block | list) else _shown(value)
        what = "missing" if value is None else f"found {shown}"
        beside = " and ".join(f"{name} {value}" for name, value in others.items())
        choices = self.values if isinstance(self.values, tuple) else (self.values,)
        expected = self.expected or ("nothing" if free else " or ".join(map(str, choices)))
        fix = f"leave {self.key} out" if free else "set it"
        yield (
            self.key,
            f"{what} with {beside}{self.why and f', {self.why}'}; expected {expected}; {fix}, or "
            f"change {' or '.join(others)}",
        )


def given(value) -> bool:
    """True of the value of a key that is not left out."""
    return value is not None


def other_than(*values: Any) -> Callable[[Any], bool]:
    """A function that is true of all values but these."""
    return lambda value: value not in values


def _among(value, values) -> bool:
    if callable(values):
        return values(value)
    return value in values if isinstance(values, tuple) else value == values


def _shown(value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Block(BaseModel):
    """A mapping of the config: one field a key, with type, bounds, default and description.

    A key that the class does not name is refused. Values are taken as they are written: 2.0 is no
    integer, since paths are made of numbers, `true` is no number, nor is what is not finite. A key
    may be left out if it has a default, which is None where nothing takes its place.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
    conditions: ClassVar[tuple[Condition, ...]] = ()  # of this class, beside those of its bases

    def conflicts(self) -> Iterator[tuple[str, str]]:
        """Choices that do not fit together: the key ('' for all), and a sentence that says so."""
        for kind in type(self).__mro__:
            for condition in vars(kind).get("conditions", ()):
                yield from condition.refusals(self)
        yield from self.problems()

    def problems(self) -> Iterator[tuple[str, str]]:
        """The conflicts that no condition says."""
        yield from ()

    def misfits(self, config) -> Iterator[tuple[str, str]]:
        """The same beside other entries of `config`, when all names are known to be theirs."""
        yield from ()

    def refused(self, path: str, expected: str, fix: str, why: str = "") -> tuple[str, str]:
        """The key at `path` and a sentence on its value; one that its block lacks is left out."""
        value = reduce(lambda block, key: getattr(block, key, None), path.split("."), self)
        what = "missing" if value is None else f"found {_shown(value)}"
        return path, f"{what}{why}; expected {expected}; {fix}"


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


def different(item: Any, fewest: int = 1) -> Any:
    """The type of a list of different items."""
    field = Field(min_length=fewest, json_schema_extra={"uniqueItems": True})
    return Annotated[list[item], field, AfterValidator(_different)]


Seeds = different(Seed)


# Parts of entries that names and numbers refer to: targets of an evaluation, runs of an evaluation
# or a spectrum, checkpoints of a model, sweeps that a clone saves, and as many sequences as a split
# of a source has, one that is named or that of the key `split` beside.
PARTS = (
    "targets",
    "seeds",
    "steps",
    "sweeps",
    "sequences of validation",
    "sequences of test",
    "sequences of its split",
)


class Reference(str):
    """A name of an entry of one block of the config, one that `fits` if only some do.

    `fits(entry, config)` is asked when all names are known to be those of entries, and `wanted`
    says for which ones it is true, to stand in a message behind "expected a source". The entry has
    the values of the keys `same` in common with the first entry that the key `like` names, or with
    the block around that has them. If `block` is one of `PARTS`, it is a name of such a part of
    each entry that the key `of` names. Keys are those of the block that the name is in, or of one
    around it. `pipeline.check` resolves all of it.
    """

    block: str
    wanted: str | None
    fits: Callable[[Block, Any], Any]
    of: str
    same: tuple[str, ...]
    like: str | None


class PartNumber(int):
    """A number that is a part of each entry that the key `of` names, as a `Reference` is."""

    block: str
    of: str
    wanted = None


def refers(
    block: str,
    *kinds: str,
    wanted: str | None = None,
    fits: Callable[[Block, Any], Any] | None = None,
    of: str = "evaluation",
    same: tuple[str, ...] = (),
    like: str | None = None,
) -> Any:
    """The type of the names of entries in `block`: all, those of these kinds, or those that fit;
    `refers("targets")`: of the targets of the block's own evaluation."""
    if kinds:
        wanted = f"of kind {' or '.join(kinds)}"
    fits = fits or (lambda entry, _: not kinds or entry.kind in kinds)
    marked = _marked(Reference, block=block, wanted=wanted, fits=fits, of=of, same=same, like=like)
    return Annotated[str, Field(pattern=NAME), marked]


def numbered(block: str, of: str, least: int = 0) -> Any:
    """The type of numbers that are one of the other `PARTS` of the entries that `of` names."""
    return Annotated[int, Field(ge=least), _marked(PartNumber, block=block, of=of)]


def _marked(kind: type, **about: Any) -> AfterValidator:
    """Makes a `Reference` or `PartNumber` of a value, with what it is `about` as attributes."""

    def made(value):
        marked = kind(value)
        vars(marked).update(about)
        return marked

    return AfterValidator(made)


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
    """Distance of a mapping's keys from those of a block: an unknown one counts more, but not if it
    is null, which takes back that of another block."""
    given = {str(name) for name, part in value.items() if part is not None}
    return 3 * len(given - set(known)) + 2 * len(set(required) - set(value))


def nested(path: str, value, around: tuple[Block, ...] = ()) -> Iterator[tuple[str, Any, tuple]]:
    """`value` and all in it, each with its path and the blocks around it, itself first if one."""
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
