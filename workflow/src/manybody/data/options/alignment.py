from collections.abc import Iterator
from typing import ClassVar, Literal

from manybody.data.options import Shares, SourceOptions
from manybody.io.options import Seed, Text, key, number


class AlignmentShares(Shares):
    """Shares of the sequences, which sum to 1, and what is held out together."""

    by: Literal["clusters", "random"] = key(
        "clusters: whole clusters of sequences alike at this identity are held out, so that none "
        "has a near copy among the training ones; random: they may.",
        "clusters",
    )


class Options(SourceOptions):
    """A multiple alignment; its |V| and L are in the file."""

    made_by = "read_alignment"
    beside = ("weights.parquet",)
    vocabulary: ClassVar[None] = None
    length: ClassVar[None] = None
    kind: Literal["alignment"]
    file: Text = key("The alignment, plain or gzip.")
    format: Literal["fasta", "a3m", "stockholm"] = key("Its format.")
    alphabet: Literal["protein", "rna", "dna"] = key("Letters; the gap is one more colour.")
    identity: number(gt=0, le=1) = key(
        "Share of equal columns, gaps included, from which two sequences count as alike."
    )
    split: AlignmentShares = key(
        "Shares of the sequences, which sum to 1, and what is held out together."
    )
    seed: Seed = key("Cut into splits.")
    reference: Text = key(
        "Name of the record whose residues name the columns, and that the sequence of a structure "
        "is aligned with; the first record by default.",
        None,
    )

    def given_files(self) -> Iterator[tuple[str, str, str]]:
        yield "file", self.file, "an alignment, plain or gzip"
