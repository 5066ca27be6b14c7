"""The figure of known laws, from planted students."""

import pytest
from legible import faults
from planted_truths import CUTS, ENDS, HALVES, student

from manybody.plotting import style
from manybody.plotting.simplicity.truths import _bar, figure_of


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
    below, above = _bar(100.0, 2.0)
    assert (100 - below[0], 100 + above[0]) == pytest.approx((100 / 7.389, 738.9), rel=1e-3)


def test_a_ladder_has_the_marker_of_the_legend():
    one = student()
    clones = one._replace(ladders=one.ladders[1:])
    figure, _ = figure_of([one, clones])
    second = figure.subfigs[-1].axes[1]
    found = {line.get_marker() for line in second.lines} - {"None", ""}
    (said,) = (line for line in figure.legends[0].legend_handles if line.get_label() == "clones")
    assert said.get_marker() in found


def test_a_student_without_clones_is_drawn():
    one = student()
    one = one._replace(ladders=one.ladders[:1])
    figure, table = figure_of([one])
    assert faults(figure) == []
    assert not table["series"].str.contains("clone").any()
