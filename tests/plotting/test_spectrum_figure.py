"""The figure of order spectra, from planted ones."""

import numpy as np
import pytest
from legible import faults
from planted_spectra import HALVES, make

from manybody.plotting import style
from manybody.plotting.simplicity import spectrum


def test_the_panels_hold_what_was_read(tmp_path):
    figure, table = spectrum.draw(*make(tmp_path))
    assert faults(figure) == []
    assert list(table.columns) == style.FIGURE_COLUMNS
    assert set(table["panel"]) == {"a", "d", "c", "e", "f"}
    halves = table[(table["panel"] == "c") & (table["series"] == "BERT: M_2")]
    assert halves["x"].to_numpy() == pytest.approx(np.full(len(halves), HALVES[2]), rel=0.01)
    vanished = table[(table["panel"] == "e") & (table["y"] < 1e-12)]
    assert vanished["series"].str.startswith("n = 2, order 3").all()
    assert len(vanished) == 1
