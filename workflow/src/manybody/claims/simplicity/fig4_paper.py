"""Claims of figure 4 on clones of the paper's own generators, whose order is nominal."""

import pandas as pd

from manybody.claims.simplicity import fig4

NOMINAL = "fig. 4, variant paper"


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """As `fig4.judge`; of the claims, those about a clone of nominal order.

    The others, on original text and on controls, are those of figure 4: one row each is enough.
    """
    found = fig4.judge(files, block, context)
    found = found[found["claim"].str.contains("nominal order", regex=False)]
    claims = found["claim"].str.replace("fig. 4", NOMINAL, regex=False)
    return found.assign(claim=claims).reset_index(drop=True)
