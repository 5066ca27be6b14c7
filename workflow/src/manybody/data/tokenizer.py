"""Byte-level BPE, trained on the training split only, and full-sentence blocks of L tokens.

The documents of a split are tokenised in order and cut into consecutive blocks of L, which may
start and end anywhere; a tail shorter than L is dropped. Between two documents stands a newline or,
where the config keeps it, the end-of-document marker as one ordinary token.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
from tokenizers import Encoding, Tokenizer, decoders, models, pre_tokenizers, trainers

from manybody.data import SourceError
from manybody.data.documents import MARKER, Documents, Piece
from manybody.io import sequences
from manybody.io.atomic import read_json, sha256, write_json, write_text
from manybody.io.progress import Progress

BATCH = 1000  # pieces that are tokenised together
BATCH_CHARACTERS = 2**21


def train(
    documents: str | Path, vocabulary: int, out: str | Path, end_of_document: str = "dropped"
) -> None:
    """Trains a byte-level BPE of |V| = `vocabulary` tokens on a documents file; writes its JSON.

    A file beside it names the documents. The alphabet is all 256 bytes, and the marker is token 0
    where it is "kept". `SourceError` if the text has too few pairs that occur twice for |V| tokens.
    """
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        special_tokens=[MARKER] if end_of_document == "kept" else [],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    text = Documents(documents)
    with Progress(text.characters, "characters", f"train a tokenizer on {documents}") as progress:
        batches = _batched(text, progress, end_of_document == "dropped")
        bpe.train_from_iterator((texts for texts, _ in batches), trainer)
    if bpe.get_vocab_size() != vocabulary:
        cut = text.about.get("deduplicated")
        repeated = f"; {cut['characters']} in all splits with repeated text" if cut else ""
        raise SourceError(
            f"found {vocabulary}, at which {documents} ({text.characters} characters{repeated}) "
            f"yields {bpe.get_vocab_size()} tokens; expected at least 256, the bytes (one more "
            "where the marker is kept), and no more than the text yields; change it, or give more "
            "text",
            "vocabulary",
        )
    write_json(_beside(out, "documents"), {"sha256": text.sha256, **text.about})
    save(bpe, out)


def save(bpe: Tokenizer, path: str | Path) -> None:
    """Writes a tokenizer, and beside it what its file is to hold, for `load` and for sha256sum -c:
    the library accepts most altered files."""
    text = bpe.to_str(pretty=True) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    write_text(_beside(path, "sha256"), f"{digest}  {Path(path).name}\n")
    write_text(path, text)


def encode_split(
    documents: str | Path,
    tokenizer: str | Path,
    length: int,
    out: str | Path,
    about: dict,
    blocks: int | None = None,
    end_of_document: str = "dropped",
    special: dict | None = None,
) -> None:
    """Tokenises a documents file into the `Sequences` artifact `out`: blocks of L = `length`.

    `blocks`: how many to keep, from the start; all if None. `special` is what
    `own_tokenizer.describe` says of a model's own tokenizer: its tokens stand before and after the
    text of each block, among the L. `SourceError` if there is no block at all, or fewer than asked.
    """
    bpe = load(tokenizer)
    text = Documents(documents)
    known = special or {"vocabulary": bpe.get_vocab_size(), "before": [], "after": []}
    vocabulary, before, after = (known[key] for key in ("vocabulary", "before", "after"))
    inner = length - len(before) - len(after)
    if inner < 2:
        raise SourceError(
            f"found {length}, of which the tokenizer's special tokens take {length - inner}; "
            f"expected at least 2 tokens of text; raise it",
            "length",
        )
    marker = None
    if end_of_document == "kept":
        marker = known.get("end", bpe.token_to_id(MARKER))
        if marker is None:
            raise SourceError(
                f"found kept, but the tokenizer has no token that ends a document, such as "
                f"{MARKER}; expected dropped, or another tokenizer; set it",
                "end_of_document",
            )
    if special:
        about = {**about, "special": special}
    trained_on = _beside(tokenizer, "documents")
    made = dict(
        by=f"{'own tokenizer' if special else 'byte-level BPE'}, full-sentence blocks",
        end_of_document=end_of_document,
        documents={"sha256": text.sha256, **text.about},
        tokenizer=sha256(tokenizer),
        trained_on=read_json(trained_on) if trained_on.is_file() else None,
        versions={name: version(name) for name in ("numpy", "pyarrow", "tokenizers")},
    )
    with sequences.writer(out, vocabulary, length, {**about, "made": made}) as writer:
        rest = np.empty(0, sequences.token_type(vocabulary))
        around = [np.array(tokens, rest.dtype) for tokens in (before, after)]
        name = text.about.get("text", documents)
        for tokens in _stream(text, bpe, marker, f"tokenise {name}", rest.dtype):
            rest = np.concatenate([rest, tokens])
            whole = len(rest) // inner
            if blocks is not None:
                whole = min(whole, blocks - writer.added)
            head, tail = (np.broadcast_to(part, (whole, len(part))) for part in around)
            writer.add(np.hstack([head, rest[: whole * inner].reshape(whole, inner), tail]))
            if writer.added == blocks:
                break
            rest = rest[whole * inner :]
        if writer.added < (blocks or 1):
            raise SourceError(
                f"found {length}, at which {name} ({text.characters} characters) makes "
                f"{writer.added} sequences; expected at least {blocks or 1}; take a smaller "
                f"length, {'fewer blocks, ' if blocks else ''}or give this split more text",
                "length",
            )


def _stream(
    text: Documents, bpe: Tokenizer, marker: int | None, label: str, kind: np.dtype
) -> Iterator[np.ndarray]:
    """The tokens of a split, in order, batch by batch, as 1-d arrays of type `kind`.

    `marker` is the token that ends a document, None where a newline does.
    """
    with Progress(text.characters, "characters", label) as progress, ThreadPoolExecutor(1) as ahead:
        # While a batch becomes an array, the library tokenises the next, without Python's lock.
        waiting = []
        for texts, ends in _batched(text, progress, marker is None):
            waiting.append((ahead.submit(encoded, bpe, texts), ends))
            if len(waiting) > 1:
                yield _array(*waiting.pop(0), marker, kind)
        for last in waiting:
            yield _array(*last, marker, kind)


def encoded(bpe: Tokenizer, texts: list[str]) -> list[Encoding]:
    """Tokens of each text, without special ones; `SourceError` if a part of one has no token."""
    try:
        return bpe.encode_batch_fast(texts, add_special_tokens=False)
    except Exception as error:  # the library raises Exception itself
        raise SourceError(
            f"found one that stops at a part of the text for which it has no token ({error}); "
            f"expected one with a token for what is unknown, by its name in tokenizer.json "
            f"(unk_token); save it with that, or take out of the text what it does not know",
            "tokenizer",
        ) from error


def decoder(path: str | Path) -> Callable[[list[int]], str]:
    """The text of some tokens of the tokenizer saved at `path`, special ones included."""
    return partial(load(path).decode, skip_special_tokens=False)


def load(path: str | Path, way: str = "delete it and run the same command again") -> Tokenizer:
    """The tokenizer saved at `path` (a tokenizer.json), which must be as it was written if the
    file `path`.sha256 beside it says what that was. `way` is what to do about one that is none."""
    record = _beside(path, "sha256")
    if record.is_file() and record.read_text(encoding="utf-8").split(" ")[0] != sha256(path):
        raise SourceError(f"{path} is not the file that was written ({record.name} says so): {way}")
    try:
        return Tokenizer.from_str(Path(path).read_text(encoding="utf-8"))
    except Exception as error:  # the library raises Exception itself
        raise SourceError(f"{path} is not a tokenizer ({error}): {way}") from error


def _beside(path: str | Path, ending: str) -> Path:
    """The file that says the `sha256` of a tokenizer, or what `documents` it was trained on."""
    return Path(path).with_name(f"{Path(path).name}.{ending}")


def _batched(
    pieces: Iterable[Piece], progress: Progress, newlines: bool
) -> Iterator[tuple[list[str], list[bool]]]:
    """The texts of at most `BATCH` pieces, and about `BATCH_CHARACTERS` characters, and which of
    them end a document. `newlines`: whether each of these gets one."""
    texts, ends, size = [], [], 0
    for text, last in pieces:
        texts.append(f"{text}\n" if last and newlines else text)
        ends.append(last)
        size += len(text)
        progress.update(len(text))
        if len(texts) == BATCH or size >= BATCH_CHARACTERS:
            yield texts, ends
            texts, ends, size = [], [], 0
    if texts:
        yield texts, ends


def _array(
    job: Future[list[Encoding]], ends: list[bool], marker: int | None, kind: np.dtype
) -> np.ndarray:
    tokens: list[int] = []
    for encoding, last in zip(job.result(), ends, strict=True):
        tokens += encoding.ids
        if last and marker is not None:
            tokens.append(marker)
    return np.array(tokens, kind)
