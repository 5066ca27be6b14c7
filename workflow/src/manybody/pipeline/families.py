"""Families: the alignments of the config's lists, in chunks that are a job each."""

from collections import Counter
from functools import cache
from pathlib import Path

from manybody.data import SourceError, given
from manybody.pipeline.check import NAME, Config, ConfigError
from manybody.pipeline.paths import Paths


class Families:
    """The files of the config's lists of families, and the jobs that fit them."""

    def __init__(self, paths: Paths, checked: Config):
        self.paths, self.checked = paths, checked
        self.entries = cache(self._entries)

    def pages(self) -> list[str]:
        """The pages of all lists."""
        return [self.paths.families.format(families=name) for name in self.checked.families]

    def chunks(self, name: str) -> list[str]:
        """The records of the jobs of a list."""
        count = -(-len(self.entries(name)) // self.checked.families[name].chunk)
        return [self.paths.chunk.format(families=name, chunk=n) for n in range(1, count + 1)]

    def chunk(self, name: str, number: int | str) -> list[dict]:
        """`name`, `file` and `structure`, None without one, of the families of one job."""
        size = self.checked.families[name].chunk
        return self.entries(name)[(int(number) - 1) * size : int(number) * size]

    def files(self, name: str, number: int | str) -> list[str]:
        """The files of one job that are there: a family whose file is not is named on the page."""
        entries = self.chunk(name, number)
        named = [entry[key] for entry in entries for key in ("file", "structure") if entry[key]]
        return [path for path in named if Path(path).is_file()]

    def _entries(self, name: str) -> list[dict]:
        where, listed = f"families.{name}", self.checked.families[name].listed
        try:
            path = given.named_file(listed, "listed", "a text file, an alignment a line")
        except SourceError as error:
            raise ConfigError(error.within(where)) from error
        rows = [
            [part.strip() for part in line.split("\t")]
            for line in path.read_text("utf-8").splitlines()
            if line.strip() and not line.startswith("#")
        ]
        entries = [
            dict(
                name=Path(file.removesuffix(".gz")).stem,
                file=str(Path(file).expanduser()),
                structure=str(Path(more[0]).expanduser()) if more and more[0] else None,
            )
            for file, *more in rows
        ]
        names = Counter(entry["name"] for entry in entries)
        twice = [one for one, count in names.items() if count > 1]
        odd = [one for one in names if not NAME.fullmatch(one)]
        braced = [file for file, *_ in rows if {"{", "}"} & {*file}]
        for wrong, why in (
            (twice, "comes more than once, and families are called as their files"),
            (odd or braced, "has characters beside letters, digits, '_', '.' and '-'"),
            ([] if entries else [listed], "names no file"),
        ):
            if wrong:
                raise ConfigError(
                    f"{where}.listed: {listed}: {wrong[0]} {why}; expected an alignment a line, "
                    "each with a name of its own, which folders are called by; rename it, or link "
                    "to it (ln -s)"
                )
        return entries
