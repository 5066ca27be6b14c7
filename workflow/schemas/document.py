"""Writes the config's JSON schema (for editors), docs/config.md and docs/results.md.

    python workflow/schemas/document.py [FOLDER]

FOLDER is the repository; the current folder by default.
"""

import json
import sys
from pathlib import Path

from manybody.config.sentences import alternatives, expectation, written
from manybody.pipeline.check import NAMED, config_type
from schemas import results

FIRST = ("kind", "architecture", "name")  # keys that head a table
SCHEMA, PAGE = Path("workflow/schemas/config.schema.json"), Path("docs/config.md")
HEAD = """# The config

Every key, by block: what it may be (one of those between commas; a name has letters, digits, `_`,
`.` and `-`), what stands for it where it is left out, and what it means.
Made by `make config` from the typed blocks in `workflow/src/manybody`: `config/`, the options of
sources (`data/kinds.py`) and of architectures (`models/`), and figures (`papers/`). Edit those.

An overlay (`--configfile mine.yaml`) is laid over `config/config.yaml` key by key. In {named}
and `figures`, `name: null` takes an entry away. Null takes back any key that may be left out, and
one of another kind than the entry now has; where a key takes null itself it is a value. A key that
comes twice in one file is refused.
"""


def schema() -> dict:
    """The JSON schema, draft 2020-12, of a whole config; entries may be null, which takes away."""
    whole = _plain(config_type().model_json_schema())
    entries = [(whole["properties"][name], "additionalProperties") for name in NAMED]
    for name in set(blocks_in(whole["properties"]["figures"], whole["$defs"])):
        properties = whole["$defs"][name]["properties"]
        entries += [(properties, key) for key in properties]
    for parent, key in entries:
        parent[key] = {"anyOf": [parent[key], {"type": "null"}]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole}


def _plain(node):
    """A schema without pydantic's titles, and without None where it stands for nothing."""
    if isinstance(node, list):
        return [_plain(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _plain(part)
        for key, part in node.items()
        if not (key == "title" and isinstance(part, str)) and (key, part) != ("default", None)
    }


SHORT = {
    "a string that matches ^[A-Za-z0-9_.-]+$": "name",
    "a string that matches ^[0-9a-f]{64}$": "sha256",
    "a non-empty string": "text",
    "a string": "text",
    " and of at most ": " and ≤ ",
    " and below ": " and < ",
    "an integer of at least ": "integer ≥ ",
    "an integer": "integer",
    "a number of at least ": "number ≥ ",
    "a number above ": "number > ",
    "a number": "number",
    "a list of items, each a value": "list of",
    "a list of at least ": "list of ≥ ",
    "a list of ": "list of ",
    " items, each a value": "",
    "true or false": "boolean",
    "one of ": "",
    " or ": ", ",
}


def page() -> str:
    """docs/config.md: a section for each block, a table row for each key."""
    whole = _plain(config_type().model_json_schema())
    blocks = {"Config": whole}
    for block in blocks_in(whole, whole["$defs"]):
        blocks.setdefault(block, whole["$defs"][block])
    named = ", ".join(f"`{name}`" for name in NAMED)
    return HEAD.format(named=named) + "".join(_section(*item) for item in blocks.items())


def blocks_in(node, definitions: dict):
    """Names of the blocks in a schema, each before those inside it."""
    if isinstance(node, dict) and "$ref" in node:
        name = _block(node)
        yield name
        yield from blocks_in(definitions[name], definitions)
    elif isinstance(node, dict | list):
        for key, part in node.items() if isinstance(node, dict) else enumerate(node):
            if key not in ("$defs", "discriminator"):
                yield from blocks_in(part, definitions)


def _section(name: str, block: dict) -> str:
    properties = block["properties"]
    first = sorted(properties, key=lambda key: key not in FIRST)
    rows = [_row(key, properties[key], key in block.get("required", [])) for key in first]
    table = "\n".join(["| key | may be | left out | meaning |", "| --- | --- | --- | --- |", *rows])
    return f"\n## {name}\n\n{_line(block)}\n\n{table}\n"


def _block(schema: dict) -> str:
    return schema.get("$ref", "").rpartition("/")[2]


def _row(key: str, value: dict, required: bool) -> str:
    default = "required" if required else written(value["default"]) if "default" in value else "-"
    cells = (f"`{key}`", _type(value), default, _line(value))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _line(schema: dict) -> str:
    return " ".join(schema.get("description", "").split())


def _type(value: dict) -> str:
    """What a value may be, in words, with links to the blocks."""
    return ", ".join(dict.fromkeys(map(_part, alternatives(value))))


def _part(value: dict) -> str:
    if "$ref" in value:
        name = _block(value)
        return f"[{name}](#{name.lower()})"
    if "items" in value:
        return f"{short(expectation(value | {'items': {}}))}: {_type(value['items'])}"
    if isinstance(value.get("additionalProperties"), dict):
        return f"by name: {_type(value['additionalProperties'])}"
    return short(expectation(value))


def short(expected: str) -> str:
    """The words of a refusal as a table has them: "an integer of at least 1" is "integer ≥ 1"."""
    for words, brief in SHORT.items():
        expected = expected.replace(words, brief)
    return expected


def files(root: Path) -> dict[Path, str]:
    """The files by their path in the repository `root`."""
    typed = {SCHEMA: json.dumps(schema(), indent=1, ensure_ascii=False) + "\n", PAGE: page()}
    return typed | {results.PAGE: results.page(root)}


def write(folder: Path) -> None:
    """The files, in a repository."""
    for path, text in files(folder).items():
        (folder / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(*sys.argv[1:2]))
