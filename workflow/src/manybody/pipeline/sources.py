"""Corpora and sources: what each is made of, the user's own files among it, and their refusals."""

from functools import cache
from pathlib import Path

from manybody.config.sources import sized
from manybody.config.spectra import enumerable
from manybody.data import SourceError, given
from manybody.io.atomic import sha256
from manybody.pipeline.check import Config, ConfigError
from manybody.pipeline.paths import SPLITS, Paths

SAMPLED = ("many-body", "potts")  # kinds of sources with a Hamiltonian
SMALL = 10**6  # bytes of a file up to which its content counts, not its time


def digests(files: list[str]) -> dict[str, str]:
    """sha256 of the user's own files as they are before a job starts, up to a megabyte each.

    Of those snakemake takes down what they hold when a job has ended, not when it reads them: a
    change in between would pass for what was read. Larger files it goes by their times. To be
    called without `input`: of a parameter that depends on it snakemake keeps no record.
    """
    small = [path for path in map(Path, files) if path.is_file() and path.stat().st_size <= SMALL]
    return {str(path): sha256(path) for path in small}


class Sources:
    """Files and sizes of the config's corpora and sources.

    A file of the user's that cannot be used is a `ConfigError`, before any job.
    """

    def __init__(self, paths: Paths, checked: Config):
        self.paths, self.checked = paths, checked
        self.config, self.entry = paths.config, paths.entry
        self.most_tokens = cache(self.most_tokens)  # looks at each file

    def sources_of(self, *kinds: str) -> list[str]:
        """Names of the sources of some kinds."""
        return [name for name, source in self.config["sources"].items() if source["kind"] in kinds]

    def own_file(self, block: str, name: str, key: str, value: str, expected: str) -> str:
        """A file of the user's that a key of the entry `block: name` names."""
        try:
            return str(given.named_file(value, key, expected))
        except SourceError as error:
            raise ConfigError(error.within(f"{block}.{name}")) from error

    def corpus_files(self, corpus: str) -> list[str]:
        """The user's own files that a corpus is read from; those in a folder one by one."""
        files = self.entry("corpora", corpus).get("files", [])
        parts = files if isinstance(files, dict) else {"": files}
        try:
            return [
                str(path)
                for part, names in parts.items()
                for path in given.text_files(names, f"files.{part}" if part else "files")
            ]
        except SourceError as error:
            raise ConfigError(error.within(f"corpora.{corpus}")) from error

    def corpus_modules(self, corpus: str) -> list[str]:
        """The modules that collect a corpus, which a job imports by name."""
        kind = self.entry("corpora", corpus)["kind"]
        modules = {"pydocs": ["manybody.data.pydocs"], "file": []}
        return modules.get(kind, ["manybody.data.published"])

    def tensor_files(self, source: str) -> list[str]:
        """The user's own tensors that a source is made of."""
        keys = ("couplings", "colours", "fields", "rules")
        parts = {key: self.entry("sources", source).get(key) for key in keys}
        return [
            self.own_file(
                "sources", source, f"{key}.file", part["file"], f"a safetensors file with {key}"
            )
            for key, part in parts.items()
            if isinstance(part, dict) and "file" in part
        ]

    def alignment_file(self, source: str) -> str:
        """The user's own alignment that a source is read from."""
        expected = "an alignment, plain or gzip"
        file = self.entry("sources", source)["file"]
        return self.own_file("sources", source, "file", file, expected)

    def theory_files(self, theory: str) -> list[str]:
        """The user's own files that a theory reads."""
        expected = {
            "questions": "a file of lines `COARSE:fine question`, or null",
            "tokenizer": "a vocab.txt or tokenizer.json, or null",
        }
        found = {key: self.entry("theory", theory).get(key) for key in expected}
        return [
            self.own_file("theory", theory, key, value, expected[key])
            for key, value in found.items()
            if isinstance(value, str)
        ]

    def own_tokenizer(self, source: str) -> bool:
        """Says that the tokenizer of a text comes with a model."""
        return "tokenizer" in self.entry("sources", source)

    def tokenizer_files(self, source: str) -> list[str]:
        """The user's own files that a tokenizer is read from."""
        folder = self.entry("sources", source)["tokenizer"]
        if not isinstance(folder, str):
            return []
        expected = "a tokenizer.json in a folder, as save_pretrained writes it"
        file = f"{folder}/tokenizer.json"
        return [self.own_file("sources", source, "tokenizer", file, expected)]

    def special_tokens(self, source: str) -> str | list:
        """The special tokens of a text's own tokenizer; nothing for a trained one."""
        return self.of_text(source, "special.json") if self.own_tokenizer(source) else []

    def most_tokens(self, source: str) -> int | None:
        """A bound on the tokens of a text of the user's own files; None of others.

        A token is a byte or more, and one may stand between two files.
        """
        corpus = self.entry("sources", source)["corpus"]
        if self.entry("corpora", corpus)["kind"] != "file":
            return None
        files = list(map(Path, self.corpus_files(corpus)))
        if not files or any(file.suffix == ".parquet" for file in files):
            return None
        return sum(file.stat().st_size for file in files) + len(files)

    def refuse_small_text(self, source: str) -> None:
        """`ConfigError` for what a text is too short for, whatever it says."""
        most, text = self.most_tokens(source), self.entry("sources", source)
        if most is None:
            return
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

    def of_text(self, source: str, name: str) -> str | list:
        """A file that a text has beside its sequences; nothing for any other source."""
        if source not in self.sources_of("text"):
            return []
        return f"{self.paths.sequences}/{name}".format(source=source)

    def sizes_of(self, source: str) -> dict[str, int]:
        """|V| and L of a source where the config says them."""
        given = sized(source, self.checked)
        sizes = {key: getattr(given, key, None) for key in ("vocabulary", "length")}
        return {key: size for key, size in sizes.items() if size}

    def drawn_from(self, source: str) -> list[str]:
        """What the sequences of a source are made of that are drawn exactly."""
        made = self.entry("sources", source)
        if made["kind"] == "tree":
            return self.tensor_files(source)
        names = {
            "cut": ["hamiltonian.safetensors"],
            "n-gram-clone": ["train.parquet", "test.parquet"],
            "noisy": [f"{split}.parquet" for split in SPLITS],
        }
        folder = self.paths.sequences.format(source=made["source"])
        return [f"{folder}/{name}" for name in names[made["kind"]]]

    def exact_module(self, source: str) -> str:
        """The module that draws the sequences of such a source."""
        return f"manybody.data.{self.entry('sources', source)['kind'].replace('-', '_')}"

    def sampling_threads(self, source: str) -> int:
        """Several where each has enough chains to outweigh what the others then wait for."""
        return 4 if sum(self.entry("sources", source)["sequences"].values()) > 2000 else 1

    def map_sequences(self, source: str) -> int:
        """Validation sequences that attention maps are averaged over: 500, or all where fewer."""
        return min(500, self.entry("sources", source).get("sequences", {}).get("validation", 500))

    def true_law(self, source: str) -> str:
        """The file with the conditionals of a source: a Hamiltonian, or the rules of a tree."""
        if self.entry("sources", source)["kind"] == "tree":
            return self.paths.split_path(source, "test")
        return self.paths.hamiltonian_path(source)

    def spectrum_law(self, spectrum: str) -> list[str]:
        """The Hamiltonian whose true conditionals are measured beside the model's, if any."""
        kind, source = (self.entry("spectra", spectrum)[key] for key in ("kind", "source"))
        known = kind != "draws" and enumerable(self.checked.sources[source])
        return [self.paths.hamiltonian_path(source)] if known else []

    def spectrum_text(self, spectrum: str) -> list[str]:
        """The training split whose n-grams are counted, where no Hamiltonian says them."""
        kind, source = (self.entry("spectra", spectrum)[key] for key in ("kind", "source"))
        counted = kind == "n-grams" and not self.spectrum_law(spectrum)
        return [self.paths.split_path(source, "train")] if counted else []

    def words_of(self, spectrum: str) -> str | list:
        """The tokenizer that decodes the passage of a spectrum of a text; nothing without one."""
        entry = self.entry("spectra", spectrum)
        asked = entry.get("passage") is not None
        return self.of_text(entry["source"], "tokenizer.json") if asked else []
