"""Index tables of tuples against their definition."""

import math

import pytest

from manybody.sources.tuples import site_tuples


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_the_subsets_around_a_site_are_all_of_the_others_in_order(length, size):
    found = site_tuples(length, size)
    assert found.shape == (length, math.comb(length - 1, size), size)
    for site, around in enumerate(found.tolist()):
        assert around == sorted(around)
        assert len(set(map(tuple, around))) == len(around)
        assert all(subset == sorted({*subset} - {site}) for subset in around)
        assert all(0 <= other < length for subset in around for other in subset)
