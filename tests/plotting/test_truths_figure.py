"""The figure of known laws, from planted students."""

import pytest
from legible import faults
from planted_truths import CUTS, ENDS, HALVES, student

from manybody.plotting import style
from manybody.plotting.simplicity.truths import figure_of


def test_the_panels_hold_what_was_read():
    figure, table = figure_of([student(), student(halves={1: 50.0, 2: 70.0, 3: 90.0})])
    assert faults(figure) == []
    assert list(table.columns) == style.FIGURE_COLUMNS
    assert set(table["panel"]) == {"a", "b", "c", "d", "times", "half-times"}
    exact = table[(table["panel"] == "a") & (table["seed"] == "exact")].set_index("series")["y"]
    assert exact["BERT 2 × 64 on known, cuts: the whole law, exact"] == pytest.approx(
        ENDS["test"], abs=0.1
    )
    assert len(exact) == 3
    times = table[(table["panel"] == "times") & table["series"].str.contains("cuts")].iloc[:3]
    assert times["x"].to_numpy() == pytest.approx(list(HALVES.values()), rel=0.02)
    assert times["y"].to_numpy() == pytest.approx(list(CUTS.values()), rel=0.03)
    assert (times["y_err"] < 0.05).all()


def test_a_student_without_clones_is_drawn():
    one = student()
    one = one._replace(ladders=one.ladders[:1])
    figure, table = figure_of([one])
    assert faults(figure) == []
    assert not table["series"].str.contains("clone").any()
