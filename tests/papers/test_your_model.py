"""The figure of a series: curves, doubted checkpoints beside them; one model without a series."""

import numpy as np
import pandas as pd
import pytest
from legible import faults
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from manybody.papers.simplicity.spectra import Spectra
from manybody.papers.style import COLUMNS
from manybody.papers.your_model import map as passage_map
from manybody.papers.your_model import spectrum

DESCRIPTION = {
    "architecture": "pretrained",
    "objective": "next-token",
    "vocabulary": 50,
    "length": 32,
    "config": {"architectures": ["GPTNeoXForCausalLM"], "n_layer": 2, "n_embd": 16},
}


def planted(steps, suspect=None, losses=True) -> Spectra:
    rows = []
    for step in steps:
        state = "suspect" if step == suspect else "measured"
        for k in (1, 2, 3):
            value = step**2 / (step**2 + (100 * k) ** 2) / 10**k
            known = dict(step=step, order=k, se=0.05 * value, share_se=0.01, state=state)
            rows.append(dict(known, quantity="M", value=value, share=1.5 / 10 ** (k - 1)))
    for k in (1, 2, 3):
        for span in range(k, 32):
            known = dict(step=steps[-1], quantity=f"span {k}", order=span, se=0.001)
            rows.append(dict(known, value=span**-2.0, state="measured"))
    for degree in range(9 * losses):
        known = dict(step=steps[-1], quantity="anchored excess", order=degree, se=0.01)
        rows.append(dict(known, value=0.5**degree, state="measured"))
    about = {"description": DESCRIPTION, "model": "mine", "entry": {"law": "text"}}
    about |= {"suspects": {str(suspect): ["why"]}} if suspect else {}
    return Spectra({0: (pd.DataFrame(rows), about)})


def test_what_the_audit_doubts_is_hollow_and_beside_the_curves():
    found = spectrum.tables_of([planted([10, 50, 100, 200, 400, 1000], suspect=100)])
    figure, drawn = spectrum.draw(found), found.drawn
    assert [claim.id for claim in spectrum.claims(found)] == [
        f"your-model/spectrum/{name}" for name in ("additive", "half-times", "pairs")
    ]
    assert faults(figure) == []
    assert list(drawn.columns) == COLUMNS
    assert set(drawn["panel"]) == set("abcd")
    growth, *_ = figure.axes
    assert "hollow" in growth.get_title("left")
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
    found = spectrum.tables_of([planted([1000], losses=losses)])
    assert faults(spectrum.draw(found)) == []
    assert set(found.drawn["panel"]) == set(panels)


def passage(length: int) -> Spectra:
    """A causal model: each token is acted on by the one before, in pairs, and by the one two
    before, with others; the first target that is asked is 1."""
    rows = []
    for target in range(1, length):
        for source in range(target):
            value = {1: 1.0, 2: 0.5}.get(target - source, 1e-5) * (1 + (target == 7))
            share = 0.9 if target - source == 1 else 0.1
            known = dict(step=10, order=source, state="measured")
            rows.append(dict(known, quantity=f"influence on {target}", value=value))
            rows.append(dict(known, quantity=f"pairs on {target}", value=value * share))
    about = {"description": DESCRIPTION, "model": "mine", "entry": {"law": "text"}}
    about["passage"] = [["a", " word", "\n", "", "."][i % 5] for i in range(length)]
    return Spectra({0: (pd.DataFrame(rows), about)})


@pytest.mark.parametrize("length", [16, 128])
def test_the_map_shows_who_acts_on_whom_and_how(length):
    found = passage_map.tables_of(passage(length))
    figure, table = passage_map.draw(found), found.drawn
    assert passage_map.claims(found) == []
    assert faults(figure) == []
    seventh = table[(table["panel"] == "a") & (table["series"] == "on token 7")]
    assert seventh["y"].tolist() == pytest.approx([2e-5] * 5 + [1, 2])
    assert set(table["panel"]) == {"a", "b"}
    boxes = [box for box in figure.findobj(Rectangle) if box.get_height() == 0.9]
    framed = [box for box in boxes if box.get_facecolor() == (1, 1, 1, 1)]
    shades = {box.get_facecolor()[:3] for box in boxes} - {(1, 1, 1)}
    # Two sources for each target: pairs, and more; on the first targets fewer act.
    assert len(framed) == 3
    assert len(boxes) == 3 * 3
    assert shades == {to_rgb(passage_map.KINDS[kind][1]) for kind in ("pairs", "more")}
