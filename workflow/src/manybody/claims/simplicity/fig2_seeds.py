"""Claims of figure 2, seed by seed: how often the deepest network gets there, by each recipe."""

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity import staircase
from manybody.claims.simplicity.staircase_runs import read_exact, read_parts


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims; those about the first recipe only where no other figure has them."""
    (part,) = read_parts(files, block, context)
    found = staircase.seed_claims(part, "fig. 2 seeds", context["elsewhere"])
    found += staircase.exact_claims(read_exact(files, block, context), "fig. 2 seeds")
    return verdicts.table(found)
