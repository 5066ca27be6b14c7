"""What the schema says is wrong with a config, as sentences: key, value, expectation, way out."""

import json
import math
import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path

SCHEMA = Path(__file__).resolve().parents[3] / "schemas" / "config.schema.yaml"
LONGEST = 80  # characters of a value that are shown


def schema_problems(config: dict) -> Iterator[str]:
    """One sentence for each thing in `config` that the schema refuses."""
    for error in _validator().iter_errors(config):
        yield from _sentences(error)


def nearest(key: str, allowed: list[str]) -> str:
    """The name in `allowed` that was probably meant by `key`, or nothing."""
    # Short names such as n2 and n3 are near at half their letters.
    return next(iter(get_close_matches(str(key), allowed, 1, cutoff=0.5)), "")


def shown(value) -> str:
    """A value as Python writes it, not longer than a line."""
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


@cache
def _validator():
    """The schema's validator. It is made once, and fast: jobs check the config when they start."""
    import yaml
    from jsonschema import Draft202012Validator, validators

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    schema = yaml.load(SCHEMA.read_text(encoding="utf-8"), loader)
    schema = _inline(schema, schema.pop("$defs"), {})
    types = Draft202012Validator.TYPE_CHECKER.redefine_many(
        # 2.0 is no integer, since paths are made of numbers; what is not finite is no number.
        {"integer": _is_integer, "number": _is_number}
    )
    keywords = {"oneOf": _one_of, "required": _required, "pattern": _pattern}
    return validators.extend(Draft202012Validator, keywords, type_checker=types)(schema)


def _is_integer(_, value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_, value) -> bool:
    return _is_integer(_, value) or (isinstance(value, float) and math.isfinite(value))


def _inline(node, definitions: dict, done: dict):
    """A schema with its references resolved, each part once: following them takes most time."""
    if isinstance(node, list):
        return [_inline(part, definitions, done) for part in node]
    if not isinstance(node, dict):
        return node
    if id(node) not in done:
        done[id(node)] = out = {}
        reference = node.get("$ref")
        if isinstance(reference, str):
            name = reference.removeprefix("#/$defs/")
            out.update(_inline(definitions[name], definitions, done))
        out.update(
            (key, _inline(part, definitions, done)) for key, part in node.items() if key != "$ref"
        )
    return done[id(node)]


def _one_of(validator, alternatives, instance, schema):
    """Errors of the alternative that a mapping names by its `kind` (or the like), else of all."""
    from jsonschema import ValidationError

    candidates = [part for part in alternatives if _may_mean(part, instance)]
    if isinstance(instance, dict) and not candidates:
        key = next(key for key in ("kind", "architecture", "name") if key in instance)
        error = ValidationError("", validator="enum", instance=instance[key])
        error.path.append(key)
        error.schema = {"enum": _known(alternatives, key)}
        yield error
        return
    errors = [list(validator.descend(instance, part)) for part in candidates]
    if all(errors):
        # A mapping or a list was meant to be the alternative that is one, and comes nearest.
        alike = [
            found
            for part, found in zip(candidates, errors, strict=True)
            if (isinstance(instance, dict) and _is_mapping(part))
            or (isinstance(instance, list) and part.get("type") == "array")
        ]
        yield from min(alike, key=_distance, default=[ValidationError("", validator="oneOf")])


def _required(validator, required, instance, schema):
    """One error a missing key, at the key's own path."""
    from jsonschema import ValidationError

    for key in required if isinstance(instance, dict) else ():
        if key not in instance:
            error = ValidationError("", validator="missing", instance=instance)
            error.path.append(key)
            error.schema = _property(schema, key, instance)
            yield error


def _property(schema: dict, key: str, instance: dict) -> dict:
    """What the schema of a mapping, or that of the alternative it means, says of a key."""
    if key in schema.get("properties", {}):
        return schema["properties"][key]
    alternatives = schema.get("oneOf", [])
    if known := _known(alternatives, key):
        return {"enum": known}
    meant = [part for part in alternatives if _may_mean(part, instance)]
    return next((part["properties"][key] for part in meant if key in part["properties"]), {})


def _known(alternatives: list[dict], key: str) -> list:
    """The values by which alternatives can be told apart at `key`."""
    return sorted({value for part in alternatives for value in _fixed(part).get(key, [])})


def _pattern(validator, pattern, instance, schema):
    """Unlike the library's, no match for a text that goes on with a new line."""
    from jsonschema import ValidationError

    if isinstance(instance, str) and not re.fullmatch(pattern, instance):
        yield ValidationError("")


def _may_mean(alternative: dict, instance) -> bool:
    """False if the alternative fixes a key at another value than the mapping has."""
    return not isinstance(instance, dict) or all(
        key not in instance or instance[key] in values
        for key, values in _fixed(alternative).items()
    )


def _fixed(alternative: dict) -> dict[str, list]:
    """The keys that tell alternatives apart, each with its possible values."""
    return {
        key: [part["const"]] if "const" in part else part["enum"]
        for key, part in alternative.get("properties", {}).items()
        if key in ("kind", "architecture", "name") and ("const" in part or "enum" in part)
    }


def _is_mapping(schema: dict) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def _distance(errors: list) -> int:
    return sum(
        3 * len(_unknown(error)) if error.validator == "additionalProperties" else 2
        for error in errors
    )


def _unknown(error) -> list[str]:
    return sorted(set(map(str, error.instance)) - set(error.schema.get("properties", {})))


