"""Checks of the arguments of `manybody.public`: types and bounds are those of the config's keys.

A parameter is known by its name; one of another kind is checked by the function itself.
"""

import re
from collections.abc import Callable
from functools import wraps
from inspect import signature
from os.path import expanduser
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import numpy as np
from pydantic import Field, ValidationError, create_model

from manybody.config.sentences import sentences
from manybody.config.spectra import DrawnSpectrum
from manybody.config.theory import Activation
from manybody.data.kinds import AlignmentSource
from manybody.io.options import Block, Count, Inside, NotNegative, Positive, Seed, nested, number
from manybody.io.progress import only_in_notebooks
from manybody.io.refusal import Refusal
from manybody.io.sequences import rows_of
from manybody.models import ARCHITECTURES

P = ParamSpec("P")
R = TypeVar("R")
TOKENS = ("tokens", "initial", "train", "validation", "sequence")
KINDS = {  # by annotation
    "int": Count,
    "float": number(),
    "bool": bool,
    "str | Path": str | Path,
    "Mapping[str, object]": dict[str, Any],
}
CLASSES = {
    "Axes": "axes of matplotlib",
    "Model": "a model, as of build_model",
    "PairModel": "a pair model, as of load_couplings",
}
# Letters of the axes of numbers; those of one letter are equal in a call.
SHAPES = {
    "alphas": None,
    "attention": "HLL",
    "colours": "qq",
    "couplings": "LL",
    "known": None,
    "sequence_weights": "N",
    "values": "Hqq",
}
COLUMNS = {
    "scores": ("i", "j", "score", "apc"),
    "table": ("quantity", "order", "share", "share_se", "state"),
}
NAMED = {
    "activation": Activation,
    "alphabet": AlignmentSource.model_fields["alphabet"].annotation,
    "architecture": Literal[*ARCHITECTURES],
    "beta": Positive,
    "device": Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d+)?|mps)$", examples=["cpu"])],
    "energy": Literal["raw", "norm"],
    "format": AlignmentSource.model_fields["format"].annotation,
    "gamma": number(gt=2),
    "gap": Seed,
    "identity": number(gt=0, le=1),
    "law": DrawnSpectrum.model_fields["law"].annotation,
    "learning_rate": Positive,
    "objective": Literal["masked", "next-token"],
    "ridge": NotNegative,
    "seed": Seed,
    "skip": Positive,
    "step": Literal["last"] | Seed,
    "sweeps": Seed,
    "target": Inside,
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which raises `Refusal` for an argument that cannot be what it is taken for, and
    shows its progress in a notebook alone."""
    parameters = signature(function).parameters
    # Those of a default None may be None.
    plain = {name: one.annotation.removesuffix(" | None") for name, one in parameters.items()}
    paths = [name for name, annotation in plain.items() if annotation == "str | Path"]
    kinds = {
        name: (kind | None if parameters[name].default is None else kind, ...)
        for name, annotation in plain.items()
        if (kind := NAMED.get(name, KINDS.get(annotation)))
    }

    @wraps(function)
    def call(*values, **named):
        bound = signature(function).bind(*values, **named)
        bound.apply_defaults()
        given = bound.arguments
        given |= {name: _plain(value) for name, value in given.items()}
        check(kinds, {name: given[name] for name in kinds})
        given |= {n: expanduser(given[n]) for n in paths if given[n] is not None}
        there = [n for n, v in given.items() if v is not None or parameters[n].default is not None]
        for name in there:
            _check_class(name, given[name], plain[name])
        length = None
        for name in (name for name in there if name in TOKENS):
            given[name] = _tokens(name, given, length)
            length = given[name].shape[-1]
        sizes = {"N": len(given["tokens"])} if "tokens" in given else {}
        for name in (name for name in there if name in SHAPES):
            given[name] = _numbers(name, given[name], sizes)
        if "q" in sizes and (gap := given.get("gap") or 0) >= sizes["q"]:
            raise Refusal(f"found {gap}; expected a colour, 0 to {sizes['q'] - 1}", "gap")
        try:
            return only_in_notebooks(function, *bound.args, **bound.kwargs)
        except Refusal:
            raise
        except (TypeError, ValueError) as error:  # a size that is missing, an option that is not
            raise Refusal(str(error)) from error

    return call


def _plain(value: Any) -> Any:
    """A number of numpy, by itself or in a mapping, as Python's; anything else as it is."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _check_class(name: str, value: Any, annotation: str) -> None:
    """`Refusal` for what is of another class, or no table with the columns of its name."""
    if annotation in CLASSES and annotation not in {one.__name__ for one in type(value).__mro__}:
        raise Refusal(f"found {type(value).__name__}; expected {CLASSES[annotation]}", name)
    if annotation == "Model" and not all(one.isfinite().all() for one in value.parameters()):
        raise Refusal(
            "found weights that are not finite; expected finite ones; take another checkpoint", name
        )
    if lacking := set(COLUMNS.get(name, ())) - set(getattr(value, "columns", ())):
        said = f"expected a table with {', '.join(COLUMNS[name])}"
        raise Refusal(f"found no {', '.join(sorted(lacking))}; {said}", name)


def _numbers(name: str, value: Any, sizes: dict[str, int]) -> np.ndarray:
    """Finite numbers of the shape that `SHAPES` has; `sizes` gets those of its axes."""
    try:
        # Numpy does not read each tensor: not bfloat16, and none of a GPU or with a gradient.
        whole = value.detach().cpu().double() if hasattr(value, "detach") else value
        found = np.ma.asarray(whole, float).filled(np.nan)
    except (TypeError, ValueError) as error:
        raise Refusal(f"{error}; expected an array of numbers", name) from error
    if axes := SHAPES[name]:
        expected = ", ".join(str(sizes.get(axis, axis)) for axis in axes)
        known = [sizes.setdefault(*pair) for pair in zip(axes, found.shape, strict=False)]
        if len(axes) != found.ndim or known != list(found.shape):
            raise Refusal(f"found shape {found.shape}; expected ({expected})", name)
    if not np.isfinite(found).all():
        raise Refusal("found numbers that are masked or not finite; expected finite ones", name)
    return found


def _tokens(name: str, given: dict, length: int | None) -> np.ndarray:
    """Tokens `name`, rows of `length` or of the model's length and |V|; a `sequence` is one row."""
    model, vocabulary, causal = given.get("model"), given.get("vocabulary"), False
    if model is not None:
        vocabulary, length = model.vocabulary, model.length
        causal = getattr(model.about, "causal", False)
    one = name == "sequence"
    try:
        rows = rows_of([given[name]] if one else given[name], vocabulary)
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
    return rows[0] if one else rows


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
