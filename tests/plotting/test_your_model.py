"""The figure of a series: curves, doubted checkpoints beside them; one model without a series."""

import numpy as np
import pandas as pd
import pytest
from legible import faults

from manybody.claims.simplicity.spectra import Spectra
from manybody.plotting import style
from manybody.plotting.your_model.spectrum import figure_of

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
    figure, drawn = figure_of([planted([10, 50, 100, 200, 400, 1000], suspect=100)])
    assert faults(figure) == []
    assert list(drawn.columns) == style.FIGURE_COLUMNS
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
    figure, drawn = figure_of([planted([1000], losses=losses)])
    assert faults(figure) == []
    assert set(drawn["panel"]) == set(panels)
