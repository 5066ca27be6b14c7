"""How many samples stand behind what theory computes besides an entry's own: figures predict from
them which gates an entry can confirm. Standard library only, since figures import it.
"""

# Errors of prediction are means over so many scramblings of so many samples.
ERROR_POINTS, ERROR_SCRAMBLES = 2**16, 4
# Identities are tested on so many scramblings.
BATCHES = 32
# G is computed once more from independent samples: at these overlaps of one layer and of both, with
# so many samples at each, for entries that have at least so many samples themselves.
EXPECTED_SINGLE, EXPECTED_BOTH = (0.3, 0.6, 0.9), (0.5, 0.8)
EXPECTED_SAMPLES, EXPECTED_FROM = 2**17, 2**15
EXPECTED_ERRORS = 2**20
LEAST_SKIP = 0.25  # c below which the lattice of eigenvalues is too fine to be summed in seconds
# lambda_1 is computed at these V22, with so many times fewer samples than an entry has.
NEAR = {"V22 = 1e-3": (1e-3, 8), "V22 = 1e-4": (1e-4, 16)}
NEAR_SCRAMBLES = 8
NEAR_LEAST = 64  # samples of a scrambling: more than there are controls
# Message passing at D -> infinity is a mean over so many sets of points.
SETS = 8


def near_points(points: int, series: str) -> int:
    """Samples of a scrambling near V22 = 0, of an entry's `points`."""
    return max(points // NEAR[series][1], NEAR_LEAST)
