"""Claims of figure 1: low orders saturate first."""

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity import fig4, learning


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims; none where another figure of the same student has them."""
    if context["elsewhere"]:
        return verdicts.table([])
    student = learning.read(files, block, context)
    return verdicts.table(fig4.order_claims("6 (fig. 1)", student))
