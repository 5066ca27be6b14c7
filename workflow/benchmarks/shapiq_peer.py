"""shapiq on games of 16 players, in a process with the packages of `envs/shapiq.txt`.

`python -m benchmarks.shapiq_peer GAMES.npz` prints one JSON document a line: method, order, budget,
repeat, triple, seconds, M_1, M_2 and the squared coefficients of all pairs. `interactions` says
what is asked and how it follows from shapiq's indices.
"""

import json
import sys
from itertools import combinations
from math import comb

import numpy as np
import shapiq

from benchmarks.harness import timed

PLAYERS = 16
PAIRS = list(combinations(range(PLAYERS), 2))
BINOMIAL = np.array([comb(PLAYERS, size) for size in range(PLAYERS + 1)], dtype=float)
POWERS = 2 ** np.arange(PLAYERS)


def main(games: str) -> None:
    given = np.load(games)
    for method, order, budget, repeats, triples in json.loads(str(given["asked"])):
        for repeat in range(repeats):
            for triple in range(triples):
                how = method, order, budget, repeat
                found, seconds, _ = timed(estimate, given[f"triple{triple}"], *how)
                asked = dict(method=method, order=order, budget=budget, repeat=repeat)
                print(json.dumps(asked | dict(triple=triple, seconds=seconds) | found), flush=True)


def estimate(values: np.ndarray, method: str, order: int, budget: int, seed: int) -> dict:
    """M_1, M_2 and squared coefficients of pairs, by payoffs `values` (2^16, games)."""
    walsh: dict[tuple[int, ...], np.ndarray] = {}
    for game in range(values.shape[1]):
        payoffs = np.ascontiguousarray(values[:, game], dtype=float)
        approximator = _approximator(method, order, seed)
        found = approximator.approximate(budget, lambda m, v=payoffs: v[m.astype(int) @ POWERS])
        for players, place in found.interaction_lookup.items():
            value = found.values[place]
            if method == "SVARMIQ":
                scaled = [(players, value * (-0.5) ** len(players))]
            else:
                subsets = (t for k in range(len(players) + 1) for t in combinations(players, k))
                scaled = [(t, value * (-1) ** len(t) * 0.5 ** len(players)) for t in subsets]
            for part, coefficient in scaled:
                walsh.setdefault(part, np.zeros(values.shape[1]))[game] += coefficient
    squares = {part: float((each**2).sum()) for part, each in walsh.items()}
    return {
        "M_1": sum(len(part) * square for part, square in squares.items()),
        "M_2": sum(comb(len(part), 2) * square for part, square in squares.items()),
        "pairs": [squares.get(pair, 0.0) for pair in PAIRS],
    }


def _approximator(method: str, order: int, seed: int):
    if method == "ProxySPEX":
        return shapiq.ProxySPEX(n=PLAYERS, index="FBII", max_order=order, random_state=seed)
    if method == "SVARMIQ":
        return shapiq.SVARMIQ(
            PLAYERS, order, "BII", top_order=True, sampling_weights=BINOMIAL, random_state=seed
        )
    return shapiq.RegressionFBII(PLAYERS, order, random_state=seed)


if __name__ == "__main__":
    main(sys.argv[1])
