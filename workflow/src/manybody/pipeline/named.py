"""Says which config files of a command line do not exist, where snakemake would end in a traceback.

python -m manybody.pipeline.named ARGUMENTS OF SNAKEMAKE
"""

import argparse
import sys
from difflib import get_close_matches
from pathlib import Path


def missing(arguments: list[str]) -> list[str]:
    """A sentence for each config file among the arguments of snakemake that is not there."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", action="extend", default=[])
    found = parser.parse_known_args(arguments)[0].configfile
    return [_sentence(Path(name)) for name in found if not Path(name).is_file()]


def _sentence(path: Path) -> str:
    folder = path.parent if path.parent.is_dir() else Path("config")
    there = sorted(str(file) for file in folder.glob("*.y*ml"))
    near = get_close_matches(str(path), there, 1, cutoff=0.5)
    fix = f"did you mean {near[0]}?" if near else f"{folder} has {', '.join(there) or 'none'}"
    return f"--configfile: found {path}, which does not exist; expected a YAML file; {fix}"


if __name__ == "__main__":
    sys.exit("\n".join(missing(sys.argv[1:])) or 0)
