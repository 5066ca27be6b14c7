"""The multi-index paper's figures drawn from tables with planted numbers."""

import math
from pathlib import Path

import pandas as pd
import planted_multi_index as planted
import pytest
from legible import faults

from manybody.plotting import style
from manybody.plotting.multi_index import drawing, fig1, fig2, fig3, fig5

REPORT = Path(__file__).parents[2] / "workflow/report/multi-index"


FIGURES = {"fig1": fig1, "fig2": fig2, "fig3": fig3, "fig5": fig5}


def draw(figure, folder, **made):
    return FIGURES[figure].draw(*planted.given(figure, folder, **made))


@pytest.mark.long
@pytest.mark.parametrize("name", FIGURES)
def test_the_same_tables_give_the_same_numbers(name, tmp_path):
    made = [draw(name, tmp_path) for _ in range(2)]
    assert faults(made[0][0]) == []
    assert list(made[0][1].columns) == style.FIGURE_COLUMNS
    pd.testing.assert_frame_equal(made[0][1], made[1][1])


def hollow_x(figure):
    """The places of hollow markers on the curves."""
    return {
        float(x)
        for axes in figure.axes
        for line in axes.lines
        if line.get_markerfacecolor() == "white" and line.get_marker() in ("o", "X")
        for x in line.get_xdata()
    }


@pytest.mark.long
def test_points_that_did_not_converge_are_hollow_and_named(tmp_path):
    made = planted.state_evolution(1e-3, failed=(0.75,))
    for lost in (False, True):  # a point without a number is on the axis
        if lost:
            made = made.off(["overlap", "error plug-in"], math.nan, ["y", "y_err"], x=0.75)
        figure, frame = draw("fig1", tmp_path, regularised=made, gamp=planted.gamp(failed=(0.9,)))
        assert {0.75, 0.9} <= hollow_x(figure)
        named = frame[frame["series"].str.endswith("not converged")]
        assert set(named["x"]) == {0.75, 0.9}
        assert 0.75 in set(frame.loc[frame["series"] == "Q11", "x"].round(6))  # the line's own
    figure, frame = draw(
        "fig3", tmp_path, deep=planted.deep(failed=(1.0,)), untied=planted.untied(c_two=0.0)
    )
    assert hollow_x(figure) == {1.0, 2.0}
    assert (frame["series"] == "untied, L = 2 first, not converged").any()
    assert (frame["series"] == "Q33, no regulariser, not converged").any()
    made = planted.held().add("converged", "fixed", [0.93, 0.95], [1.0, 0.0])
    assert hollow_x(draw("fig5", tmp_path, fixed_overlap=made)[0]) == {0.95}


def test_overlaps_of_different_layers_are_drawn_and_listed(tmp_path):
    alphas = (0.5, 1.0, 1.1)
    made = planted.gamp(runs=3, alphas=alphas, failed=(1.1,))
    for quantity, y in (("M12", 0.01), ("M21", 0.02), ("Q12", 0.03)):
        for frame in made.frames:
            here = frame["quantity"] == quantity
            frame.loc[here, "y"] = y * (1 + frame["seed"] / 10)  # 1, 1.1, 1.2
    figure, frame = draw("fig1", tmp_path, gamp=made)
    for quantity, y in (("M12", 0.011), ("M21", 0.022), ("Q12", 0.033)):
        shown = frame[frame["series"] == f"GAMP {quantity}"]
        assert shown["panel"].unique().tolist() == ["d"]
        assert shown["x"].to_numpy() == pytest.approx([0.5, 1.0])
        assert shown["y"].to_numpy() == pytest.approx([y, y])
        assert shown["y_err"].to_numpy() == pytest.approx([y / 1.1 * 0.1 / 3**0.5] * 2)
        apart = frame[frame["series"] == f"GAMP {quantity}, not converged"]
        assert apart["x"].to_numpy() == pytest.approx([1.1])
    (below,) = (axes for axes in figure.axes if axes.get_ylabel() == "overlap of different layers")
    marks = [line for line in below.lines if line.get_marker() in ("<", ">", "d")]
    hollow = [line for line in marks if line.get_markerfacecolor() == "white"]
    assert [line.get_xdata().tolist() for line in hollow] == [
        pytest.approx([1.1 + aside * fig1.BESIDE]) for aside in (-1, 0, 1)
    ]
    zero = frame[frame["series"] == "state evolution, M12, M21, Q12"]
    assert zero["y"].tolist() == [0.0] * len(alphas)


def test_a_random_start_has_no_theory(tmp_path):
    made = planted.gamp(init="random", alphas=(1.2,), runs=4, noise=0, damping=0.8)
    figure, frame = draw("fig2", tmp_path, gamp=made)
    assert not frame["series"].str.contains("infinity").any()
    assert "random start" in figure.axes[0].get_title(loc="left")


@pytest.mark.long
def test_trec_has_a_panel_where_its_questions_are_given(tmp_path):
    titles = {}
    for name, questions in (("with", "train.label"), ("without", None)):
        figure, frame = draw("fig3", tmp_path, trec=planted.trec(questions=questions))
        titles[name] = [axes.get_title(loc="left") for axes in figure.axes]
        assert "right" in set(frame["panel"])
        assert ("right, TREC" in set(frame["panel"])) == (name == "with")
    docstrings, trec = "(c) docstrings by package, two layers", "(d) TREC, two layers"
    assert {docstrings, trec} <= set(titles["with"])
    assert docstrings in titles["without"]
    assert trec not in titles["without"]


@pytest.mark.long
def test_public_overlaps_are_drawn_at_their_regulariser(tmp_path):
    _, frame = draw("fig3", tmp_path)
    assert {"Q11 public", "Q11, V + 0.001", "Q11, no regulariser"} <= set(frame["series"])
    _, frame = draw("fig3", tmp_path, deep_regularised=planted.deep(regulariser=2e-3))
    assert "Q11 public" not in set(frame["series"])


def test_series_keep_their_runs_and_mark_what_failed():
    part = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0], "y_err": [0.1, 0.2], "seed": [5, 6]})
    found = drawing.named(part, "Q11")
    assert found["seed"].tolist() == [5, 6]
    assert found["series"].tolist() == ["Q11", "Q11"]
    assert set(drawing.named(part, "Q11", failed=True)["series"]) == {"Q11" + drawing.FAILED}
    assert drawing.named(part.drop(columns="seed"), "Q11")["seed"].tolist() == [0, 0]
