"""Where a run comes from: its config, its code, its packages, its machine, and what it took."""

import json
import math
import os
import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import shorten

import psutil
import yaml

# What the numbers hang on; those that the environment of the page's job has not got are left out.
PACKAGES = (
    *("snakemake", "torch", "transformers", "tokenizers", "numpy", "scipy", "numba"),
    *("pandas", "pyarrow", "matplotlib"),
)
NOTHING = "not there"
LONGEST = 200  # characters of a value
GIGABYTE = 2**30
MINUTE = 60.0


def differences(default: dict, config: dict, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Keys whose values differ, each with the value in the default and in the config.

    A mapping that only one of the two has is one row.
    """
    for key in dict.fromkeys([*default, *config]):
        values = [part.get(key, NOTHING) for part in (default, config)]
        if all(isinstance(value, dict) for value in values):
            yield from differences(*values, f"{path}{key}.")
        elif values[0] != values[1]:
            yield (f"{path}{key}", *map(_text, values))


def _text(value) -> str:
    """A value as one line of YAML, its end left out where it is long."""
    if value is NOTHING:
        return NOTHING
    text = yaml.safe_dump(value, default_flow_style=True, width=math.inf, sort_keys=False)
    return shorten(text.removesuffix("\n...\n").strip(), LONGEST, placeholder=" ...")


def commit(checkout: str | Path) -> str:
    """The commit of the code, and whether files differ from it."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "not known: the code is no git checkout"
    clean = said.removesuffix("-dirty")
    return clean if clean == said else f"{clean}, with changes that are not committed"


def versions() -> str:
    """Python and the packages that numbers hang on."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def machine() -> str:
    """Processor, cores and memory of the machine that writes the page."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = (line.partition(":") for line in cpuinfo.read_text("utf-8").splitlines())
        names = [value.strip() for key, _, value in lines if key.strip() == "model name"]
        model = names[0] if names else model
    memory = psutil.virtual_memory().total / GIGABYTE
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.system()}"


def times(usage: str | Path) -> list[dict]:
    """Time and memory of the last runs of jobs, by rule: jobs, minutes, minutes of CPU, most GB."""
    rows = []
    for folder in sorted(path for path in Path(usage).glob("*") if path.is_dir()):
        runs = [_last(path) for path in sorted(folder.glob("*.jsonl"))]
        runs = [run for run in runs if run]
        rows.append(
            {
                "rule": folder.name,
                "jobs": len(runs),
                "minutes": sum(_number(run, "s") for run in runs) / MINUTE,
                "cpu": sum(_number(run, "cpu_time") for run in runs) / MINUTE,
                "memory": max((_number(run, "max_rss") for run in runs), default=0.0) / 1024,
            }
        )
    return sorted(rows, key=lambda row: -row["minutes"])


def _last(path: Path) -> dict:
    """The last record of a benchmark file of Snakemake's."""
    lines = path.read_text("utf-8").split("\n")
    return json.loads(next((line for line in reversed(lines) if line.strip()), "{}"))


def _number(run: dict, key: str) -> float:
    """A measurement; 0 for what a job was too short for."""
    value = run.get(key)
    return float(value) if isinstance(value, int | float) else 0.0
