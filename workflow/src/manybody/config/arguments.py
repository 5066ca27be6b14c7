"""Checks of the arguments of `manybody.public`: types and bounds are those of the config's keys.

A parameter is known by its name; one of another kind is checked by the function itself.
"""

import re
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ValidationError, create_model

from manybody.config.sentences import sentences
from manybody.config.spectra import DrawnSpectrum
from manybody.config.theory import Activation
from manybody.data.kinds import AlignmentSource
from manybody.io.options import Block, Count, NotNegative, Positive, Seed, nested, number
from manybody.io.refusal import Refusal
from manybody.io.sequences import rows_of

TOKENS = ("tokens", "initial", "train", "validation")
KINDS = {"int": Count, "float": number()}  # by annotation
NAMED = {
    "activation": Activation,
    "alphabet": AlignmentSource.model_fields["alphabet"].annotation,
    "energy": Literal["raw", "norm"],
    "format": AlignmentSource.model_fields["format"].annotation,
    "gamma": number(gt=2),
    "identity": number(gt=0, le=1),
    "law": DrawnSpectrum.model_fields["law"].annotation,
    "learning_rate": Positive,
    "ridge": NotNegative,
    "seed": Seed,
    "skip": Positive,
    "sweeps": Seed,
}


def checked(function: Callable) -> Callable:
    """The function, which raises `Refusal` for an argument that cannot be what it is taken for."""
    parameters = signature(function).parameters
    kinds = {
        name: NAMED.get(name, KINDS.get(one.annotation))
        for name, one in parameters.items()
        if one.annotation in KINDS or (one.annotation == "str" and name in NAMED)
    }

    @wraps(function)
    def call(*values, **named):
        bound = signature(function).bind(*values, **named)
        bound.apply_defaults()
        given = bound.arguments
        given |= {n: v.item() for n, v in given.items() if n in kinds and isinstance(v, np.generic)}
        check({name: (kind, ...) for name, kind in kinds.items()}, {n: given[n] for n in kinds})
        length = None
        for name in (name for name in TOKENS if name in given):
            given[name] = _tokens(name, given, length)
            length = given[name].shape[1]
        return function(*bound.args, **bound.kwargs)

    return call


def _tokens(name: str, given: dict, length: int | None) -> np.ndarray:
    """The tokens of this name as rows of `length`, or of the length and |V| of the model."""
    model, vocabulary, causal = given.get("model"), given.get("vocabulary"), False
    if model is not None:
        vocabulary, length, causal = model.vocabulary, model.length, model.about.causal
    try:
        rows = rows_of(given[name], vocabulary)
    except ValueError as error:
        raise Refusal(str(error), name) from error
    if not len(rows) and "path" not in given:
        raise Refusal("found no sequence; expected at least one; give more text", name)
    found = rows.shape[1]
    if length is not None and (found > length or (found < length and not causal)):
        raise Refusal(
            f"found sequences of length {found}; expected {'at most ' if causal else ''}{length}; "
            f"cut them, or build the model for theirs",
            name,
        )
    return rows


def check(kinds: dict[str, Any], values: dict[str, Any]) -> None:
    """Raises `Refusal` for the first of `values` that is not of its kind, a field of pydantic's."""
    block = create_model("Arguments", __base__=Block, **kinds)
    try:
        made = block.model_validate(values)
    except ValidationError as error:
        said = next(sentences(error, block, values))
        raise Refusal(re.sub(r"for example (\w+): ", r"for example \1=", said)) from error
    for path, part, _ in nested("", made):
        for place, said in part.conflicts() if isinstance(part, Block) else ():
            raise Refusal(said, ".".join(filter(None, (path.lstrip("."), place))))


def optional(block: type[Block]) -> dict[str, Any]:
    """The fields of a block, for `check`, where all of them may be left out."""
    return {
        name: (Annotated[field.annotation, field], None)
        for name, field in block.model_fields.items()
    }
