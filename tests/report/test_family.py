"""The pictures of families: legible, and with all that they are given."""

import numpy as np
import pandas as pd
import pytest
from legible import faults

from manybody.report import family


@pytest.mark.parametrize("length", [5, 145])
def test_the_map_of_mutations_has_every_site_and_residue(length):
    rng = np.random.default_rng(0)
    letters, own = "-ACDEFGHIKLMNPQRSTVWY", rng.integers(0, 21, length)
    changes = rng.normal(size=(length, 21))
    changes[own == 0] = np.nan
    names = [f"A{site}" for site in range(11, 11 + length)]
    figure = family.draw_mutations(changes, own, names, letters)
    assert faults(figure) == []
    maps = [axes for axes in figure.axes if axes.images]
    drawn = np.concatenate([axes.images[0].get_array().filled(np.nan) for axes in maps], axis=1)
    np.testing.assert_array_equal(drawn, changes[:, 1:].T)
    # no frame beyond the last site
    assert maps[-1].spines["bottom"].get_bounds() == (-0.5, (length - 1) % 60 + 0.5)
    dots = np.concatenate([axes.lines[0].get_ydata() for axes in maps])
    assert dots.tolist() == (own[own > 0] - 1).tolist()
    assert maps[-1].get_xticklabels()[0].get_text() == names[60 * (len(maps) - 1)]


def test_the_panel_has_its_six_tables():
    rng = np.random.default_rng(0)
    series = {
        "f": ["values"], "c_2": ["values"], "c_3": ["values"],
        "components": ["natural", "generated"], "distances": ["natural", "generated"],
        "mixing": ["own", "other"],
    }  # fmt: skip
    parts = [
        pd.DataFrame(dict(panel=name, series=one, x=rng.random(30) + 0.1, y=rng.random(30)))
        for name, names in series.items()
        for one in names
    ]
    table = pd.DataFrame(
        [(name, 0.5, 0.7, 0.9, 30) for name in ("f", "c_2", "c_3")],
        columns=["statistic", "correlation", "halves", "slope", "number"],
    )
    figure = family.draw_generated(table, pd.concat(parts))
    assert faults(figure) == []
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 2, 2, 2, 2]
    assert figure.axes[1].texts[0].get_text() == "r = 0.500\nslope 0.90\nhalves: r = 0.700"
    np.testing.assert_array_equal(figure.axes[5].lines[1].get_ydata(), parts[-1]["y"])
