"""A config as Snakemake merged it, made the same however its parts were laid over one another.

Snakemake compares a rule's parameters as text. It puts the keys of an overlay first, so that an
overlay that repeats a default would make jobs run again; and it takes every number in a mapping of
`--config` for text.
"""

from collections.abc import Iterable
from contextlib import suppress

import yaml


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