def _sentences(error) -> Iterator[str]:
    path = _path(error)
    about = " ".join(error.schema.get("description", "").split())
    about = f" ({about})" if about else ""
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        for name in _unknown(error):
            near = nearest(name, allowed)
            fix = f"did you mean {near}?" if near else "remove it"
            where = f"{path}.{name}" if path else name
            known = ", ".join(allowed)
            yield f"{where}: this key is not known; expected one of {known}; {fix}"
        return
    key = (list(error.absolute_path) or [""])[-1]
    number = _meant_number(error.instance, error.schema)
    value = _written(_example(error.schema)) if number is None else number
    fix = (
        f"write for example {value}"
        if isinstance(key, int)
        else f"write for example {key}: {value}"
    )
    expected = f"expected {_expectation(error.schema)}{about}"
    if error.validator == "missing":
        yield f"{path}: missing; {expected}; {fix}"
    else:
        note = "" if number is None else ", which YAML reads as text"
        yield f"{path or 'config'}: found {shown(error.instance)}{note}; {expected}; {fix}"


def _meant_number(instance, schema: dict) -> str | None:
    """A text as the number that was meant: YAML knows 7.0e-4, and takes 7e-4 for a text."""
    if schema.get("type") not in ("number", "integer") or not isinstance(instance, str):
        return None
    try:
        number = float(instance)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if schema["type"] == "integer":
        return str(int(number)) if number.is_integer() else None
    text = repr(number)
    return text if "." in text else text.replace("e", ".0e")


def _path(error) -> str:
    text = ""
    for part in error.absolute_path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def _written(value) -> str:
    """A value as it may stand in the config: JSON is YAML."""
    return value if isinstance(value, str) and value.isidentifier() else json.dumps(value)


def _expectation(schema: dict) -> str:
    """What a value may be, in words."""
    if "const" in schema:
        return _written(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if _is_mapping(schema):
        return _mapping(schema)
    if "oneOf" in schema:
        return " or ".join(dict.fromkeys(_expectation(part) for part in schema["oneOf"]))
    kind = schema.get("type", "a value")
    if isinstance(kind, list):
        return " or ".join(_expectation({**schema, "type": part}) for part in kind)
    if kind == "array":
        fewest, most = schema.get("minItems", 0), schema.get("maxItems")
        number = f"{fewest} " if fewest == most else f"at least {fewest} " if fewest else ""
        different = "different items" if schema.get("uniqueItems") else "items"
        return f"a list of {number}{different}, each {_expectation(schema.get('items', {}))}"
    if kind in ("integer", "number"):
        return f"{'an integer' if kind == 'integer' else 'a number'}{_range(schema)}"
    if kind == "string":
        pattern = f" that matches {schema['pattern']}" if "pattern" in schema else ""
        return f"{'a non-empty' if 'minLength' in schema else 'a'} string{pattern}"
    return {"boolean": "true or false", "null": "null"}.get(kind, kind)


def _mapping(schema: dict) -> str:
    keys = [*schema.get("properties", {})]
    parts = [part.get("required", []) for part in schema.get("oneOf", [])]
    keys += [key for part in parts for key in part if key not in keys]
    least = "at least one entry" if schema.get("minProperties") else "names"
    return f"a mapping with the keys {', '.join(keys)}" if keys else f"a mapping with {least}"


def _range(schema: dict) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    bounds = [("of at least", low), ("above", above), ("of at most", high), ("below", below)]
    said = [f"{words} {bound}" for words, bound in bounds if bound is not None]
    return (" " + " and ".join(said)) if said else ""


def _example(schema: dict):
    """A value that the schema takes."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema and not _is_mapping(schema):
        return _example(schema["oneOf"][0])
    kind = schema.get("type", "object" if _is_mapping(schema) else "null")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        chosen = schema["oneOf"][0] if "oneOf" in schema else {}
        parts = {**schema.get("properties", {}), **chosen.get("properties", {})}
        names = dict.fromkeys([*schema.get("required", []), *chosen.get("required", [])])
        entry = schema.get("additionalProperties")
        if schema.get("minProperties") and isinstance(entry, dict):
            return {"name": _example(entry)}
        return {name: _example(parts.get(name, {})) for name in names}
    if kind == "array":
        return _items(schema)
    if kind in ("integer", "number"):
        return _number(schema, kind)
    return {"boolean": False, "null": None, "string": _string(schema)}[kind]


def _items(schema: dict) -> list:
    item, count = schema.get("items", {}), schema.get("minItems", 1)
    first = _example(item)
    if not schema.get("uniqueItems"):
        return [first] * count
    if "enum" in item:
        return item["enum"][:count]
    words = isinstance(first, str)
    return [f"{first}-{i}" if words else first + i for i in range(count)]


def _number(schema: dict, kind: str):
    if "minimum" in schema:
        return schema["minimum"]
    above, below = schema.get("exclusiveMinimum", 0), schema.get("exclusiveMaximum")
    if below is not None or "maximum" in schema:
        return (above + (below if below is not None else schema["maximum"])) / 2
    return above + 1 if kind == "integer" or "exclusiveMinimum" in schema else above


def _string(schema: dict) -> str:
    digits = {"^[0-9a-f]{64}$": 64, "^[0-9a-f]{40}$": 40}
    return "0" * digits[schema["pattern"]] if schema.get("pattern") in digits else "name"
