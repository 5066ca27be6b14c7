"""The kinds of sources: the entries of the config's block `sources`, and their registry.

A kind is a module that makes its sequences (numpy, numba), and a class here: its keys in the
config, and what `SourceOptions` says. The sequences of one that is `Drawn` are drawn exactly by its
module's `make(source, name, given, out)`, which the rule `draw_sequences` calls. No stage's script
imports this module, so that a new kind changes the digest of no other.
"""

from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import ClassVar, Literal

from manybody.data import STATES
from manybody.data.options import (
    HAMILTONIAN,
    Drawn,
    Sampled,
    Shares,
    SourceOptions,
    TensorFile,
    Vectors,
)
from manybody.io.options import (
    Block,
    Condition,
    Count,
    Inside,
    NotNegative,
    Positive,
    Repository,
    Seed,
    Several,
    Text,
    different,
    given,
    key,
    nearest_of,
    number,
    other_than,
    refers,
)


class Blocks(Block):
    """Numbers of sequences of each split of a text that are kept.

    Shuffle the documents beforehand if their order means something: splits keep the order of the
    files, and the first of files by letter or date are no sample of all.
    """

    train: Count = key("The first so many of the training split; all by default.", None)
    validation: Count = key("The first so many of the validation split; all by default.", None)
    test: Count = key("The first so many of the test split; all by default.", None)


class HubTokenizer(Block):
    """A tokenizer in a repository of the Hugging Face hub."""

    hub: Repository = key("Its id, owner/name.")
    revision: Text = key("Branch, tag or commit.", "main")


class TextSource(SourceOptions):
    """A corpus cut into blocks of tokens."""

    module = "manybody.data.tokenizer"
    made_by = "encode_sequences"
    kind: Literal["text"]
    corpus: refers("corpora") = key("Name of the corpus.")
    vocabulary: int = key(
        "Number of tokens |V| of a byte-level BPE that is trained on the corpus; at least the 256 "
        "bytes (and the marker).",
        None,
        ge=256,
        le=65536,
    )
    tokenizer: Text | HubTokenizer = key(
        "A tokenizer that comes with a model, in place of vocabulary: a folder with "
        "tokenizer.json, or a repository of the hub. Its special tokens count among the L.",
        None,
    )
    length: Several = key("Tokens L in a sequence.")
    end_of_document: Literal["dropped", "kept"] = key(
        "The marker between documents is dropped (a newline stands there) or kept as one token."
    )
    blocks: Blocks = key("Sequences to keep of each split; all of them by default.", None)

    @property
    def beside(self) -> tuple[str, ...]:
        """With what the special tokens are of a tokenizer that comes with a model."""
        special = () if self.tokenizer is None else ("special.json",)
        return ("tokenizer.json", "overlap.json", "ngrams.json", *special)

    def given_files(self) -> Iterator[tuple[str, str, str]]:
        if isinstance(self.tokenizer, str):
            expected = "a tokenizer.json in a folder, as save_pretrained writes it"
            names = "tokenizer.json", "vocab.txt"
            there = (name for name in names if Path(self.tokenizer, name).expanduser().is_file())
            yield "tokenizer", f"{self.tokenizer}/{next(there, names[0])}", expected

    # At the least, it is the 256 bytes.
    conditions = (
        Condition(
            "vocabulary", other_than(256), {"end_of_document": "kept"}, "", "257 tokens or more"
        ),
    )

    def problems(self):
        if (self.vocabulary is None) == (self.tokenizer is None):
            found, fix = (
                ("neither", "give it") if self.tokenizer is None else ("both", "leave one out")
            )
            yield (
                "vocabulary",
                f"found {found} of vocabulary and tokenizer; expected one of them: the size of a "
                f"tokenizer to be trained, or one that comes with a model; {fix}",
            )

    def available(self, split: str) -> int | None:
        return getattr(self.blocks, split, None)


class ManyBodySource(Sampled):
    """Samples of a Hamiltonian with k-body interactions."""

    module = "manybody.data.many_body"
    kind: Literal["many-body"]
    order: int = key("Order k of the interaction, 2 to 4.", ge=2, le=4)
    couplings: nearest_of(Vectors, TensorFile) = key(
        "Interaction J of the sites, the mean of P products of random vectors, or a file's."
    )
    colours: Literal["potts"] | nearest_of(
        Vectors, TensorFile
    ) = key("Interaction U of the colours; potts is 1 where all colours are equal and 0 elsewhere.")
    logit_scale: Positive = key(
        "High-temperature scale S of the logits, which sets beta = S / sigma_h."
    )
    sweeps: Count = key("Gibbs sweeps of each chain from a uniform start.")

    @property
    def hamiltonian_order(self) -> int:
        return self.order

    def problems(self):
        if self.length < self.order:
            sites = f"{self.order} sites, the order of the interaction"
            yield self.refused("length", f"at least {sites}", "raise it")


