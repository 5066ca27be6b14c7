"""The figure of definitions, from planted ones."""

import pytest
from legible import faults
from planted_definitions import make
from planted_spectra import ENDS, HALVES

from manybody.plotting import style
from manybody.plotting.simplicity import definitions


@pytest.mark.parametrize("clones", [True, False])
def test_the_panels_hold_what_was_read(tmp_path, clones):
    files, block, context = make(tmp_path, truth=ENDS, clones=clones)
    figure, table = definitions.draw(files, block, context)
    assert faults(figure) == []
    assert list(table.columns) == style.FIGURE_COLUMNS
    assert set(table["panel"]) == {"a", "times"}
    times = table[(table["panel"] == "times") & table["series"].str.endswith("spectrum: M_2")]
    assert times["x"].to_numpy() == pytest.approx(HALVES[2], rel=0.01)
    truth = table[table["seed"] == "truth"].set_index("series")["y"]
    assert truth["order spectrum: M_2, truth"] == ENDS[2]
    assert table["series"].str.startswith("clones").any() == clones


def test_two_students_share_rows(tmp_path):
    files, block, context = make(tmp_path, clones=False)
    block["students"].append({"spectrum": "one"})
    figure, table = definitions.draw(files, block, context)
    assert faults(figure) == []
    assert set(table["panel"]) == {"a", "b", "times"}
    assert set(table["series"][table["panel"] == "b"]) == {
        f"order spectrum: M_{k}" for k in (1, 2, 3)
    }
