"""How many samples stand behind what theory computes besides an entry's own: figures predict from
them which gates an entry can confirm. Standard library only, since figures import it.
"""

# Errors of prediction: samples of each of so many scramblings
ERROR_POINTS, ERROR_SCRAMBLES = 2**16, 4
# Identities: scramblings
BATCHES = 32
# What the numbers of an entry should be, by independent samples: overlaps alone and of both layers,
# samples of each, samples of an entry below which nothing is to be gained from them
EXPECTED_ALONE, EXPECTED_BOTH = (0.3, 0.6, 0.9), (0.5, 0.8)
EXPECTED_SAMPLES, EXPECTED_FROM = 2**17, 2**15
EXPECTED_ERRORS = 2**20
LEAST_SKIP = 0.25  # c below which the lattice of growths is too fine to be summed in seconds
# lambda_1 near V22 = 0: V22, and how many times fewer samples than an entry has
NEAR = {"V22 = 1e-3": (1e-3, 8), "V22 = 1e-4": (1e-4, 16)}
NEAR_SCRAMBLES = 8
NEAR_LEAST = 64  # samples of a scrambling: more than there are controls
# Message passing: sets of points behind the numbers at D -> infinity, an error from two says little
SETS = 8


def near_points(points: int, series: str) -> int:
    """Samples of a scrambling near V22 = 0, of an entry's `points`."""
    return max(points // NEAR[series][1], NEAR_LEAST)
