"""Which spectra take shares of single orders, and what is said of the others."""

import pytest
from configs import refusal, with_entry

from manybody.pipeline.check import check

OWN = "spectra", "planted-draws"  # of the planted law's own model


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model": "many-body-2"},
        {"model": "planted-bert", "bounded": False},
        {"source": "docs", "model": "n2", "orders": 2},
    ],
)
def test_orders_that_bound_the_model_pass(changes):
    check(with_entry(*OWN, **changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"orders": 2}, ["many-body-true", "holds order 4; expected order 3 at most"]),
        ({"source": "docs", "model": "n4"}, ["n4 of architecture factored", "holds order 9"]),
        ({"source": "docs", "model": "bert-generator"}, ["architecture bert", "holds order"]),
        ({"source": "docs", "model": "gpt"}, ["gpt", "set it to false"]),
    ],
)
def test_orders_that_do_not_are_refused(changes, expected):
    said = refusal(with_entry(*OWN, **changes))
    for words in ["spectra.mine.bounded: found true", *expected]:
        assert words in said
