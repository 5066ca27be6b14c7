"""Index tables of many-body terms: which sites and which colours belong to one unordered tuple."""

from itertools import combinations, combinations_with_replacement, permutations

import numpy as np


def site_tuples(length: int, size: int) -> np.ndarray:
    """The unordered `size`-subsets of the other sites, for each site: int64, (L, T, size).

    Each subset is ascending, the subsets of a site are in lexicographic order, and
    T = C(L - 1, size).
    """
    others = [[j for j in range(length) if j != i] for i in range(length)]
    table = [list(combinations(sites, size)) for sites in others]
    return np.array(table, dtype=np.int64).reshape(length, len(table[0]), size)


def sorted_colours(vocabulary: int, size: int) -> np.ndarray:
    """The ascending `size`-tuples of colours in lexicographic order: int64, (bins, size).

    There are C(|V| + size - 1, size) of them; row b holds the colours of bin b.
    """
    rows = list(combinations_with_replacement(range(vocabulary), size))
    return np.array(rows, dtype=np.int64).reshape(len(rows), size)


def colour_bins(vocabulary: int, size: int) -> np.ndarray:
    """The bin of any ordered tuple of colours: int64, (|V|,) * size, a row of `sorted_colours`."""
    bins = np.empty(vocabulary**size, dtype=np.int64)
    rows = sorted_colours(vocabulary, size)
    powers = vocabulary ** np.arange(size)
    for order in permutations(range(size)):
        bins[rows[:, order] @ powers] = np.arange(len(rows))
    return bins.reshape((vocabulary,) * size)
