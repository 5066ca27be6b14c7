"""What a table of contacts says: whether the best pairs are true contacts."""

import math

import numpy as np
import pandas as pd

from manybody.claims import verdicts
from manybody.claims.potts import setting
from manybody.claims.potts.scores import Data, read
from manybody.measure import contacts

# How well the couplings of the default setting are found from 3000 sequences (potts, section 5).
CORRELATION = 0.98  # of scores and |J|, at least
SHARE = 0.9  # of contacts among as many of the best pairs, at least


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from the files of the figure's rule."""
    source = context.get("sources", {}).get(block.get("source"), {})
    return verdicts.table(claims(read(files, block), source))


def claims(data: Data, source: dict) -> list[dict]:
    """Whether true contacts are found by the best pairs; none where nothing is known.

    Where the default setting was planted these are gates, correlation and share; the couplings or
    contacts of any other family decide nothing but whether more are found than by chance. source:
    its entry in the config.
    """
    truth = data.truth
    if truth is None:
        return []
    known = data.pairs(truth.contacts)
    if not known.any():
        claim = "contacts: the best pairs are true contacts more often than by chance"
        reason = f"none of the {len(known)} known pairs{data.apart} is a contact"
        return [verdicts.not_run(claim, reason)]
    count, chance, rows = data.asked, data.chance, []
    # Enough samples of the setting whose numbers are known, and all pairs are asked for.
    default = (
        truth.hamiltonian is not None
        and data.separation <= 1
        and data.about["sequences"] >= setting.M
    )
    default = default and not setting.departure(source, truth.hamiltonian.beta)
    for name, matrix in data.scores.items():
        (share,) = contacts.precision(matrix, truth.contacts, data.separation, [count], truth.known)
        share = float(share)
        error = contacts.binomial_error(share, count)
        if default:
            planted = data.pairs(np.abs(truth.hamiltonian.couplings))
            r = float(np.corrcoef(data.pairs(matrix), planted)[0, 1])
            of_r = (1 - r**2) / math.sqrt(len(planted) - 1)
            claim = f"inverse Potts: Pearson r of the score ({name}) and the planted |J|"
            rows.append(verdicts.bounded(claim, ">", r, of_r, CORRELATION, "statistical"))
            claim = (
                f"inverse Potts: share of planted contacts among the best {count} pairs ({name})"
            )
            rows.append(verdicts.bounded(claim, ">", share, error, SHARE, "statistical"))
        else:
            claim = (
                f"contacts: share of true ones among the best {count} pairs{data.apart} "
                f"({name}), {share:.3g}, above that of all known pairs, {chance:.3g}"
            )
            rows.append(verdicts.gap(claim, share - chance, error))
    return rows
