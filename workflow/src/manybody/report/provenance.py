"""The origin of a run: its config, its code, its packages, its machine, and what it took."""

import json
import math
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from textwrap import shorten

import pandas as pd
import psutil
import yaml

from manybody.io.differences import differences

# What the numbers hang on; those that the environment of the page's job has not got are left out.
PACKAGES = (
    "snakemake", "torch", "transformers", "tokenizers", "numpy", "scipy", "numba", "pandas",
    "pyarrow", "matplotlib",
)  # fmt: skip
NOTHING = "not there"
LONGEST = 200  # characters of a value


def changes(default: dict, config: dict) -> list[tuple[str, str, str]]:
    """Keys whose values differ, each with the value in the default and in the config, as text."""
    return [(key, *map(_text, values)) for key, *values in differences(default, config, NOTHING)]


def _text(value) -> str:
    """A value as one line of YAML, its end left out where it is long."""
    if value is NOTHING:
        return NOTHING
    text = yaml.safe_dump(value, default_flow_style=True, width=math.inf, sort_keys=False)
    return shorten(text.removesuffix("\n...\n").strip(), LONGEST, placeholder=" ...")


def facts(checkout: str | Path) -> dict[str, str]:
    """When a page is written, by which code, on which machine."""
    installed = {found.name: found.version for found in distributions()}
    return {
        "Written": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "Commit": commit(checkout),
        "Versions": ", ".join(
            [f"Python {platform.python_version()}"]
            + [f"{name} {installed[name]}" for name in PACKAGES if name in installed]
        ),
        "Machine": machine(),
    }


def commit(checkout: str | Path) -> str:
    """The commit of the code, and whether files differ from it."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "not known: the code is no git checkout"
    return re.sub("-dirty$", ", with changes that are not committed", said)


def machine() -> str:
    """Processor, cores and memory of the machine that writes the page."""
    cpuinfo = Path("/proc/cpuinfo")
    said = cpuinfo.read_text("utf-8") if cpuinfo.is_file() else ""
    model = [*re.findall(r"(?m)^model name\s*: *(.*?) *$", said), platform.machine()][0]
    memory = psutil.virtual_memory().total / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.system()}"


def times(usage: str | Path) -> list[dict]:
    """Time and memory of the last runs of jobs, by rule: jobs, minutes, minutes of CPU, most GB;
    what a job was too short for counts as 0."""
    rows = []
    for folder in sorted(path for path in Path(usage).glob("*") if path.is_dir()):
        texts = [path.read_text("utf-8").strip() for path in folder.glob("*.jsonl")]
        last = [json.loads(text.rpartition("\n")[2]) for text in texts if text]
        numbers = pd.DataFrame(last, columns=["s", "cpu_time", "max_rss"])
        numbers = numbers.apply(pd.to_numeric, errors="coerce").fillna(0.0)
        rows.append(
            {
                "rule": folder.name,
                "jobs": len(last),
                "minutes": numbers["s"].sum() / 60,
                "cpu": numbers["cpu_time"].sum() / 60,
                "memory": max(numbers["max_rss"], default=0.0) / 1024,
            }
        )
    return sorted(rows, key=lambda row: -row["minutes"])
