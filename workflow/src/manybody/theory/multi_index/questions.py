"""Short texts and their classes, as tokens: questions of TREC, sentences of docstrings.

A line in the TREC label format is `COARSE:fine question`, such as `DESC:manner How did serfdom
develop ?`, in latin-1. Its class is the coarse label, one of six, that of a docstring's sentence
the package. Texts become sequences of one length, cut or padded.
"""

import re
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tokenizers import BertWordPieceTokenizer, Tokenizer

from manybody.data import documents, pydocs
from manybody.data.tokenizer import MARKER, load, train
from manybody.io.atomic import sha256
from manybody.io.refusal import Refusal

CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
PADDING = "[PAD]"
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")  # between two
LEAST_WORDS = 4  # of a sentence


@dataclass(frozen=True)
class Questions:
    """texts: N questions; labels (N,): their classes, as places in `classes`."""

    texts: list[str]
    labels: np.ndarray
    classes: tuple[str, ...] = CLASSES


@dataclass(frozen=True)
class Tokens:
    """ids (N, length), padded; about: what made them and |V|, a JSON document."""

    ids: np.ndarray
    about: dict


def read(path: str | Path) -> Questions:
    """The questions of a file in the label format; empty lines are skipped. Raises `Refusal` naming
    file, line and what was found: a label that is none of the six, a line or file without any."""
    path = Path(path).expanduser()
    try:
        lines = path.read_text(encoding="latin-1").split("\n")
    except OSError as error:
        raise Refusal(
            f"{path} cannot be read ({error.strerror}); expected a file of lines "
            f"`COARSE:fine question`, or null for none",
            "questions",
        ) from error
    texts, labels = [], []
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line:
            continue
        label, _, text = line.partition(" ")
        coarse, _, fine = label.partition(":")
        place = f"{path}, line {number}"
        if coarse not in CLASSES:
            raise Refusal(
                f"{place}: found the label {label!r}, expected one of {', '.join(CLASSES)}, a "
                f"colon and a fine label; correct the line or take it out",
                "questions",
            )
        if not (fine and text):
            raise Refusal(
                f"{place}: found {line!r}, expected `{coarse}:fine question`; correct the "
                f"line or take it out",
                "questions",
            )
        texts.append(text.strip())
        labels.append(CLASSES.index(coarse))
    if not texts:
        raise Refusal(f"{path} has no question, expected lines `COARSE:fine question`", "questions")
    return Questions(texts, np.array(labels))


def of_packages(packages: dict[str, str | None], of_each: int, seed: int) -> Questions:
    """`of_each` sentences, not shared, from the docstrings of each of `packages`, the classes, with
    the sha256 of its prose, or None (`sources.pydocs`). Raises `SourceError` for other prose,
    `Refusal` for too few."""
    found = {name: _sentences(name, expected) for name, expected in packages.items()}
    times = Counter(chain.from_iterable(found.values()))
    texts, labels = [], []
    for label, (name, sentences) in enumerate(found.items()):
        own = sorted(one for one in sentences if times[one] == 1)
        if len(own) < of_each:
            raise Refusal(
                f"found {of_each}; expected at most {len(own)}, as many as {name} has; lower it",
                "questions.of_each",
            )
        stream = np.random.default_rng([seed, label])
        texts += [own[place] for place in stream.choice(len(own), of_each, replace=False)]
        labels += [label] * of_each
    return Questions(texts, np.array(labels), tuple(packages))


def _sentences(package: str, expected: str | None) -> set[str]:
    pieces = chain.from_iterable(map(SENTENCE.split, pydocs.modules({package: expected})))
    return {piece for piece in pieces if len(piece.split()) >= LEAST_WORDS}


def tokenise(
    texts: list[str], length: int, tokenizer: str | Path | None, vocabulary: int | None
) -> Tokens:
    """The questions as sequences of `length` tokens.

    tokenizer: a `vocab.txt` of BERT, for the uncased WordPiece, or a `tokenizer.json`; either must
    know `[PAD]`, and adds the marks of start and end that it has. Without one, the pipeline's
    byte-level BPE of `vocabulary` tokens is trained on the lower-cased questions; its
    end-of-document marker ends a question, and is the padding too.

    Raises `Refusal` naming the key where a file is no tokenizer, or |V| is out of reach.
    """
    if tokenizer is None:
        return _trained(texts, length, vocabulary)
    path = Path(tokenizer).expanduser()
    opened = _opened(path)
    padding = opened.token_to_id(PADDING)
    if padding is None:
        raise Refusal(
            f"{path} has no token {PADDING}, expected a tokenizer of BERT's kind; give "
            f"another file, or null to train one on the questions",
            "tokenizer",
        )
    opened.enable_padding(pad_id=padding, pad_token=PADDING, length=length)
    opened.enable_truncation(length)
    about = {"from": "file", "file": path.name, "sha256": sha256(path)}
    return _tokens(opened.encode_batch(texts), opened.get_vocab_size(), about)


def _opened(path: Path) -> Tokenizer | BertWordPieceTokenizer:
    if path.suffix not in (".txt", ".json") or not path.is_file():
        raise Refusal(
            f"found {path}, expected a file vocab.txt or tokenizer.json, or null to "
            f"train one on the questions",
            "tokenizer",
        )
    try:
        if path.suffix == ".txt":
            return BertWordPieceTokenizer(str(path), lowercase=True)
        return load(path)
    except Exception as error:  # the library raises plain Exception
        kind = "vocab.txt of BERT" if path.suffix == ".txt" else "tokenizer.json"
        raise Refusal(
            f"{path} cannot be read ({error}); expected a {kind}, or null to train one "
            f"on the questions",
            "tokenizer",
        ) from error


def _trained(texts: list[str], length: int, vocabulary: int) -> Tokens:
    texts = [text.lower() for text in texts]  # as the uncased WordPiece does
    with TemporaryDirectory() as folder:
        stored, made = Path(folder) / "questions.parquet", Path(folder) / "tokenizer.json"
        with documents.writer(stored, {}) as writer:
            for text in texts:
                cutter = documents.Cutter()
                for piece in [*cutter.add(text), *cutter.end()]:
                    writer.add(piece)
        train(stored, vocabulary, made, end_of_document="kept")
        bpe = load(made)
        digest = sha256(made)
    marker = bpe.token_to_id(MARKER)
    # One marker at least ends a question.
    bpe.enable_truncation(length - 1)
    bpe.enable_padding(pad_id=marker, pad_token=MARKER, length=length)
    encoded = bpe.encode_batch(texts, add_special_tokens=False)
    about = {"from": "questions", "by": "byte-level BPE, lower case", "sha256": digest}
    return _tokens(encoded, vocabulary, about)


def _tokens(encoded: list, vocabulary: int, about: dict) -> Tokens:
    ids = np.array([encoding.ids for encoding in encoded])
    versions = {"tokenizers": version("tokenizers")}
    return Tokens(ids, {**about, "vocabulary": vocabulary, "versions": versions})
