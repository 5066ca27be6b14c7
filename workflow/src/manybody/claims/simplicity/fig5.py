"""Claims of figure 5: a causal student learns low orders first (claim 8)."""

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity import learning


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    student = learning.read(files, block, context)
    return verdicts.table(learning.all_claims(student, ("8", "8"), "fig. 5"))
