"""Errors that pydantic finds in a config, as sentences: key, value, expectation, way out."""

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import cache

from pydantic import BaseModel, ValidationError

from manybody.io.options import distance

LONGEST = 80  # characters of a value that are shown
PATTERNS = {  # of the schema, in words
    "^/?[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$": "of letters, digits and any of _ . - with / between "
    "two names or first alone",
    "^[A-Za-z0-9_.-]+$": "of letters, digits and any of _ . - alone",
}
BOUNDS = {
    "minimum": "of at least",
    "exclusiveMinimum": "above",
    "maximum": "of at most",
    "exclusiveMaximum": "below",
}
DIGESTS = {"^[0-9a-f]{64}$": "0" * 64, "^[0-9a-f]{40}$": "0" * 40}


def nearest(key: str, allowed: list[str]) -> str:
    """The name in `allowed` that was probably meant by `key`, or nothing."""
    # Short names such as n2 and n3 are near at half their letters.
    return next(iter(get_close_matches(str(key), allowed, 1, cutoff=0.5)), "")


def shown(value) -> str:
    """A value as Python writes it, not longer than a line."""
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def sentences(error: ValidationError, model: type[BaseModel], config) -> Iterator[str]:
    """One sentence for each place of `config` that `model` refuses."""
    places = {}
    for found in error.errors(include_url=False):
        path, kind = _place(found, config)
        places.setdefault(path, kind)
        if found["type"] == "union_tag_not_found" and kind == "missing":
            # Pydantic does not look at the other keys of a mapping that does not say its kind.
            schema, value = _schema(path[:-1], model, config)
            strange = [name for name in value if name not in _parts(schema)]
            places |= {(*path[:-1], name): "unknown" for name in strange}
    for path, kind in places.items():
        # Of alternatives, the one that goes deeper is meant.
        deeper = any(other != path and other[: len(path)] == path for other in places)
        if kind == "unknown":
            yield _unknown(path, model, config)
        elif not deeper:
            yield _wrong(path, kind, model, config)


def take_back(error: ValidationError, model: type[BaseModel], config: dict) -> bool:
    """Removes from `config` the keys that are null and may be left out, of those refused.

    Snakemake lays mappings over one another, so that an overlay can leave nothing out. An entry's
    key of another kind than its own goes too. False where there is none of either.
    """
    null = {_place(found, config)[0] for found in error.errors() if found["input"] is None}
    gone = [path for path in null if path and _may_go(path, model, config)]
    for *parents, name in gone:
        del _schema(parents, model, config)[1][name]
    return bool(gone)


def _may_go(path: tuple, model: type[BaseModel], config) -> bool:
    """True of a key that a mapping may be without, and of one that only its other kinds have."""
    schema, _ = _schema(path[:-1], model, config)
    if path[-1] in _parts(schema):
        return path[-1] not in schema.get("required", [])
    kinds = alternatives(_schema(path[:-1], model, config, meant=False)[0])
    return any(kind.get("additionalProperties") or path[-1] in _parts(kind) for kind in kinds)


def _place(found: dict, config) -> tuple[tuple, str]:
    """Where an error is, without pydantic's names of alternatives, and of what kind it is."""
    path, value = [], config
    for step in found["loc"]:
        if _has(value, step):
            value = value[step]
            path.append(step)
    if found["type"] == "missing":
        return (*path, found["loc"][-1]), "missing"
    if found["type"] in ("union_tag_not_found", "union_tag_invalid"):
        key = found["ctx"]["discriminator"].strip("'")
        if isinstance(value, dict) and key.isidentifier():
            return (*path, key), "wrong" if key in value else "missing"
    return tuple(path), "unknown" if found["type"] == "extra_forbidden" else "wrong"


def _has(value, step) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int)


def _unknown(path: tuple, model: type[BaseModel], config) -> str:
    name, allowed = path[-1], sorted(_parts(_schema(path[:-1], model, config)[0]))
    near = nearest(name, allowed)
    fix = f"did you mean {near}?" if near else "remove it"
    if _may_go(path, model, config):
        fix = "leave it out"
    return (
        f"{_written_path(path)}: this key is not known; expected one of {', '.join(allowed)}; {fix}"
    )


def _wrong(path: tuple, kind: str, model: type[BaseModel], config) -> str:
    schema, value = _schema(path, model, config)
    number = _meant_number(value, schema)
    example = written(_example(schema)) if number is None else number
    if path and isinstance(path[-1], str):
        example = f"{path[-1]}: {example}"
    about = " ".join(schema.get("description", "").split())
    about = f" ({about})" if about else ""
    note = ", which YAML reads as text" if number and isinstance(value, str) else ""
    what = "missing" if kind == "missing" else f"found {shown(value)}{note}"
    where, wanted = _written_path(path) or "config", expectation(schema)
    for pattern, words in PATTERNS.items():
        wanted = wanted.replace(f"that matches {pattern}", words)
    return f"{where}: {what}; expected {wanted}{about}; write for example {example}"


@cache
def json_schema(model: type[BaseModel]) -> dict:
    """The JSON schema of a block with all references resolved."""
    schema = model.model_json_schema()
    return _inline(schema, schema.pop("$defs", {}))


def _inline(node, definitions: dict):
    if isinstance(node, list):
        return [_inline(part, definitions) for part in node]
    if not isinstance(node, dict):
        return node
    named = definitions.get(node.get("$ref", "").removeprefix("#/$defs/"), {})
    return {
        key: _inline(part, definitions) for key, part in {**named, **node}.items() if key != "$ref"
    }


