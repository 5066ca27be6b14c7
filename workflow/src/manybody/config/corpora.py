"""The blocks `corpora`, text, where it comes from and how it is split, and `sources`."""

import os
from functools import reduce
from operator import or_
from typing import Annotated, Literal

from pydantic import Field

from manybody.data import SHARES, SPLITS
from manybody.data.kinds import KINDS
from manybody.data.options import Shares, SourceOptions
from manybody.io.options import Block, Commit, Condition, Digest, Seed, Text, key, other_than

Split = Literal["train", "validation", "test"]
PUBLISHED = {"tinystories": ("train", "validation"), "wikitext103": SPLITS}


class Docstrings(Block):
    """English prose in the docstrings of installed packages."""

    kind: Literal["pydocs"]
    split: Shares = key("Shares of the documents; they sum to 1.")
    seed: Seed = key("Order of the paragraphs and cut into splits.", 0, lt=10**38)
    deduplicate: bool = key(
        "Whether repeated lines are kept once and near-duplicate documents in one split.", True
    )
    packages: dict[str, Digest] = key(
        "Installed distributions whose docstrings are read, each with the sha256 of its prose."
    )
    sha256: Digest = key("Digest of the whole corpus.")


class Published(Block):
    """A published data set, downloaded or in local files."""

    kind: Literal["tinystories", "wikitext103"]
    split: Literal["published"] | Shares = key("published, or shares of the training documents.")
    seed: Seed = key("Cut into splits.", 0, lt=10**38)
    deduplicate: bool = key(
        "Whether repeated lines are kept once and near-duplicate documents in one split; not with "
        "a published split.",
        False,
    )
    revision: Commit = key("Commit of the data set's repository.")
    files: dict[str, Annotated[list[str], Field(min_length=1)]] = key(
        "Local files of each published part, instead of a download.", None
    )
    sha256: dict[str, Digest] = key(
        "Digest of each file by its name. What is not known here is recorded at the first "
        "download.",
        None,
    )

    conditions = (
        Condition(
            "deduplicate", False, {"split": "published"}, "which keeps its documents", "false"
        ),
    )

    def problems(self):
        given, published = self.files, self.split == "published"
        wanted = PUBLISHED[self.kind] if published else ()
        if given is not None and not (given and set(wanted) <= set(given) <= set(SPLITS)):
            yield (
                "files",
                f"found the parts {', '.join(self.files) or 'none'}; expected "
                f"{', '.join(wanted or SPLITS)}, as they are published; name the files of each",
            )
        listed = [
            os.path.realpath(os.path.expanduser(name))
            for names in (given or {}).values()
            for name in names
        ]
        if len(listed) > len({*listed}):
            yield (
                "files",
                f"found {max(listed, key=listed.count)} again; expected each file once, "
                f"in one part, so that no model is tested on what it was trained on; take it away",
            )


class OwnFiles(Block):
    """Text, Parquet or Arrow files of one's own."""

    kind: Literal["file"]
    split: Shares = key("Shares of the documents; they sum to 1.", SHARES)
    seed: Seed = key("Cut into splits.", 0, lt=10**38)
    deduplicate: bool = key(
        "Whether repeated lines are kept once and near-duplicate documents in one split.", True
    )
    files: list[str] = key("Text, Parquet and Arrow files, and folders of them.", min_length=1)
    boundary: Literal["blank-line", "line", "marker", "file", "heading"] = key(
        "What separates documents in a text file: marker is a line of its own, heading a line "
        "` = Title = ` as in WikiText.",
        "blank-line",
    )
    marker: Text = key(
        "The line that separates documents where boundary is marker; <|endoftext|> by default.",
        None,
    )
    column: Text = key(
        "Column of a Parquet or Arrow file that holds a document a row; text by default.", None
    )

    conditions = (
        Condition("marker", None, {"boundary": other_than("marker")}, expected="boundary marker"),
    )


Corpus = Annotated[Docstrings | Published | OwnFiles, Field(discriminator="kind")]
Source = Annotated[reduce(or_, KINDS.values()), Field(discriminator="kind")]


def sized(name: str, config) -> SourceOptions:
    """The source that says |V| and L of the one called `name`: its own, or that it is made from."""
    source = config.sources[name]
    return config.sources[source.made_from] if source.made_from else source
