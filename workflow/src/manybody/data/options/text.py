from collections.abc import Iterator
from typing import Literal

from manybody.data.options import SourceOptions
from manybody.io.options import Block, Count, Repository, Several, Text, key, refers


class Blocks(Block):
    """Numbers of sequences of each split of a text that are kept."""

    train: Count = key("The first so many of the training split; all by default.", None)
    validation: Count = key("The first so many of the validation split; all by default.", None)
    test: Count = key("The first so many of the test split; all by default.", None)


class HubTokenizer(Block):
    """A tokenizer in a repository of the Hugging Face hub."""

    hub: Repository = key("Its id, owner/name.")
    revision: Text = key("Branch, tag or commit.", "main")


class Options(SourceOptions):
    """A corpus cut into blocks of tokens."""

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
            yield "tokenizer", f"{self.tokenizer}/tokenizer.json", expected

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
        return getattr(self.blocks, split, None)
