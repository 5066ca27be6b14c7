"""Gates of figure 1 at parameters of which the specification says nothing, from small tables."""

import pytest

from manybody.claims import verdicts
from manybody.claims.multi_index import fig1 as fig1_claims
from manybody.claims.reading import Table
from manybody.theory.multi_index import state_evolution


@pytest.mark.slow
@pytest.mark.parametrize(
    ("skip", "regulariser"), [(0.6, 0.0), (0.35, 0.0), (1.5, 1e-2), (2.5, 1e-3), (0.8, 3e-3)]
)
def test_no_gate_is_contradicted_and_few_vanish(skip, regulariser):
    entry = dict(skip=skip, activation="softmax", regulariser=regulariser, points=256, scrambles=4)
    entry |= dict(alphas=[0.15, 0.3, 0.5, 0.8, 1.0, 1.3], side_information=1e5, seed=0, threads=2)
    found = verdicts.table(fig1_claims.theory_claims(Table(*state_evolution.compute(entry))))
    assert set(found["holds"]) <= {"confirmed", "consistent"}
    assert len(found) >= 23
    assert (found["holds"] == "confirmed").sum() >= 18
