"""Families: the alignments of the config's lists, in chunks that are a job each."""

import re
from collections import Counter
from functools import cache
from itertools import zip_longest
from pathlib import Path

from manybody.data import SourceError, given
from manybody.pipeline.check import NAME, Config, ConfigError
from manybody.pipeline.paths import Paths

PARTS = ("file", "structure", "effects", "sequences")  # of a line of a list, behind tabs
USES = {"energies": "sequences", "mutations": "effects", "generated": "file"}  # and what they need


class Families:
    """The files of the config's lists of families, and the jobs that fit them."""

    def __init__(self, paths: Paths, checked: Config):
        self.paths, self.checked = paths, checked
        self.entries = cache(self._entries)

    def pages(self) -> list[str]:
        return [self.paths.families.format(families=name) for name in self.checked.families]

    def chunks(self, name: str) -> list[str]:
        """The records of the jobs of a list."""
        count = -(-len(self.entries(name)) // self.checked.families[name].chunk)
        return [self.paths.chunk.format(families=name, chunk=n) for n in range(1, count + 1)]

    def used(self, name: str) -> list[str]:
        """Records of the jobs that score sequences or effects of a list, or draw new sequences."""
        generates, chunk = self.checked.families[name].generate, self.checked.families[name].chunk
        asked = {
            (use, 1 + place // chunk)
            for place, entry in enumerate(self.entries(name))
            for use, part in USES.items()
            if entry[part] and (generates or use != "generated")
        }
        return [self.paths.used.format(families=name, use=u, chunk=n) for u, n in sorted(asked)]

    def chunk(self, name: str, number: int | str) -> list[dict]:
        """`name` and `PARTS`, None where one is left out, of the families of one job."""
        size = self.checked.families[name].chunk
        return self.entries(name)[(int(number) - 1) * size : int(number) * size]

    def files(self, name: str, number: int | str, parts=("file", "structure")) -> list[str]:
        """The files of one job that are there: a family whose file is not is named on the page."""
        named = (entry[part] for entry in self.chunk(name, number) for part in parts)
        return [path for path in named if path and Path(path).is_file()]

    def _entries(self, name: str) -> list[dict]:
        where, listed = f"families.{name}", self.checked.families[name].listed
        try:
            path = given.named_file(listed, "listed", "a text file, an alignment a line")
        except SourceError as error:
            raise ConfigError(error.within(where)) from error
        raw = path.read_bytes()
        rows = [
            [part.strip() for part in line.split("\t")]
            for line in raw.decode(given.encoding(raw), errors="replace").splitlines()
            if line.strip() and not line.startswith("#")
        ]
        entries = [
            dict(name=Path(row[0].removesuffix(".gz")).stem)
            | {
                part: str(Path(path).expanduser()) if path else None
                for part, path in zip_longest(PARTS, row[: len(PARTS)])
            }
            for row in rows
        ]
        names = Counter(entry["name"] for entry in entries)
        twice = [one for one, count in names.items() if count > 1]
        odd = [one for one in names if not NAME.fullmatch(one)]
        braced = [path for row in rows for path in row if {"{", "}"} & {*path}]
        joined = [
            row[0]
            for row in rows
            if not (one := Path(row[0]).expanduser()).exists()
            and Path(re.split("[ ,;]", str(one))[0]).is_file()
        ]
        longer = [row[0] for row in rows if len(row) > len(PARTS)]
        for wrong, why in (
            (joined, "is no file, but its first part is (a tab stands between files)"),
            (twice, "comes more than once, and families are called as their files"),
            (odd or braced, "has characters beside letters, digits, '_', '.' and '-'"),
            (longer, f"has more behind it than {len(PARTS) - 1} files"),
            ([] if entries else [listed], "names no file"),
        ):
            if wrong:
                raise ConfigError(
                    f"{where}.listed: {listed}: {wrong[0]} {why}; expected an alignment a line, "
                    "each with its own file name, from which its folder is named; rename it, or "
                    "link to it (ln -s)"
                )
        return entries
