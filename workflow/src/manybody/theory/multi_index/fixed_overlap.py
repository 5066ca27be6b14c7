"""Overlap of layer 1 while layer 2 is held at one (docs/science/multi-index.md, section 5).

Q11 / (1 - Q11) = alpha G11(Q11, Q22) at each Q22: the fixed point that state evolution reaches from
strong side information on layer 1, from where it comes down to the largest one.
"""

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from manybody.io.progress import Progress
from manybody.io.tables import joined, rows
from manybody.theory.multi_index.samples import Setting, draws, mean_error
from manybody.theory.multi_index.state_evolution import fixed_point

ABOVE = 1.05  # of the Q11 at the overlap before: where that at the next, smaller one begins
LEAST = 0.01  # Q11 from which a layer that was not learned begins again


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of one entry of the config, and what it was made from.

    entry: the keys of `config.theory.FixedOverlap`. x is Q22. Quantities, by series: `fixed`: Q11;
    `converged`: fixed, 1 or 0.
    """
    setting = Setting(entry["skip"], entry["activation"], entry["regulariser"], entry["threads"])
    strength, alpha = entry["side_information"], entry["alpha"]
    strong = strength / (1 + strength)
    overlaps = sorted(entry["overlaps"], reverse=True)
    seeds = np.random.SeedSequence(entry["seed"]).spawn(entry["scrambles"])
    found, converged = np.empty((2, len(seeds), len(overlaps)))
    label = f"layer 2 held, c = {setting.skip:g}"
    with threadpool_limits(1), Progress(found.size, "overlaps", label) as progress:
        for s, seed in enumerate(seeds):
            normal, initial = draws(entry["points"], seed), strong
            for k, q in enumerate(overlaps):
                fixed = fixed_point(alpha, (initial, q), setting, normal, fixed_layer=1)
                found[s, k], converged[s, k] = fixed.overlaps[0], fixed.converged
                initial = min(max(fixed.overlaps[0], LEAST) * ABOVE, strong)
                progress.update(1)
    parts = [
        rows("fixed", "Q11", overlaps, *mean_error(found)),
        rows("converged", "fixed", overlaps, converged.all(axis=0)),
    ]
    return joined([part[::-1] for part in parts], entry)
