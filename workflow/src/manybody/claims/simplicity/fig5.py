"""Claims of figure 5: a causal student learns low orders first (claim 8)."""

import pandas as pd

from manybody.claims.simplicity import fig4, learning


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return fig4.claims(learning.read(files, block, context), ("8", "8"), "fig. 5")
