"""Corpora and sources: what each is made of, the user's own files among it, and their refusals."""

import os
import time
from functools import cache
from itertools import chain
from pathlib import Path

from manybody.config.corpora import sized
from manybody.data import SourceError, given
from manybody.io.atomic import sha256
from manybody.pipeline.check import Config, ConfigError
from manybody.pipeline.paths import Paths

DATA = Path(given.__file__).parent  # modules of the sources
SMALL = 10**6  # bytes of a file up to which its content counts, not its time


def digests(files: list[str]) -> dict[str, str]:
    """sha256 of the user's own files as they are before a job starts, up to a megabyte each.

    Snakemake takes down what they hold when a job has ended: a change since it read them would pass
    for what was read. Larger files it goes by their times. To be called without `input`: of a
    parameter that depends on it snakemake keeps no record.
    """
    return {
        str(path): sha256(path)
        for path in map(Path, files)
        if path.is_file() and path.stat().st_size <= SMALL
    }


def _for_snakemake(path: Path, key: str) -> str:
    """The path of a file of the user's; `SourceError` for what Snakemake cannot take.

    It writes paths as UTF-8, and removes what a job makes of an input that is dated after it.
    """
    told = str(path).encode(errors="backslashreplace").decode()
    odd = "bytes that are no UTF-8" if told != str(path) else ""
    if {"{", "}"} & {*told}:
        odd = "braces, which Snakemake takes for wildcards"
    if odd:
        raise SourceError(f"found {told}, with {odd}; expected a path without; rename it", key)
    if path.stat().st_mtime > time.time() + 60:  # the clock of a file server may be ahead
        raise SourceError(
            f"found {told}, whose time lies in the future, so that all that is made of it would be "
            f"older; expected a time that has been; set it (touch {told}), or wait",
            key,
        )
    return str(path)


