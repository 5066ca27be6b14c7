"""Claims of figure 4: a masked student learns low orders first."""

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity import learning


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    student = learning.read(files, block, context)
    return verdicts.table(learning.all_claims(student, ("6", "7"), "fig. 4"))
