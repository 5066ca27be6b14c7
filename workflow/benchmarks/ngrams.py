"""Trigrams of 50 million tokens: how long 2049 tokens take to be drawn, and the memory.

The tokens are words of a corpus, the rarest of which share the last number, in pieces that are
drawn again until there are enough; one of ten is replaced by any token, which makes as many
different trigrams as a text of that length has. The baseline draws each token from its whole law,
the probabilities of all |V| tokens by `KneserNey.probability`.
"""

import statistics
import sys

import numpy as np

from benchmarks.harness import memory, said, seconds, timed
from manybody.data.documents import Documents
from manybody.data.ngrams import KneserNey, NGrams

VOCABULARIES = (400, 50_304)
TOKENS = 50_000_000
DRAWN = 2049
REPEATS = 20
FEW = 20  # tokens of the baseline in a repeat


def measure(documents: str) -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads`. documents: the file of a corpus.

    Each |V| is a process of its own, so that its memory is its own.
    """
    rows = []
    for vocabulary in VOCABULARIES:
        for line in said(__name__, str(vocabulary), documents).splitlines():
            what, ours, baseline, unit = line.split("\t")
            ratio = f"{float(baseline) / float(ours):.3g}" if baseline else ""
            row = {"what": f"|V| = {vocabulary}: {what}", "ours": ours, "baseline": baseline}
            rows.append(row | {"ratio": ratio, "unit": unit, "threads": 1})
    return rows


def stream(documents: str, vocabulary: int, count: int) -> np.ndarray:
    words = np.array(" ".join(piece.text for piece in Documents(documents)).split())
    _, numbers, counts = np.unique(words, return_inverse=True, return_counts=True)
    ranks = np.argsort(np.argsort(-counts, kind="stable"))
    known = np.minimum(ranks[numbers], vocabulary - 1).astype(np.uint16)
    random = np.random.default_rng(0)
    lengths = random.integers(5, 30, size=count // 5)
    lengths = lengths[: np.searchsorted(lengths.cumsum(), count) + 1]
    starts = random.integers(len(known) - 30, size=len(lengths))
    shifts = np.repeat(starts - (lengths.cumsum() - lengths), lengths)[:count]
    made = known[np.arange(count) + shifts]
    replaced = random.random(count, dtype=np.float32) < 0.1
    made[replaced] = random.integers(vocabulary, size=replaced.sum())
    return made


def by_laws(model: KneserNey, tokens: np.ndarray, first: int, random: np.random.Generator) -> None:
    """Fills `tokens` (T,) from the place `first` on, each from the whole law of what follows."""
    windows = np.empty((model.vocabulary, model.order), np.int64)
    windows[:, -1] = np.arange(model.vocabulary)
    for place in range(first, len(tokens)):
        windows[:, :-1] = tokens[place - model.order + 1 : place]
        levels = model.probability(windows).cumsum()
        tokens[place] = np.searchsorted(levels, random.random() * levels[-1], side="right")


def main(vocabulary: str, documents: str) -> None:
    tokens = stream(documents, int(vocabulary), TOKENS)
    model, counted, _ = timed(NGrams, tokens, int(vocabulary), 3)
    random = np.random.default_rng(1)
    drawn = model.draw(1, DRAWN, random)[0]  # compiles
    ours, theirs = [], []
    for _ in range(REPEATS):
        ours.append(seconds(model.draw, 1, DRAWN, random))
        each = seconds(by_laws, model._models[-1], drawn[: 2 + FEW], 2, random) / FEW
        theirs.append(DRAWN * each)
    middles = [f"{1e3 * statistics.median(times):.3g}" for times in (ours, theirs)]
    print(f"{DRAWN} tokens drawn, median", *middles, "ms", sep="\t")
    print(f"{DRAWN} tokens drawn, longest", f"{1e3 * max(ours):.3g}", "", "ms", sep="\t")
    print(f"{TOKENS} tokens counted", f"{counted:.3g}", "", "s", sep="\t")
    print("memory at most, the text included", f"{memory():.3g}", "", "GiB", sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
