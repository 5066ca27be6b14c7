"""The compiled loop of `pair_model`: scores of many sequences."""

from manybody.io.compiled import njit

GROUP = 2048  # sequences whose colours stay in a cache while all couplings pass by


@njit(nogil=True, cache=True)
def add_scores(fields, couplings, tokens, found):
    """Adds sum_i h_i(s_i) + sum_{j < i} J_ij(s_i, s_j) to found (N,), float64. fields: (L, q);
    couplings: (L, L, q, q); tokens: (L, N) uint16, below q."""
    length, rows = tokens.shape
    for start in range(0, rows, GROUP):
        part = tokens[:, start : start + GROUP]
        sums = found[start : start + GROUP]
        for i in range(length):
            here = part[i]
            for n in range(len(sums)):
                sums[n] += fields[i, here[n]]
            for j in range(i):
                block, there = couplings[i, j], part[j]
                for n in range(len(sums)):
                    sums[n] += block[here[n], there[n]]