class Gaussian(Block):
    """Gaussian numbers, made symmetric."""

    gaussian: Seed = key("Seed of the draw.")


class Temperature(Block):
    """An inverse temperature, or the mean Hamming distance of two samples that sets it.

    null takes back the other one, which an overlay does not leave out.
    """

    hamming: Inside | None = key("Share of sites at which two samples differ.", None)
    beta: Positive | None = key("Inverse temperature.", None)

    def problems(self):
        given = [name for name in ("hamming", "beta") if getattr(self, name) is not None]
        if len(given) != 1:
            yield (
                "",
                f"found {' and '.join(given) or 'neither hamming nor beta'}; expected one of "
                f"hamming and beta; give one, and null for the other where an overlay replaces "
                f"it: {{hamming: null, beta: 1.0}}",
            )


class PottsSource(Sampled):
    """Samples of a generalised Potts model."""

    module = "manybody.data.potts"
    package_files = ("potts_colours.json",)
    hamiltonian_order = 2
    kind: Literal["potts"]
    couplings: Literal["contact-map"] | TensorFile = key(
        "Interaction J of the sites; contact-map is positive with row sums 1."
    )
    colours: Literal["stored", "standard"] | nearest_of(Gaussian, TensorFile) = key(
        "Interaction U of the colours; the stored Gaussian draw of 20 colours, the identity "
        "(standard), another draw."
    )
    temperature: Temperature = key(
        "The inverse temperature itself, or the mean Hamming distance of two samples that sets "
        "it; null takes back the other one, which an overlay does not leave out."
    )
    sweeps: Several = key(
        "Gibbs sweeps of each chain from a uniform start, and of each chain that sets or tests "
        "the temperature."
    )

    def problems(self):
        most = 1 - 1 / self.vocabulary
        if (self.temperature.hamming or 0) >= most:
            yield self.refused(
                "temperature.hamming",
                f"less than 1 - 1/|V| = {most:.4g}, which is that of uniform colours (beta = 0)",
                "lower it",
            )


Format = Literal["fasta", "a3m", "stockholm", "clustal", "lines"]
Alphabet = Literal["protein", "rna", "dna"]


class AlignmentShares(Shares):
    """Shares of the sequences, which sum to 1, and what is held out together."""

    by: Literal["clusters", "random"] = key(
        "clusters: whole clusters of sequences similar at this identity are held out, so that none "
        "has a near copy among the training ones; random: they may.",
        "clusters",
    )


