"""Text in which some tokens are noise: of any order, and yet with errors as a clone has them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manybody.data import SPLITS, SourceError
from manybody.io import sequences
from manybody.io.seeds import streams_of
from manybody.io.sequences import Sequences


def replaced(
    tokens: np.ndarray, share: float, unigrams: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Sequences (N, L) in which each token is replaced with probability `share` by a draw.

    unigrams: probabilities (|V|,) of the draws. A draw may be the token that it replaces.
    """
    drawn = generator.choice(len(unigrams), size=tokens.shape, p=unigrams)
    return np.where(generator.random(tokens.shape) < share, drawn, tokens)


def make(source: dict, name: str, given: Sequence[str | Path], out: dict) -> None:
    """Writes the splits of the source called `name`, of the splits of a text.

    given: the text's splits in the order of `SPLITS`; the distribution of the noise is the unigram
    distribution of its training tokens. Raises `SourceError` for more sequences than a split of the
    text has.
    """
    text = dict(zip(SPLITS, map(Sequences.open, given), strict=True))
    counts = np.bincount(text["train"].tokens.reshape(-1), minlength=text["train"].vocabulary)
    unigrams, streams = counts / counts.sum(), streams_of(source["seed"], SPLITS)
    about = {key: source[key] for key in ("share", "seed")} | dict(source=name, of=source["source"])
    for split, opened in text.items():
        wanted = source["sequences"][split]
        if wanted > len(opened):
            raise SourceError(
                f"found {wanted}; expected at most the {len(opened)} sequences that the {split} "
                f"split of {source['source']} has; lower it",
                f"sequences.{split}",
            )
        rows = opened[:wanted].astype(np.int64)
        tokens = replaced(rows, source["share"], unigrams, np.random.default_rng(streams[split]))
        sequences.write(out[split], tokens, opened.vocabulary, {**about, "split": split})
