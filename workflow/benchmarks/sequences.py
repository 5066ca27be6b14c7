"""Speed of tokenising a corpus into the `Sequences` artifact, against the library alone."""

import os
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import row, seconds
from manybody.data import documents, tokenizer
from manybody.data.documents import Documents, Piece
from manybody.io.sequences import Sequences

CHUNK = 1000  # documents that the baseline hands to the library at a time


def measure(
    megabytes: float = 64, vocabulary: int = 400, length: int = 16, seed: int = 0
) -> list[dict]:
    """Rates in MB of text a second, from documents on disk to sequences on disk.

    The baseline is `encode_batch_fast` on the same texts in memory, in chunks of 1000 documents,
    its results thrown away: neither reading, arrays, blocks nor writing. The text is made of
    `seed`: paragraphs of words with frequencies that fall as 1 / rank. Both sides take turns, an
    eighth of the text each time, so that a busy machine slows both alike.
    """
    parts = 8
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / f"{i}.parquet" for i in range(parts)]
        for i, path in enumerate(files):
            with documents.writer(path, {}) as writer:
                for text in paragraphs(megabytes / parts, seed + i):
                    writer.add(Piece(text, True))
        trained = folder / "tokenizer.json"
        tokenizer.train(files[0], vocabulary, trained)
        library = tokenizer.load(trained)
        size = seconds_ours = seconds_library = 0.0

        def alone(texts: list[str]) -> None:
            for i in range(0, len(texts), CHUNK):
                library.encode_batch_fast(texts[i : i + CHUNK])

        for path in files:
            texts = [f"{piece.text}\n" for piece in Documents(path)]
            size += Documents(path).bytes / 1e6
            seconds_library += seconds(alone, texts)
            out = folder / "sequences.parquet"
            seconds_ours += seconds(tokenizer.encode_split, path, trained, length, out, {})
        assert len(Sequences.open(out)) > 0
    ours, baseline = size / seconds_ours, size / seconds_library
    what = f"tokenise {megabytes:g} MB, |V| = {vocabulary}, L = {length}"
    # Both sides may use all processors.
    return [row(what, ours, baseline, "MB/s", len(os.sched_getaffinity(0)))]


def paragraphs(megabytes: float, seed: int) -> list[str]:
    """About `megabytes` of paragraphs of made-up words."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    frequencies = 1 / np.arange(1, len(letters) + 1)
    drawn = rng.choice(letters, size=(20_000, 12), p=frequencies / frequencies.sum())
    sizes = rng.integers(1, 12, len(drawn))
    words = ["".join(row[:size]) for row, size in zip(drawn, sizes, strict=True)]
    weights = 1 / np.arange(1, len(words) + 1)
    mean = (weights @ (sizes + 1)) / weights.sum()  # characters of a word and its space
    count = int(megabytes * 1e6 / mean)
    text = [words[i] for i in rng.choice(len(words), size=count, p=weights / weights.sum())]
    ends = np.cumsum(rng.integers(20, 200, count // 100))
    return [
        " ".join(run).capitalize() + "."
        for run in (text[i:j] for i, j in zip([0, *ends], [*ends, count], strict=True))
        if run
    ]
