"""Claims of table 1: the passages of all generators are made of the same text."""

import numpy as np
import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity.evaluated import read_clones
from manybody.io.sequences import Sequences


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    first, *others = (
        Sequences.open(clone.file("starts.parquet")).tokens
        for clone in read_clones(files, block["clones"], context)
    )
    return claims(sum(_differing(first, other) for other in others))


def _differing(tokens: np.ndarray, other: np.ndarray) -> int:
    return tokens.size if tokens.shape != other.shape else int((tokens != other).sum())


def claims(differing: int) -> pd.DataFrame:
    """differing: start tokens, over all chains, that differ between the clones."""
    claim = "table 1: all chains start from the same passages"
    return verdicts.table([verdicts.identity(claim, differing, 0, 0)])
