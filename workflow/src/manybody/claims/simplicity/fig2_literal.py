"""Claims of figure 2 by the paper's literal recipe for the Hamiltonian, in each of its readings."""

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity import staircase
from manybody.claims.simplicity.staircase_runs import read_parts


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    parts = read_parts(files, block, context)
    named = [(part, f"fig. 2 literal, {part.name}") for part in parts]
    return verdicts.table([row for part in named for row in staircase.all_claims(*part)])
