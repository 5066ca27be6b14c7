"""The block `sources`: what yields sequences."""

from typing import Annotated, Literal

from pydantic import Field

from manybody.config.corpora import Shares
from manybody.data import STATES
from manybody.io.options import (
    Block,
    Count,
    Inside,
    NotNegative,
    Positive,
    Repository,
    Seed,
    Several,
    Text,
    key,
    nearest_of,
    number,
    refers,
)

PLANTED = ("many-body", "potts")  # kinds with a Hamiltonian


class TensorFile(Block):
    """A tensor of the user's own."""

    file: Text = key("A safetensors file with a tensor of this name, symmetric for J and U.")


class Vectors(Block):
    """The mean of P products of random vectors."""

    vectors: Count = key("Number of vectors P.")
    variables: Literal["signs", "bits"] = key("signs are +1 and -1, bits 1 and 0.")
    probability: Inside = key("Probability of +1 (signs) or 1 (bits).")


class Gaussian(Block):
    """Gaussian numbers, made symmetric."""

    gaussian: Seed = key("Seed of the draw.")


class Blocks(Block):
    """How many sequences of each split of a text are kept."""

    train: Count = key("The first so many of the training split; all by default.", None)
    validation: Count = key("The first so many of the validation split; all by default.", None)
    test: Count = key("The first so many of the test split; all by default.", None)


class Sequences(Block):
    """How many sequences each split has."""

    train: Several = key("Of the training split.")
    validation: Several = key("Of the validation split.")
    test: Several = key("Of the test split.")


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


class HubTokenizer(Block):
    """A tokenizer in a repository of the Hugging Face hub."""

    hub: Repository = key("Its id, owner/name.")
    revision: Text = key("Branch, tag or commit.", "main")


class TextSource(Block):
    """A corpus cut into blocks of tokens."""

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

    def problems(self):
        if (self.vocabulary is None) == (self.tokenizer is None):
            found = "neither" if self.vocabulary is None else "both"
            yield (
                "vocabulary",
                f"found {found} of vocabulary and tokenizer; expected one of them: the size of a "
                f"tokenizer to be trained, or one that comes with a model; give it",
            )
        if self.end_of_document == "kept" and (self.vocabulary or 257) < 257:
            yield (
                "vocabulary",
                f"found {self.vocabulary} with end_of_document kept; expected at least 257, the "
                f"bytes and the marker; raise it",
            )

    def available(self, split: str) -> int | None:
        """Sequences of a split, where the config says so."""
        return getattr(self.blocks, split, None)


class Drawn(Block):
    """What all sources have of which any number of sequences can be drawn."""

    sequences: Sequences = key("Sequences of each split.")

    def available(self, split: str) -> int:
        return getattr(self.sequences, split)


class Sampled(Drawn):
    """What samples of any Hamiltonian have."""

    length: Several = key("Sites L, at least the order of the interaction.")
    vocabulary: int = key("Colours |V|.", ge=2, le=64)
    seed: Seed = key("Draws J, its signs or U, and the chains.")


class ManyBodySource(Sampled):
    """Samples of a Hamiltonian with k-body interactions."""

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

    def problems(self):
        if self.length < self.order:
            yield (
                "length",
                f"found {self.length}; expected at least {self.order} sites, the order of the "
                f"interaction; take at least {self.order}",
            )


class PottsSource(Sampled):
    """Samples of a generalised Potts model."""

    kind: Literal["potts"]
    couplings: Literal["contact-map", "signs"] | TensorFile = key(
        "Interaction J of the sites; contact-map is positive with row sums 1; signs is the same "
        "with random signs, which is glassy and refused at low temperatures."
    )
    colours: Literal["stored", "standard"] | nearest_of(Gaussian, TensorFile) = key(
        "Interaction U of the colours; the stored Gaussian draw of 20 colours, the identity "
        "(standard), another draw."
    )
    fields: TensorFile = key(
        "Fields of each site and colour, (L, |V|); none where nothing is said.", None
    )
    temperature: Temperature = key(
        "The inverse temperature itself, or the mean Hamming distance of two samples that sets "
        "it; null takes back the other one, which an overlay does not leave out."
    )
    sweeps: Several = key(
        "Gibbs sweeps of each chain from a uniform start, and of each chain that sets or tests "
        "the temperature."
    )

    @property
    def order(self) -> int:
        return 2

    def problems(self):
        hamming, most = self.temperature.hamming, 1 - 1 / self.vocabulary
        if hamming is not None and hamming >= most:
            yield (
                "temperature.hamming",
                f"found {hamming:g}; expected less than 1 - 1/|V| = {most:.4g}, which is that of "
                f"uniform colours (beta = 0); lower it",
            )


