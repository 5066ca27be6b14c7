"""Answers what Snakemake asks of `conda`, by py-rattler, which solves and installs conda packages.

    python standin.py ROOT ARGUMENTS OF CONDA...

Packages come from ROOT/channels/{channel} alone, and those of a `pip:` section from wherever the
new environment's own pip finds them, as conda has it. Any other command is refused.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import rattler
import yaml

VERSION = "24.7.1"  # the oldest conda that Snakemake 9 takes


def main(root: Path, *arguments: str) -> None:
    match arguments:
        case ["--version"]:
            print("conda", VERSION)
        case ["info", "--json"]:
            here = {"conda_prefix": str(root), "root_prefix": str(root), "conda_version": VERSION}
            print(json.dumps({**here, "platform": str(rattler.Subdir.current())}))
        case ["config", "--get", "channel_priority", "--json"]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["clean", "-y", "--tarballs"]:
            pass  # archives are unpacked as they are read, and not kept
        case ["env", "create", *options]:
            asked = asked_of_create(options)
            create(root, asked.file.absolute(), asked.prefix.absolute())
        case _:
            sys.exit(f"this stand-in for conda has no command {' '.join(arguments)}")


def asked_of_create(options: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="conda env create", allow_abbrev=False)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--no-default-packages", action="store_true")  # there are none
    return parser.parse_args(options)


def create(root: Path, file: Path, prefix: Path) -> None:
    """Makes the environment `prefix` of an environment file."""
    asked = yaml.safe_load(file.read_text(encoding="utf-8"))
    specs = [entry for entry in asked["dependencies"] if isinstance(entry, str)]
    sections = [entry for entry in asked["dependencies"] if not isinstance(entry, str)]
    if any(set(section) != {"pip"} for section in sections):
        sys.exit(f"{file}: expected package names and a section `pip:`, found {sections}")
    asyncio.run(install(root, [c for c in asked["channels"] if c != "nodefaults"], specs, prefix))
    for section in sections:
        pip_install(section["pip"], file.parent, prefix)


async def install(root: Path, channels: list[str], specs: list[str], prefix: Path) -> None:
    """Installs what solves `specs`, of the channels in the order of their priority."""
    folders = [root / "channels" / name for name in channels]
    if absent := [folder.name for folder in folders if not folder.is_dir()]:
        sys.exit(f"no channel {', '.join(absent)} under {root / 'channels'}")
    records = await rattler.solve(
        [rattler.Channel(folder.as_uri()) for folder in folders],
        specs,
        gateway=rattler.Gateway(cache_dir=root / "cache"),
        platforms=[rattler.Subdir.current(), "noarch"],
        virtual_packages=rattler.VirtualPackage.detect(),
    )
    await rattler.install(
        records, target_prefix=prefix, cache_dir=root / "cache", show_progress=False
    )


def pip_install(requirements: list[str], folder: Path, prefix: Path) -> None:
    """Runs the environment's pip on a `pip:` section, with the options that conda gives it."""
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".requirements.txt") as listed:
        listed.write("\n".join(requirements) + "\n")
        listed.flush()
        pip = [str(prefix / "bin" / "python"), "-m", "pip", "install", "-U"]
        done = subprocess.run([*pip, "-r", listed.name, "--exists-action=b"], cwd=folder)
    if done.returncode:
        sys.exit("Pip failed; its reason is above.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