class AlignmentSource(SourceOptions):
    """A multiple alignment; its |V| and L are in the file."""

    module = "manybody.data.alignment"
    made_by = "read_alignment"
    beside = ("weights.parquet", "card.md")
    vocabulary: ClassVar[None] = None
    length: ClassVar[None] = None
    kind: Literal["alignment"]
    file: Text = key("The alignment, plain or gzip.")
    format: Format = key(
        "Its format; A2M is read as a3m, and lines has one sequence a line, as PSICOV and CCMpred."
    )
    alphabet: Alphabet = key("Letters; the gap is one more colour.")
    alphabet_confirmed: bool = key(
        "true: they are proteins, although their letters are those of DNA (A, C, G and T).", None
    )
    identity: number(gt=0, le=1) = key(
        "Share of equal columns, gaps included, from which two sequences count as similar."
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


class RandomRules(Block):
    """Rules of a tree that are drawn: each pair of children has one parent."""

    deviation: NotNegative = key("Standard deviation of the logits of a parent's pairs.")


class TreeSource(Drawn):
    """Leaves of a binary tree, exact: the whole tree, or one filtered at a level."""

    module = "manybody.data.tree"
    conditionals = ("test.parquet", "manybody.data.tree")
    kind: Literal["tree"]
    depth: int = key("Depth l; the L = 2^l leaves are the sequence.", ge=1, le=12)
    level: Seed = key(
        "Level k of the filter: the nodes at depth k are independent given the root; 0 is the "
        "whole tree."
    )
    vocabulary: int = key("Symbols q = |V|, of leaves and other nodes.", ge=2, le=16)
    rules: RandomRules = key(
        "Random probabilities of the pairs of children of each symbol (q, q, q)."
    )
    seed: Seed = key("Draws the rules, and the sequences of each level.")

    @property
    def length(self) -> int:
        return 2**self.depth

    def problems(self):
        if self.level > self.depth:
            leaves = f"the depth {self.depth}, at which the leaves are independent given the root"
            yield self.refused("level", f"at most {leaves}", "lower it")


class Bias(Block):
    """Bias of a term's sum of symbols: one of the two keys."""

    information: Positive = key(
        "What the term tells of each of its sites, in nats, where it shares none.", None
    )
    coupling: number(ge=-20, le=20) = key(
        "J, which adds J to log p where the sum is 0, and -J / (|V| - 1) elsewhere.", None
    )

    conditions = (
        Condition("coupling", None, {"information": given}),
        Condition("coupling", given, {"information": None}, "", "one of the two"),
    )


class Term(Bias):
    """A term, a set of sites; the number of them is its order."""

    sites: different(Seed, 2) = key("Its sites, from 0 on.")


class TermGroup(Bias):
    """Terms of one order, each on the next sites that are free."""

    order: Several = key("Sites of each.")
    count: Count = key("Number of terms.")


class CodeSource(Drawn):
    """Symbols of which some sums, modulo their number, are biased: known orders, exact at any L."""

    module = "manybody.data.code"
    conditionals = ("test.parquet", "manybody.data.code")
    kind: Literal["code"]
    length: Several = key("Sites L.")
    vocabulary: int = key(
        "Symbols q = |V|, a prime; of 2, the sums are products of spins.", 2, ge=2, le=61
    )
    terms: list[Term] = key(
        "Terms by their sites. A set of sites of two symbols and the same with one site more are "
        "nested: a field keeps that site's mean at 0.",
        None,
    )
    groups: list[TermGroup] = key("More terms, on disjoint sites after those of `terms`.", None)
    keep: different(Several) = key("Orders of the terms that are left; all by default.", None)
    scale: Positive = key("Factor of all couplings.", 1.0)
    seed: Seed = key("Draws the sequences.")

    def problems(self):
        terms, groups = self.terms or [], self.groups or []
        if not terms and not groups:
            yield "terms", "missing, as groups are; expected one of them; give terms or groups"
        most = max((site for term in terms for site in term.sites), default=-1)
        needed = 1 + most + sum(group.order * group.count for group in groups)
        if needed > self.length:
            yield self.refused("length", f"at least {needed}, the sites of the terms", "raise it")
        if any(self.vocabulary % part == 0 for part in range(2, self.vocabulary)):
            yield self.refused("vocabulary", "a prime, as sums are modulo it", "change it")
        highest = max((bias.information or 0 for bias in [*terms, *groups]), default=0)
        most = log(self.vocabulary)
        if highest >= most:
            yield (
                "",
                f"found a term of information {highest}; expected less than ln |V| = {most:.4g}; "
                "lower it",
            )
        orders = {len(term.sites) for term in terms} | {group.order for group in groups}
        if not orders.issuperset(self.keep or []):
            yield (
                "keep",
                f"found {self.keep}; expected some of {sorted(orders)}, orders of terms; change it",
            )


class CutSource(Drawn):
    """A planted Hamiltonian without the interactions above an order, exact, by enumeration."""

    module = "manybody.data.cut"
    reads = (HAMILTONIAN,)
    kind: Literal["cut"]
    source: refers(
        "sources", wanted="with a Hamiltonian", fits=lambda source, _: source.hamiltonian_order
    ) = key("Source with the Hamiltonian.")
    at: Count = key("Largest order of interaction that is left.")
    kept: Literal["interactions", "marginals"] = key(
        "interactions: the terms of that order and below, in the zero-sum gauge; marginals: the "
        "distribution of that order with the marginals of the planted one on so many sites."
    )
    seed: Seed = key("Draws the sequences.")

    @property
    def made_from(self) -> str:
        return self.source

    def misfits(self, config):
        planted = config.sources[self.source]
        if self.at >= planted.hamiltonian_order:
            least = f"less than the {planted.hamiltonian_order} of source {self.source}"
            yield self.refused("at", f"{least}, above which there is nothing to cut", "lower it")
        if planted.vocabulary**planted.length > STATES:
            yield self.refused(
                "source",
                f"at most {STATES} states, as all are enumerated",
                "take one of fewer sites or colours",
                f" with |V|^L = {planted.vocabulary}^{planted.length}",
            )


KINDS: dict[str, type[SourceOptions]] = {
    "text": TextSource,
    "many-body": ManyBodySource,
    "potts": PottsSource,
    "alignment": AlignmentSource,
    "tree": TreeSource,
    "code": CodeSource,
    "cut": CutSource,
}
