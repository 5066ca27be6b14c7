"""The overlap of layer 1 while layer 2 is held."""

import numpy as np
import pytest

from manybody.theory.multi_index import fixed_overlap, state_evolution
from manybody.theory.multi_index.samples import Setting, averages, draws

ENTRY = dict(
    skip=1.0,
    activation="softmax",
    regulariser=0.0,
    alpha=1.2,
    overlaps=[0.5, 0.99],
    points=128,
    scrambles=2,
    side_information=1e5,
    seed=1,
    threads=1,
)


def test_layer_1_does_not_move_under_state_evolution():
    """Q11 / (1 - Q11) = alpha G11 in each scrambling; below its threshold layer 1 is lost."""
    entry = {**ENTRY, "overlaps": [0.99]}
    frame, _ = fixed_overlap.compute(entry)
    found = frame[frame["quantity"] == "fixed"].iloc[0]
    each = []
    for seed in np.random.SeedSequence(1).spawn(2):
        normal, q = draws(128, seed), float(found["y"])
        for _ in range(60):
            gain = averages((q, 0.99), Setting(1.0), normal).gain[0, 0]
            q = entry["alpha"] * gain / (1 + entry["alpha"] * gain)
        each.append(q)
    assert found["y"] == pytest.approx(np.mean(each), abs=1e-3)
    assert found["y_err"] == pytest.approx(np.std(each, ddof=1) / 2**0.5, abs=1e-3)


@pytest.mark.long
def test_layer_1_is_learned_as_the_specification_says():
    known = {
        0.93: 0.0, 0.95: 0.10, 0.96: 0.18, 0.97: 0.28, 0.98: 0.44, 0.99: 0.67, 0.995: 0.80,
        0.998: 0.91, 0.999: 0.95,
    }  # fmt: skip
    frame, _ = fixed_overlap.compute(
        {**ENTRY, "overlaps": list(known), "points": 512, "scrambles": 4}
    )
    found = frame[frame["quantity"] == "fixed"].set_index("x")
    assert (np.abs(found["y"] - list(known.values())) < 0.03 + 2 * found["y_err"]).all()
    assert (found["y_err"] < 0.03).all()
    assert (found["y"].diff().iloc[1:] > 0).all()


def test_the_table_has_its_rows_for_overlaps_in_any_order():
    frame, _ = fixed_overlap.compute(ENTRY)
    again, _ = fixed_overlap.compute({**ENTRY, "overlaps": [0.99, 0.5]})
    assert frame.equals(again)
    fixed = frame[frame["quantity"] == "fixed"]
    assert fixed["x"].tolist() == [0.5, 0.99]
    assert fixed["y"].iloc[0] == 0 < fixed["y"].iloc[1]
    assert (frame.loc[frame["quantity"] == "converged", "y"] == 1).all()


def test_what_did_not_converge_is_said(monkeypatch):
    monkeypatch.setattr(state_evolution, "ITERATIONS", 1)
    frame, _ = fixed_overlap.compute({**ENTRY, "points": 64})
    assert (frame.loc[frame["quantity"] == "converged", "y"] == 0).all()
