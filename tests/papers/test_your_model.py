"""The figure of a series: curves, doubted checkpoints beside them; one model without a series."""

import numpy as np
import pytest
from legible import faults
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from planted_spectra import passage, series

from manybody.papers.your_model import map as passage_map, spectrum


def test_what_the_audit_doubts_is_hollow_and_beside_the_curves():
    found = spectrum.tables_of([series([10, 50, 100, 200, 400, 1000], suspect=100)])
    figure, drawn = spectrum.draw(found), found.drawn
    assert [claim.id for claim in spectrum.claims(found)] == [
        f"your-model/spectrum/{name}" for name in ("additive", "half-times", "pairs")
    ]
    assert set(drawn["panel"]) == set("abcd")
    growth, *_ = figure.axes
    hollow = [line for line in growth.lines if line.get_markerfacecolor() == "white"]
    curves = [line for line in growth.lines if line.get_linestyle() == "-"]
    assert [list(line.get_xdata()) for line in hollow] == [[100]] * 3
    assert [list(line.get_xdata()) for line in curves] == [[10, 50, 200, 400, 1000]] * 3
    # Half of the last value of M_2, 1 / 1.04 / 100, is between 50 and 200.
    assert curves[1].get_ydata()[-1] == pytest.approx(0.01 / 1.04)
    doubted = drawn[drawn["series"] == "GPTNeoX: M_2, suspect"]
    assert doubted[["x", "y"]].to_numpy() == pytest.approx(np.array([[100, 0.002]]))


@pytest.mark.parametrize(("losses", "panels"), [(True, "abc"), (False, "ab")])
def test_a_single_model_has_no_curves(losses, panels):
    found = spectrum.tables_of([series([1000], losses=losses)])
    assert faults(spectrum.draw(found)) == []
    assert set(found.drawn["panel"]) == set(panels)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("length", [16, pytest.param(128, marks=pytest.mark.long)])
def test_the_map_shows_who_acts_on_whom_and_how(length):
    found = passage_map.tables_of(passage(length))
    figure, table = passage_map.draw(found), found.drawn
    assert faults(figure) == []
    seventh = table[(table["panel"] == "a") & (table["series"] == "on token 7")]
    assert seventh["y"].tolist() == pytest.approx([2e-5] * 5 + [1, 2])
    shares = table[(table["panel"] == "b") & (table["series"] == "on token 7")]
    assert shares["y"].tolist() == pytest.approx([0.1, 0.9])
    boxes = [box for box in figure.findobj(Rectangle) if box.get_height() == 0.9]
    framed = [box for box in boxes if box.get_facecolor() == (1, 1, 1, 1)]
    shades = {box.get_facecolor()[:3] for box in boxes} - {(1, 1, 1)}
    found.every.fill(0)  # nothing acts
    assert faults(passage_map.draw(found)) == []
    # Two sources for each target: pairs, and more; on the first targets fewer act.
    assert len(framed) == 3
    assert len(boxes) == 3 * 3
    assert shades == {to_rgb(passage_map.KINDS[kind][1]) for kind in ("pairs", "more")}
