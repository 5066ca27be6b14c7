"""A config is the same whatever was laid over what, and --config takes numbers."""

import copy
import json

import pytest
from configs import load
from snakemake.utils import update_config

from manybody.config.files import in_order, typed
from manybody.pipeline.check import check

DEFAULT = load()


def merged(overlay):
    """As Snakemake does it: the overlay is there first, and is laid over the default once more."""
    config = copy.deepcopy(overlay)
    update_config(config, copy.deepcopy(DEFAULT))
    update_config(config, overlay)
    return in_order(config, DEFAULT)


def paths(node, path=()):
    for key, value in node.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from paths(value, (*path, key))


@pytest.mark.long
def test_the_default_laid_over_itself_is_the_default_key_by_key():
    wanted, tried = json.dumps(DEFAULT), 0
    for path in paths(DEFAULT):
        part = DEFAULT
        for key in path:
            part = part[key]
        for key in reversed(path):
            part = {key: copy.deepcopy(part)}
        assert json.dumps(merged(part)) == wanted, path
        tried += 1
    assert tried > 1000


def test_overlays_that_say_the_same_in_another_order_are_one_config():
    entries = {"mine": {"kind": "file", "files": ["a.txt"]}, "a": {"kind": "file", "files": []}}
    turned = {name: dict(reversed(entry.items())) for name, entry in reversed(entries.items())}
    one, other = (json.dumps(merged({"corpora": part})) for part in (entries, turned))
    assert one == other != json.dumps(DEFAULT)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("clones={n2: {chains: 40}}", {"clones": {"n2": {"chains": 40}}}),
        (
            "models={n2: {bias: false, rank: null}}",
            {"models": {"n2": {"bias": False, "rank": None}}},
        ),
        ("results=1", {}),
        ("clones={n2: ", {}),
    ],
)
def test_mappings_of_the_command_line_keep_their_types(argument, expected):
    assert typed([argument]) == expected


def test_a_number_of_the_command_line_passes_the_check():
    config = merged({"clones": {"n2": {"threads": "2"}}})
    update_config(config, typed(["clones={n2: {threads: 2}}"]))
    assert check(config).clones["n2"].threads == 2