class Sources:
    """Files and sizes of the config's corpora and sources; a file of the user's that cannot be used
    is a `ConfigError`, before any job."""

    def __init__(self, paths: Paths, checked: Config):
        self.paths, self.checked = paths, checked
        self.config, self.entry = paths.config, paths.entry
        self.refuse_small_text = cache(self._refuse_small_text)  # looks at each file

    def made_by(self, rule: str) -> list[str]:
        return [name for name, one in self.checked.sources.items() if one.made_by == rule]

    def sources_with(self, file: str) -> list[str]:
        """Names of the sources of which rules make this file beside the sequences."""
        return [name for name, one in self.checked.sources.items() if file in one.beside]

    def file_beside(self, source: str, file: str) -> str | list:
        """A file beside the sequences of a source; nothing for one that has none of this name."""
        folder = self.paths.sequences.format(source=source)
        return f"{folder}/{file}" if source in self.sources_with(file) else []

    def trained_tokenizers(self) -> list[str]:
        """Names of the sources whose tokenizer is trained on their corpus."""
        taken = self.sources_with("special.json")
        return [name for name in self.sources_with("tokenizer.json") if name not in taken]

    def source_files(self, source: str) -> list[str]:
        return [
            self.own_file("sources", source, key, path, expected)
            for key, path, expected in self.checked.sources[source].given_files()
        ]

    def module(self, source: str) -> str:
        """The module that makes the sequences of a source."""
        return self.checked.sources[source].module

    def package_tables(self, source: str) -> list[str]:
        """sha256 of the files beside the module of a source that it reads."""
        return [sha256(DATA / name) for name in self.checked.sources[source].package_files]

    def drawn_from(self, source: str) -> list[str]:
        """The files that the exactly drawn sequences of a source are made of."""
        options = self.checked.sources[source]
        folder = self.paths.sequences.format(source=options.made_from)
        return [*self.source_files(source), *(f"{folder}/{name}" for name in options.reads)]

    def true_conditionals(self, evaluation: str) -> tuple[str, str]:
        """The file and the module that say the conditionals of an evaluation's source."""
        source = self.entry("evaluations", evaluation)["source"]
        file, module = self.checked.sources[source].conditionals
        return f"{self.paths.sequences.format(source=source)}/{file}", module

    def evaluations_with_truth(self) -> list[str]:
        """Names of the evaluations of sources whose conditionals are known."""
        return [
            name
            for name, one in self.checked.evaluations.items()
            if self.checked.sources[one.source].conditionals
        ]

    def own_file(self, block: str, name: str, key: str, value: str, expected: str) -> str:
        """A file of the user's that a key of the entry `block: name` names."""
        try:
            return _for_snakemake(given.named_file(value, key, expected), key)
        except SourceError as error:
            raise ConfigError(error.within(f"{block}.{name}")) from error

    def corpus_files(self, corpus: str) -> list[str]:
        """The user's own files that a corpus is read from; those in a folder one by one."""
        files = self.entry("corpora", corpus).get("files", [])
        parts = files if isinstance(files, dict) else {"": files}
        results = Path(self.paths.results).resolve()
        for name in chain(*parts.values()):
            folder = Path(os.path.expanduser(name)).resolve()
            if results.is_relative_to(folder) and not any(
                part.startswith(".") for part in results.relative_to(folder).parts
            ):
                raise ConfigError(
                    f"results: found {results}, which lies in {name}, where corpora.{corpus}.files "
                    f"reads all that is there; expected a folder elsewhere, as results would be "
                    f"read as text; name one"
                )
        try:
            return [
                _for_snakemake(path, "files")
                for part, names in parts.items()
                for path in given.text_files(names, f"files.{part}" if part else "files")
            ]
        except SourceError as error:
            raise ConfigError(error.within(f"corpora.{corpus}")) from error

    def theory_files(self, theory: str) -> list[str]:
        entry = self.entry("theory", theory)
        expected = {
            "questions": "a file of lines `COARSE:fine question`, or null",
            "tokenizer": "a vocab.txt or tokenizer.json, or null",
        }
        return [
            self.own_file("theory", theory, key, entry[key], said)
            for key, said in expected.items()
            if isinstance(entry.get(key), str)
        ]

    def _refuse_small_text(self, source: str) -> None:
        """`ConfigError` for what a text of the user's own files is too short for, whatever it says:
        a token is a byte or more, and one may stand between two files."""
        text = self.entry("sources", source)
        if self.entry("corpora", text["corpus"])["kind"] != "file":
            return
        files = list(map(Path, self.corpus_files(text["corpus"])))
        if not files or any(given.table(file) for file in files):
            return
        most = sum(file.stat().st_size for file in files) + len(files)
        held = f"as the files of corpora.{text['corpus']} hold {most} bytes"
        if 3 * text["length"] > most:
            raise ConfigError(
                f"sources.{source}.length: found {text['length']}; expected at most {most // 3}, "
                f"{held} and each of three splits needs a sequence; lower it, or give more text"
            )
        if text.get("vocabulary", 0) > 256 + most:
            raise ConfigError(
                f"sources.{source}.vocabulary: found {text['vocabulary']}; expected less than "
                f"{257 + most}, {held}; lower it, or give more text"
            )

    def documents(self, source: str, split: str) -> str:
        """The documents that a split is cut from; `ConfigError` where they are too few."""
        self.refuse_small_text(source)
        corpus = self.entry("sources", source)["corpus"]
        return f"{self.paths.results}/corpora/{corpus}/{split}.parquet"

    def sizes_of(self, source: str) -> dict[str, int]:
        """|V| and L of a source where the config says them."""
        own = sized(source, self.checked)
        return {key: size for key in ("vocabulary", "length") if (size := getattr(own, key, None))}

    def sampling_threads(self, source: str) -> int:
        """Several where each has enough chains to outweigh what the others then wait for."""
        return 4 if sum(self.entry("sources", source)["sequences"].values()) > 2000 else 1

    def map_sequences(self, source: str) -> int:
        """Validation sequences that attention maps are averaged over: 500, or all where fewer."""
        return min(500, self.entry("sources", source).get("sequences", {}).get("validation", 500))

    def words_of(self, spectrum: str) -> str | list:
        """The tokenizer that decodes the passage of a spectrum of a text; nothing without one."""
        entry = self.entry("spectra", spectrum)
        asked = entry.get("passage") is not None
        return self.file_beside(entry["source"], "tokenizer.json") if asked else []
