"""Chains whose inverse temperature changes: annealing, and parallel tempering.

A clone's chain has R replicas, one for each inverse temperature 1 = beta_0 > beta_1 > ...; after
each sweep neighbouring ones (pairs 0-1, 2-3, ... and 1-2, 3-4, ... in turn) swap theirs with
probability min(1, exp((beta_t - beta_t+1) (E_t - E_t+1))). Without several temperatures R = 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manybody.io.refusal import Refusal
from manybody.sampling.diagnostics import Record
from manybody.sampling.draws import Draws


@dataclass(frozen=True)
class Schedule:
    """`annealing` is the first inverse temperature and the sweeps until it is 1; there are R
    `inverse_temperatures`, the first one 1, each smaller than the one before."""

    annealing: tuple[float, int] | None = None
    inverse_temperatures: tuple[float, ...] = (1.0,)

    @property
    def replicas(self) -> int:
        return len(self.inverse_temperatures)

    @property
    def constant(self) -> bool:
        return self.annealing is None and self.replicas == 1

    def betas(self, sweep: int, rungs: np.ndarray) -> np.ndarray:
        """Inverse temperatures of replicas at `rungs` in a sweep (1, 2, ...)."""
        if self.annealing is None:
            return np.array(self.inverse_temperatures)[rungs]
        first, sweeps = self.annealing
        return np.full(rungs.shape, min(1.0, first + (1.0 - first) * (sweep - 1) / sweeps))


CONSTANT = Schedule()


def swap(
    energies: np.ndarray,
    rungs: np.ndarray,
    betas: tuple[float, ...],
    sweep: int,
    uniforms,
) -> np.ndarray:
    """Swaps neighbours of `rungs` (C, R), in place, by `energies` (C, R) and `uniforms` (C, R - 1).

    Returns how many chains (R - 1,) swapped each pair. Odd sweeps try pairs 0-1, 2-3, ...
    """
    chains = np.arange(len(rungs))
    swapped = np.zeros(len(betas) - 1, dtype=np.int64)
    for pair in range((sweep + 1) % 2, len(betas) - 1, 2):
        cold, hot = ((rungs == rung).argmax(1) for rung in (pair, pair + 1))
        gap = energies[chains, cold] - energies[chains, hot]
        taken = np.log1p(-uniforms[:, pair]) < (betas[pair] - betas[pair + 1]) * gap
        rows = chains[taken]
        rungs[rows, cold[taken]], rungs[rows, hot[taken]] = pair + 1, pair
        swapped[pair] = taken.sum()
    return swapped


def tempered(
    step: Callable[..., Record],
    chains,
    visits: np.ndarray,
    uniforms: np.ndarray,
    initial: np.ndarray,
    keep: set[int],
    report,
    schedule: Schedule,
    rungs: np.ndarray,
    first: int,
    draws: Draws,
    part: np.ndarray,
) -> Record:
    """Sweeps `first`, `first` + 1, ... of C chains of R replicas each, by `step` (as `advance`).

    visits (C R, S, L), uniforms (C R, S, L, 2) and initial (C R, L) are of replicas, those of a
    chain adjacent; `rungs` (C R,) changes in place; `part` (C,) are the chains' numbers.
    """
    replicas, sweeps = schedule.replicas, visits.shape[1]
    count = len(rungs) // replicas
    whole, chain = Record(sweeps, count, replicas), np.arange(count)
    rungs = rungs.reshape(count, replicas)
    for n in range(sweeps):

        def tell(steps: int, record: Record, n=n) -> None:
            report(n * initial.size + steps, record)

        betas = schedule.betas(first + n, rungs.reshape(-1))
        now = slice(n, n + 1)
        one = step(
            chains, visits[:, now], uniforms[:, now], initial, {1}, tell if report else None, betas
        )
        energies = one.energies.reshape(count, replicas)
        if replicas > 1:
            numbers = draws.swaps(first + n, replicas - 1)[part]
            whole.swaps[n] = swap(
                energies, rungs, schedule.inverse_temperatures, first + n, numbers
            )
        order = rungs.argsort(1)
        whole.levels[n] = np.take_along_axis(energies, order, 1).mean(0)
        cold = chain * replicas + order[:, 0]
        for name in ("energies", "same", "accepted", "changed"):
            getattr(whole, name)[n] = getattr(one, name)[0, cold]
        if n + 1 in keep:
            whole.tokens[n + 1] = one.tokens[1][cold]
    return whole


def tempering(
    record: Record, inverse_temperatures: tuple[float, ...], chains: int, length: int
) -> dict[str, np.ndarray]:
    """The columns of `tempering.parquet`: what the replicas did, a row a sweep and temperature."""
    sweeps, pairs = record.swaps.shape
    shares = np.full((sweeps, pairs + 1), np.nan)
    for sweep in range(sweeps):
        tried = slice(sweep % 2, pairs, 2)  # see `swap`
        shares[sweep, tried] = record.swaps[sweep, tried] / chains
    return dict(
        sweep=np.arange(1, sweeps + 1).repeat(pairs + 1),
        inverse_temperature=np.tile(np.array(inverse_temperatures), sweeps),
        score=-record.levels.reshape(-1) / length,
        swapped=shares.reshape(-1),
    )


def check_swaps(swaps: np.ndarray, inverse_temperatures: tuple[float, ...]) -> None:
    """`Refusal` where neighbouring temperatures have not swapped in the second half of the sweeps.

    `swaps` (sweeps, R - 1) as of `Record`.
    """
    half = swaps[len(swaps) // 2 :]
    stuck = [
        f"{inverse_temperatures[pair]:g} and {inverse_temperatures[pair + 1]:g}"
        for pair in range(swaps.shape[1])
        if half[:, pair].sum() == 0
    ]
    if stuck and len(half) > 1:
        raise Refusal(
            f"found no swap between {'; '.join(stuck)} in the last {len(half)} sweeps; expected "
            "some of every pair of neighbours, else the cold chains learn nothing from the hot "
            "ones; put inverse temperatures between them",
            "inverse_temperatures",
        )
