"""Trigrams of many tokens: how long they take to count and to draw from, and their memory.

    PYTHONPATH=workflow/src python workflow/benchmarks/ngrams.py VOCABULARY TEXT ...

The tokens are words of the texts, the rarest of which share the last number, in pieces that are
drawn again until there are enough; one of ten is replaced by any token, which makes as many
different trigrams as a text of that length has.
"""

import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from manybody.sources.ngrams import NGrams

TOKENS = 50_000_000
DRAWN = 2049
REPEATS = 20


def stream(paths: list[str], vocabulary: int) -> np.ndarray:
    words = np.array(" ".join(Path(path).read_text("utf-8") for path in paths).split())
    _, numbers, counts = np.unique(words, return_inverse=True, return_counts=True)
    ranks = np.argsort(np.argsort(-counts, kind="stable"))
    known = np.minimum(ranks[numbers], vocabulary - 1).astype(np.uint16)
    random = np.random.default_rng(0)
    lengths = random.integers(5, 30, size=TOKENS // 5)
    lengths = lengths[: np.searchsorted(lengths.cumsum(), TOKENS) + 1]
    starts = random.integers(len(known) - 30, size=len(lengths))
    shifts = np.repeat(starts - (lengths.cumsum() - lengths), lengths)[:TOKENS]
    made = known[np.arange(TOKENS) + shifts]
    replaced = random.random(TOKENS, dtype=np.float32) < 0.1
    made[replaced] = random.integers(vocabulary, size=replaced.sum())
    return made


def main(vocabulary: str, *paths: str) -> None:
    tokens = stream(list(paths), int(vocabulary))
    start = time.perf_counter()
    model = NGrams(tokens, int(vocabulary), 3)
    counted, random = time.perf_counter() - start, np.random.default_rng(1)
    print(f"|V| = {vocabulary}: {len(tokens):,} tokens counted in {counted:.1f} s")
    model.draw(1, DRAWN, random)  # compiles
    for rows, length in ((1, DRAWN), (64, 128)):
        seconds = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            model.draw(rows, length, random)
            seconds.append(time.perf_counter() - start)
        middle, worst = statistics.median(seconds), max(seconds)
        print(f"{rows} x {length} tokens: median {1e3 * middle:.2f} ms, worst {1e3 * worst:.2f} ms")
    trigrams = len(model._models[-1]._levels[-1].arrays[0])
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{trigrams:,} different trigrams; at most {gigabytes:.2f} GiB, the text included")


if __name__ == "__main__":
    main(*sys.argv[1:])
