"""Claims of section 3.1 about the flow: each where it holds, and where it does not."""

import pytest
from claimed import by_name
from planted_flow import ENTRY, computed, tables

from manybody.papers.readings import Table
from manybody.papers.simplicity import gradient_flow
from manybody.theory import gradient_flow as theory


def claims(frame, about):
    return by_name(gradient_flow.claims(gradient_flow.tables_of(Table(frame, about))))


def test_every_claim_about_the_flow_holds():
    found = claims(*computed())
    assert {name: (claim.verdict, len(claim.parts)) for name, claim in found.items()} == {
        "closed-form": ("yes", 2),
        "gaussian": ("yes", 2),
        "growth": ("yes", len(gradient_flow.LOOKS)),
        "loss": ("yes", len(found["loss"].parts)),
    }
    falls = [part.label for part in found["loss"].parts if "best linear" in part.label]
    assert [label.partition(":")[0] for label in falls] == ["product", "product, decay", "squares"]


def test_rates_are_shown_where_there_is_no_weight_decay():
    drawn = tables().drawn
    shown = drawn["series"][drawn["panel"] == "f"].str.partition(":")[0]
    assert {*shown} == gradient_flow.LOOKS.keys() - {"product, decay"}


@pytest.mark.parametrize("skew", [0.0, -0.5])
def test_claims_follow_the_prediction(skew):
    """No skewness, no growth; the other sign, and the two cases of squares change places."""
    found = claims(*theory.compute(ENTRY | {"skewness": skew}))
    assert {claim.verdict for claim in found.values()} == {"yes"}
    grow = {part.label.partition(":")[0] for part in found["loss"].parts if part.region[1] < 0}
    assert ("minus squares" in grow) == (skew < 0)
    assert "squares" not in grow


@pytest.mark.parametrize(
    ("quantity", "series", "claim", "words"),
    [
        ("mode (13)", None, "closed-form", "without weight decay"),
        ("mode with decay (13)", None, "closed-form", "with weight decay"),
        ("norm", None, "gaussian", "no weight decay"),
        ("norm with decay", None, "gaussian", "with weight decay"),
        ("rate", "squares", "growth", "squares"),
        ("fastest mode", "product", "growth", "product"),
        ("best linear", "product", "loss", "product"),
        ("loss", "Gaussian", "loss", "Gaussian"),
    ],
)
def test_claims_fail_where_the_numbers_are_wrong(quantity, series, claim, words):
    frame, about = computed()
    spoiled = frame.copy()
    wrong = spoiled["quantity"] == quantity
    if series is not None:
        wrong &= spoiled["series"] == series
    if quantity == "best linear":
        spoiled.loc[wrong, "y"] -= 0.5
    else:
        last = spoiled.index[wrong][-1]
        spoiled.loc[last, "y"] = spoiled.loc[last, "y"] * 1.5 + 0.3
    found = claims(spoiled, about)
    assert found[claim].verdict == "no"
    (no,) = (part.label for part in found[claim].parts if part.verdict() == "no")
    assert words in no
