"""Inspection of a text: counts, text that repeats, and how far n-grams predict it."""

from collections import Counter
from pathlib import Path

import numpy as np

from manybody.data import duplicates, overlap
from manybody.data.documents import MARKER, Documents
from manybody.data.ngrams import LOOKUPS, NGrams
from manybody.data.text import HEADING
from manybody.data.tokenizer import load
from manybody.io.sequences import Sequences

CHARACTERS = 2 * 10**7  # of a split that words are counted in
STREAM = 10**7  # training tokens that n-grams are counted in
ORDERS = 1, 2, 3


def words(paths: dict[str, str]) -> dict[str, dict]:
    """Counts of each split: `documents`, `characters`, `words`, `types` (different words).

    Words are counted in lower case in the first `CHARACTERS` of a split. `new`: the share of them
    that training does not have. `markers` and `headings`: lines that look like boundaries of
    documents and were not taken for them.
    """
    found, known = {}, None
    for split, path in paths.items():
        text, counts, seen = Documents(path), Counter(), 0
        markers = headings = 0
        for piece in text:
            counts.update(duplicates.WORD.findall(piece.text.lower()))
            lines = piece.text.splitlines()
            markers += sum(line.strip() == MARKER for line in lines)
            headings += sum(bool(HEADING.fullmatch(f"{line.rstrip()} \n")) for line in lines)
            seen += len(piece.text)
            if seen >= CHARACTERS:
                break
        known = counts if known is None else known
        total = counts.total()
        new = sum(count for word, count in counts.items() if word not in known)
        found[split] = {
            "documents": text.documents,
            "characters": text.characters,
            "words": total,
            "types": len(counts),
            "new": new / max(total, 1),
            "markers": markers,
            "headings": headings,
        }
    return found


def tokens(train: Sequences, tokenizer: str | Path) -> dict:
    """`rare`: how often a tenth of the tokens that training has is seen there at most; `unseen`:
    how many of the |V| tokens it does not have; `fragments`: the share of its tokens that are some
    bytes of a character without a token of its own."""
    counts = np.bincount(train[: STREAM // train.length].reshape(-1), minlength=train.vocabulary)
    each = load(tokenizer).decode_batch([[n] for n in range(len(counts))], False)
    broken = ["\ufffd" in text for text in each]
    return {
        "rare": int(np.quantile(counts[counts > 0], 0.1)),
        "unseen": int((counts == 0).sum()),
        "fragments": float(counts[broken].sum() / counts.sum()),
    }


def ngram_losses(train: Sequences, test: Sequences) -> list[dict]:
    """Losses of n-grams of `ORDERS` on test sequences, in nats per token.

    `next`: of each token but the first, given those before it in its sequence, which is what a
    causal model of L tokens is tested on; `masked`: of each token given all others, as a masked
    model is; `error`: of `masked`, one standard error over the sequences, of which `LOOKUPS` sets
    the number. They are counted in the first `STREAM` training tokens.
    """
    text = train[: max(1, STREAM // train.length)]
    rows = test[: max(2, int(LOOKUPS / (test.length * test.vocabulary * max(ORDERS))))]
    found = []
    for order in ORDERS:
        model = NGrams(text, train.vocabulary, order)
        after = -model.next_token(test[:10000])[:, 1:].mean()
        masked = -model.masked(rows).mean(axis=1)
        error = masked.std(ddof=1) / len(masked) ** 0.5
        losses = dict(next=float(after), masked=float(masked.mean()), error=float(error))
        found.append({"order": order, **losses, "sequences": len(masked)})
    return found


def verbatim(train: Sequences, test: Sequences, length: int) -> float:
    """Share of the test blocks that would stand whole in the training text, were L `length`."""
    stream = test.tokens.reshape(-1)
    rows = stream[: len(stream) // length * length].reshape(-1, length)
    return float(overlap.stand_in(train, rows).sum() / max(len(rows), 1))
