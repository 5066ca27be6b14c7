"""The configs of this repository, as Snakemake lays one over another."""

import json
from functools import cache
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from manybody.pipeline.check import ConfigError, check, take_away
from manybody.pipeline.figures import Figures
from manybody.pipeline.paths import Paths
from manybody.pipeline.sources import Sources

CONFIG = Path(__file__).resolve().parents[1] / "config"


@cache
def parsed(name: str) -> str:
    """A file of config/ as JSON, so that what YAML's anchors share is two values."""
    return json.dumps(yaml.safe_load((CONFIG / name).read_text(encoding="utf-8")))


def load(*overlays: str) -> dict:
    """The default config with files of config/ laid over it."""
    config = json.loads(parsed("config.yaml"))
    for name in overlays:
        update_config(config, json.loads(parsed(name)))
    take_away(config)
    return config


def with_entry(block: str, like: str, **changes) -> dict:
    """The default config with one more entry of a block, that called `like` but for changes."""
    config = load()
    config[block]["mine"] = config[block][like] | changes
    return config


def figures(config: dict) -> Figures:
    """The figures of a config, and the files of their jobs."""
    take_away(config)
    paths, checked = Paths(config), check(config)
    return Figures(paths, Sources(paths, checked), checked)


def refusal(config: dict, taken=frozenset()) -> str:
    """What `check` says of a config that it refuses."""
    with pytest.raises(ConfigError) as caught:
        check(config, taken)
    return str(caught.value)
