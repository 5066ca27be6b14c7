"""Claims of figure 2: networks of one, two and three layers climb down the orders."""

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity import staircase
from manybody.claims.simplicity.staircase_runs import read_exact, read_parts


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    (part,) = read_parts(files, block, context)
    found = staircase.all_claims(part, "fig. 2")
    found += staircase.exact_claims(read_exact(files, block, context), "fig. 2")
    return verdicts.table(found)