def _schema(path: tuple, model: type[BaseModel], config, meant=True) -> tuple[dict, object]:
    """The schema where `path` leads to, of a mapping the kind that is `meant`, and the value."""
    schema, value = json_schema(model), config
    for step in path:
        kinds = schema.get("discriminator", {})
        if kinds.get("propertyName") == step:
            schema = {"enum": sorted(kinds["mapping"])}
        else:
            schema = _meant(schema, value)
            inside = schema.get("items") if isinstance(step, int) else _parts(schema).get(step)
            schema = inside or schema.get("additionalProperties") or {}
        value = value[step] if _has(value, step) else None
    return _meant(schema, value) if meant and isinstance(value, dict) else schema, value


def _parts(schema: dict) -> dict:
    return schema.get("properties", {})


def _meant(schema: dict, value) -> dict:
    """The alternative that `value` was meant to be: of its kind, or nearest to its keys."""
    found = alternatives(schema)
    if isinstance(value, list):
        return next((part for part in found if part.get("type") == "array"), schema)
    found = [part for part in found if part.get("type") == "object"]
    by = schema.get("discriminator", {}).get("propertyName")
    named = [part for part in found if by and value.get(by) in _choices(_parts(part)[by])]
    return min(
        named or found,
        key=lambda part: distance(value, list(_parts(part)), part.get("required", [])),
        default=schema,
    )


def alternatives(schema: dict) -> list[dict]:
    """The types that a value may have: the parts of a union, those of unions in it too."""
    parts = schema.get("anyOf", schema.get("oneOf"))
    if parts is None:
        return [schema]
    return [inner for part in parts for inner in alternatives(part)]


def _choices(schema: dict) -> list:
    return [schema["const"]] if "const" in schema else schema["enum"]


def _meant_number(value, schema: dict) -> str | None:
    """The number meant by a text or a whole float: YAML knows 7.0e-4, but takes 7e-4 for a text."""
    kinds = [part.get("type") for part in alternatives(schema)]
    with suppress(ValueError):
        number = float(value) if isinstance(value, str | float) else math.nan
        if "number" in kinds and isinstance(value, str) and math.isfinite(number):
            text = repr(number)
            return text if "." in text else text.replace("e", ".0e")
        if "integer" in kinds and number.is_integer() and number >= schema.get("minimum", number):
            return str(int(number))
    return None


def _written_path(path: tuple) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def written(value) -> str:
    """A value as it may stand in the config: JSON is YAML."""
    return value if isinstance(value, str) and value.isidentifier() else json.dumps(value)


def expectation(schema: dict) -> str:
    """Describes in words what a value may be."""
    found = alternatives(schema)
    if len(found) > 1:
        return " or ".join(dict.fromkeys(map(expectation, found)))
    (schema,) = found
    if "const" in schema:
        return written(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    kind = schema.get("type", "a value")
    if kind == "object":
        fewest = schema.get("minProperties")
        least = f"at least {fewest} entr{'y' if fewest == 1 else 'ies'}" if fewest else "names"
        keys = ", ".join(_parts(schema))
        return f"a mapping with the keys {keys}" if keys else f"a mapping with {least}"
    if kind == "array":
        fewest, most = schema.get("minItems", 0), schema.get("maxItems")
        number = f"{fewest} " if fewest == most else f"at least {fewest} " if fewest else ""
        different = "different items" if schema.get("uniqueItems") else "items"
        return f"a list of {number}{different}, each {expectation(schema.get('items', {}))}"
    if kind in ("integer", "number"):
        return f"{'an integer' if kind == 'integer' else 'a number'}{_range(schema)}"
    if kind == "string":
        pattern = f" that matches {schema['pattern']}" if "pattern" in schema else ""
        return f"{'a non-empty' if 'minLength' in schema else 'a'} string{pattern}"
    return {"boolean": "true or false", "null": "null"}.get(kind, kind)


def _range(schema: dict) -> str:
    if "minimum" in schema and "maximum" in schema:
        return f" from {schema['minimum']:g} to {schema['maximum']:g}"
    said = [f" {words} {schema[key]:g}" for key, words in BOUNDS.items() if key in schema]
    return " and".join(said)


def _example(schema: dict):
    """A value that the schema takes."""
    schema = alternatives(schema)[0]
    if "examples" in schema:
        return schema["examples"][0]
    if "const" in schema or "enum" in schema:
        return _choices(schema)[0]
    kind = schema.get("type", "null")
    if kind == "object":
        parts = {name: _parts(schema)[name] for name in schema.get("required", [])}
        for number in range(schema.get("minProperties", 0)):
            parts[f"name-{number}"] = schema["additionalProperties"]
        return {name: _example(part) for name, part in parts.items()}
    if kind == "array":
        first, count = _example(schema.get("items", {})), schema.get("minItems", 1)
        if not schema.get("uniqueItems"):
            return [first] * count
        return [f"{first}-{i}" if isinstance(first, str) else first + i for i in range(count)]
    if kind in ("integer", "number"):
        return _number(schema, kind)
    text = DIGESTS.get(schema.get("pattern"), "name")
    return {"boolean": False, "null": None, "string": text}[kind]


def _number(schema: dict, kind: str):
    if "minimum" in schema:
        return schema["minimum"]
    above = schema.get("exclusiveMinimum", 0)
    below = schema.get("exclusiveMaximum", schema.get("maximum"))
    if below is not None:
        return (above + below) / 2
    return above + 1 if kind == "integer" or "exclusiveMinimum" in schema else above
