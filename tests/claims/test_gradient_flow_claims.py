"""What section 3.1 says of the flow: each claim where it holds, and where it does not."""

import numpy as np
import pytest

from manybody.claims.reading import Table
from manybody.claims.simplicity.gradient_flow import claims
from manybody.plotting.simplicity.gradient_flow import figure_of
from manybody.theory import gradient_flow as gf

ENTRY = {
    "kind": "gradient-flow",
    "length": 3,
    "time": 40.0,
    "scales": [0.2],
    "decay": 0.2,
    "skewness": 0.6,
    "samples": 5000,
    "seed": 3,
}


@pytest.fixture(scope="module")
def computed():
    return gf.compute(ENTRY)


def test_the_flow_is_drawn(computed):
    figure, drawn = figure_of(Table(*computed))
    assert list(drawn["panel"].unique()) == list("abcdef")
    assert len(figure.axes) == 6


def test_every_claim_about_the_flow_holds(computed):
    found = claims(Table(*computed))
    assert set(found["holds"]) == {"confirmed"}
    leaves = found["claim"].str.contains("B leaves 0")
    assert not (leaves & found["claim"].str.contains("sampled")).any()  # it has no growth to see
    grows = found[found["claim"].str.contains("grows$")]["claim"].tolist()
    assert [claim.split(": ")[0].removeprefix("3.1, ") for claim in grows][:3] == [
        "product",
        "product, decay",
        "squares",
    ]


@pytest.mark.parametrize("skew", [0.0, -0.5])
def test_claims_follow_the_prediction(skew):
    """No skewness, no growth; the other sign, and the two cases of squares change places."""
    found = claims(Table(*gf.compute(ENTRY | {"skewness": skew})))
    assert set(found["holds"]) == {"confirmed"}
    said = found["claim"]
    assert said.str.contains(r"^3\.1, squares: .* does not grow$").sum() == 1
    assert said.str.contains(r"^3\.1, minus squares: .* grows$").sum() == (skew < 0)


def test_claims_fail_where_the_numbers_are_wrong(computed):
    frame, about = computed
    for quantity, claim in (
        ("gradient error", "numerical derivative"),
        ("mode (13)", "closed form (13)"),
        ("limit", "(C + decay)^-1 h"),
        ("small deviation", "fourth power"),
        ("norm", "no weight decay"),
        ("late norm", "late rate"),
        ("noise", "in standard errors"),
        ("rate", "measured rate"),
        ("best linear", "falls below the best linear"),
    ):
        spoiled = frame.copy()
        rows = np.flatnonzero(spoiled["quantity"] == quantity)
        values = spoiled["y"].to_numpy().copy()
        values[rows[-1]] = values[rows[-1]] * 1.5 + 0.3
        if quantity in ("rate", "best linear"):
            values[rows] -= 0.2
        spoiled["y"] = values
        found = claims(Table(spoiled, about))
        failed = found[found["holds"] == "contradicted"]["claim"]
        assert failed.str.contains(claim, regex=False).any(), quantity
