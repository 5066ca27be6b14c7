"""Base classes of the options of sources, and keys that several kinds share."""

from collections.abc import Iterator
from math import isclose
from typing import ClassVar, Literal

from manybody.io.options import Block, Count, Inside, Seed, Several, Text, key

HAMILTONIAN = "hamiltonian.safetensors"  # the file of a source with a Hamiltonian


class TensorFile(Block):
    """A tensor of the user's own."""

    file: Text = key("A safetensors file with a tensor of this name, symmetric for J and U.")


class SourceOptions(Block):
    """Answers of all kinds of sources; each one overrides what differs."""

    module: ClassVar[str]  # that makes the sequences
    made_by: ClassVar[str]  # the rule that makes them
    package_files: ClassVar[tuple[str, ...]] = ()  # beside the module, which reads them
    # The conditionals, if they are known: the source's file that holds them, and the module whose
    # `read_conditionals(path)` gives an object with `vocabulary` and `log_conditionals(tokens)`.
    conditionals: ClassVar[tuple[str, str] | None] = None
    beside: ClassVar[tuple[str, ...]] = ()  # files beside the sequences that rules make
    made_from: ClassVar[str | None] = None  # the source, if any, that this one has |V| and L of
    reads: ClassVar[tuple[str, ...]] = ()  # files of that source
    hamiltonian_order: ClassVar[int | None] = None  # of that in the file `HAMILTONIAN`, if any

    def given_files(self) -> Iterator[tuple[str, str, str]]:
        """The user's own files: key, path, and what it is expected to be."""
        for name in type(self).model_fields:
            tensor = getattr(self, name)
            if isinstance(tensor, TensorFile):
                yield f"{name}.file", tensor.file, f"a safetensors file with {name}"

    def available(self, split: str) -> int | None:
        """Sequences of a split, where the config says so."""
        return None


class Sequences(Block):
    """Numbers of sequences of each split."""

    train: Several = key("Of the training split.")
    validation: Several = key("Of the validation split.")
    test: Several = key("Of the test split.")


class Drawn(SourceOptions):
    """Keys of all sources of which any number of sequences can be drawn."""

    made_by = "draw_sequences"
    sequences: Sequences = key("Sequences of each split.")

    def available(self, split: str) -> int:
        return getattr(self.sequences, split)


class Sampled(Drawn):
    """Keys of samples of any Hamiltonian."""

    made_by = "sample_hamiltonian"
    beside = (HAMILTONIAN,)
    conditionals = (HAMILTONIAN, "manybody.data.hamiltonian")
    length: Several = key("Sites L, at least the order of the interaction.")
    vocabulary: int = key("Colours |V|.", ge=2, le=64)
    seed: Seed = key("Draws J or U, and the chains.")


class Vectors(Block):
    """The mean of P products of random vectors."""

    vectors: Count = key("Number of vectors P.")
    variables: Literal["signs", "bits"] = key("signs are +1 and -1, bits 1 and 0.")
    probability: Inside = key("Probability of +1 (signs) or 1 (bits).")


class Shares(Block):
    """Shares of the documents; they sum to 1."""

    train: Inside = key("Share of the training split.", examples=[0.8])
    validation: Inside = key("Share of the validation split.", examples=[0.1])
    test: Inside = key("Share of the test split.", examples=[0.1])

    def problems(self):
        total = self.train + self.validation + self.test
        if not isclose(total, 1, abs_tol=1e-9):
            found = f"found shares that sum to {total:g}"
            yield "", f"{found}; expected 1; change train, validation or test"
