"""Claims that were judged, a table or a list, by a text that they hold."""

import pandas as pd


def rows(found, text):
    """Those that hold it; there must be some."""
    found = pd.DataFrame(found)
    mine = found[found["claim"].str.contains(text, regex=False)]
    assert len(mine), f"no claim holds {text!r}"
    return mine


def row(found, text):
    """The only one."""
    (line,) = rows(found, text).itertuples()
    return line


def holds(found, text):
    """Their answers."""
    return set(rows(found, text)["holds"])