class RandomRules(Block):
    """Rules of a tree that are drawn: each pair of children has one parent."""

    deviation: NotNegative = key("Standard deviation of the logits of a parent's pairs.")


class TreeSource(Drawn):
    """Leaves of a binary tree, exact: the whole tree, or one filtered at a level."""

    kind: Literal["tree"]
    depth: int = key("Depth l; the L = 2^l leaves are the sequence.", ge=1, le=12)
    level: Seed = key(
        "Level k of the filter: the nodes at depth k are independent given the root; 0 is the "
        "whole tree."
    )
    vocabulary: int = key("Symbols q = |V|, of leaves and other nodes.", ge=2, le=16)
    rules: nearest_of(RandomRules, TensorFile) = key(
        "Probabilities of the pairs of children of each symbol (q, q, q), random or of a file."
    )
    seed: Seed = key("Draws the rules, and the sequences of each level.")

    @property
    def length(self) -> int:
        return 2**self.depth

    def problems(self):
        if self.level > self.depth:
            yield (
                "level",
                f"found {self.level}; expected at most the depth {self.depth}, at which the "
                f"leaves are independent given the root; lower it",
            )


class CutSource(Drawn):
    """A planted Hamiltonian without the interactions above an order, exact, by enumeration."""

    kind: Literal["cut"]
    source: refers("sources", *PLANTED) = key("Source with the Hamiltonian.")
    at: Count = key("Largest order of interaction that is left.")
    kept: Literal["interactions", "marginals"] = key(
        "interactions: the terms of that order and below, in the zero-sum gauge; marginals: the "
        "law of that order with the marginals of the planted one on so many sites."
    )
    seed: Seed = key("Draws the sequences.")

    def misfits(self, path, config):
        planted = config.sources[self.source]
        if self.at >= planted.order:
            yield (
                f"{path}.at: found {self.at}; expected less than the {planted.order} of source "
                f"{self.source}, above which there is nothing to cut; lower it"
            )
        if planted.vocabulary**planted.length > STATES:
            yield (
                f"{path}.source: found {self.source} with |V|^L = "
                f"{planted.vocabulary}^{planted.length}; expected at most {STATES} states, as all "
                f"are enumerated; take one of fewer sites or colours"
            )


class NGramSource(Drawn):
    """A clone of known order without training: n-grams of another source, drawn exactly."""

    kind: Literal["n-gram-clone"]
    source: refers("sources", "text", *PLANTED, "tree") = key(
        "Source whose training sequences n-grams are counted in."
    )
    order: int = key("Order n: a token depends on the n - 1 before it.", ge=1, le=8)
    smoothing: Literal["kneser-ney", "maximum-entropy"] = key(
        "kneser-ney is interpolated and gives every sequence some probability; maximum-entropy is "
        "the law of largest entropy with the frequencies of the training blocks' n-grams and of "
        "their beginnings."
    )
    seed: Seed = key("Draws the sequences.")

    def misfits(self, path, config):
        text = config.sources[self.source]
        if self.order > text.length:
            yield (
                f"{path}.order: found {self.order}; expected at most the L = {text.length} of "
                f"source {self.source}, since n-grams are runs within a block; lower it"
            )
        elif (text.vocabulary or 1) ** self.order >= 2**63:
            yield (
                f"{path}.order: found {self.order} with the |V| = {text.vocabulary} of source "
                f"{self.source}; expected |V|^n below 2^63, as n-grams are numbered; lower it"
            )


class NoisySource(Drawn):
    """A text in which some tokens are noise, beside which clones are read."""

    kind: Literal["noisy"]
    source: refers("sources", "text") = key("Source whose sequences they are, the first of each.")
    share: Inside = key(
        "Share of the tokens that are replaced, by draws of the training text's unigram law."
    )
    seed: Seed = key("Draws which, and by what.")


class AlignmentShares(Shares):
    """Shares of the sequences, which sum to 1, and what is held out together."""

    by: Literal["clusters", "random"] = key(
        "clusters: whole clusters of sequences alike at this identity are held out, so that none "
        "has a near copy among the training ones; random: they may.",
        "clusters",
    )


class AlignmentSource(Block):
    """A multiple alignment; its |V| and L are in the file."""

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

    def available(self, split: str) -> None:
        """The file says how many there are."""


Source = Annotated[
    TextSource
    | ManyBodySource
    | PottsSource
    | AlignmentSource
    | TreeSource
    | CutSource
    | NGramSource
    | NoisySource,
    Field(discriminator="kind"),
]


def sized(name: str, config) -> Source:
    """The source that says |V| and L of the one called `name`: its own, or that it is made from."""
    source = config.sources[name]
    made = isinstance(source, CutSource | NGramSource | NoisySource)
    return config.sources[source.source] if made else source
