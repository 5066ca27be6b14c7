"""Index tables of tuples against their definition."""

from itertools import combinations

import numpy as np
import pytest

from manybody.data.hamiltonian import colour_bins, site_tuples, sorted_colours


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_the_subsets_around_a_site_are_all_of_the_others_in_order(length, size):
    found = site_tuples(length, size)
    assert found.shape[::2] == (length, size)
    for site, around in enumerate(found.tolist()):
        others = [other for other in range(length) if other != site]
        assert around == [list(subset) for subset in combinations(others, size)]


def test_a_bin_holds_the_colours_of_one_sorted_row():
    bins, rows = colour_bins(4, 3), sorted_colours(4, 3)
    assert len(rows) == 20
    for colours in np.ndindex(4, 4, 4):
        assert tuple(rows[bins[colours]]) == tuple(sorted(colours))
    assert colour_bins(5, 0) == 0
