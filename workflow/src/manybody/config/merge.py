"""A config as Snakemake merged it, made the same however its parts were laid over one another.

Snakemake compares a rule's parameters as text. It puts the keys of an overlay first, so that an
overlay that repeats a default would make jobs run again; and it takes every number in a mapping of
`--config` for text.
"""

from collections.abc import Iterable
from contextlib import suppress

import yaml

FILES = 3  # that are named of a corpus of many


def in_order(config: dict, default: dict) -> dict:
    """`config` with its keys in the order of `default`, then those that are not there, by name."""
    own = sorted(config.keys() - default.keys(), key=str)
    ordered = {}
    for key in [*(key for key in default if key in config), *own]:
        value, below = config[key], default.get(key)
        nested = isinstance(value, dict)
        ordered[key] = (
            in_order(value, below if isinstance(below, dict) else {}) if nested else value
        )
    return ordered


def typed(arguments: Iterable[str]) -> dict:
    """The mappings among the arguments of `--config`, `key={...}`, as YAML."""
    found = {}
    for key, text in (argument.split("=", 1) for argument in arguments):
        with suppress(yaml.YAMLError):
            value = yaml.safe_load(text)
            if isinstance(value, dict):
                found[key] = value
    return found


def own_texts(config: dict) -> dict[str, str]:
    """The files of each corpus of one's own files that a source is made of, in words."""
    used = {source.get("corpus") for source in config.get("sources", {}).values()}
    own = {name: one for name, one in config.get("corpora", {}).items() if one["kind"] == "file"}
    return {
        name: ", ".join(one["files"][:FILES])
        + (f" and {len(one['files']) - FILES} more" if one["files"][FILES:] else "")
        for name, one in own.items()
        if name in used
    }
