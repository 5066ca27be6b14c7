"""Claim 11 with its intervals: does the order of interaction set the time, at equal loss?"""

from collections.abc import Sequence

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity.corpora import Corpus, read


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return claims(read(files, block, context))


def claims(corpora: Sequence[Corpus]) -> pd.DataFrame:
    """Each pair's premise and answer; two kinds of chains of one generator share their premise."""
    found: dict[str, dict] = {}
    for corpus in corpora:
        for one in corpus.compared:
            found.setdefault(one.premise["claim"], one.premise)
            found[one.claim["claim"]] = one.claim
    rows = list(found.values())
    if len(corpora) == 1:
        rows.append(
            verdicts.not_run(
                "11 (headline): the same answer on a second corpus",
                "its text is given by path: config/headline-second.yaml",
            )
        )
    return verdicts.table(rows)
