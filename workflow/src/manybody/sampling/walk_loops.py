"""Metropolis-Hastings chains between two calls of their backend, in compiled loops."""

from collections import namedtuple

import numpy as np

from manybody.io.compiled import njit

# C chains that make S sweeps, and what is recorded of them. visits, proposing, accepting (C,
# steps): of each step the position, the uniform number that draws its proposal, and the logarithm
# of that which accepts it. tokens, initial (C, L): the states and their starts. energies, step
# (C,): those of the states, and the steps done. ready (C,): chains whose next step proposes another
# token, `proposals`, of which the logit is higher by `gains`. same, accepted, changed, recorded
# (S, C): arrays of a `Record`. kept (K, C, L): states after the sweeps whose `slot` (S,) is not
# negative.
Walk = namedtuple(
    "Walk",
    "visits proposing accepting tokens initial energies step ready proposals gains same accepted "
    "changed recorded kept slot",
)


@njit(nogil=True, cache=True)
def asked(walk, ahead):
    """The chains (n,) that wait for a proposal; and of the next `ahead` steps of each, those after
    the last like it, chain, position, token and uniform number (n ahead,)."""
    last = walk.visits.shape[1]
    waiting = np.flatnonzero(~walk.ready & (walk.step < last))
    count = len(waiting) * ahead
    chains, positions, current = (
        np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64),
    )  # fmt: skip
    numbers = np.empty(count)
    for m in range(count):
        c = waiting[m // ahead]
        t = min(walk.step[c] + m % ahead, last - 1)
        i = walk.visits[c, t]
        chains[m], positions[m], current[m] = c, i, walk.tokens[c, i]
        numbers[m] = walk.proposing[c, t]
    return waiting, chains, positions, current, numbers


@njit(nogil=True, cache=True)
def skip_same(walk, waiting, drawn, gains):
    """Makes the steps of chains (n,) that draw the token that is there; another one makes a chain
    ready. drawn, gains (n, ahead): tokens, and by how much their logit is higher."""
    last = walk.visits.shape[1]
    length = last // len(walk.same)
    for m in range(len(waiting)):
        c = waiting[m]
        for n in range(drawn.shape[1]):
            t = walk.step[c]
            if t == last:
                break
            if drawn[m, n] != walk.tokens[c, walk.visits[c, t]]:
                walk.ready[c], walk.proposals[c], walk.gains[c] = True, drawn[m, n], gains[m, n]
                break
            walk.same[t // length, c] += 1
            finish(walk, c)


@njit(nogil=True, cache=True)
def ready_moves(walk):
    """The chains (n,) that are ready, and position and proposal of each."""
    moving = np.flatnonzero(walk.ready)
    positions = np.empty_like(moving)
    for m in range(len(moving)):
        positions[m] = walk.visits[moving[m], walk.step[moving[m]]]
    return moving, positions, walk.proposals[moving]


@njit(nogil=True, cache=True)
def move(walk, moving, ratios, rises):
    """Accepts or refuses the proposals of chains (n,) by the logarithms `ratios` (n,); -E rises by
    `rises` (n,). Returns which were accepted (n,)."""
    length = walk.visits.shape[1] // len(walk.same)
    accepted = np.empty(len(moving), np.bool_)
    for m in range(len(moving)):
        c = moving[m]
        t = walk.step[c]
        accepted[m] = walk.accepting[c, t] < ratios[m]
        if accepted[m]:
            walk.tokens[c, walk.visits[c, t]] = walk.proposals[c]
            walk.energies[c] -= rises[m]
            walk.accepted[t // length, c] += 1
        walk.ready[c] = False
        finish(walk, c)
    return accepted


@njit(nogil=True, cache=True)
def finish(walk, c):
    """Counts a step of chain c as done, and records it where it ends a sweep."""
    length = walk.visits.shape[1] // len(walk.same)
    walk.step[c] += 1
    if walk.step[c] % length:
        return
    sweep = walk.step[c] // length - 1
    walk.recorded[sweep, c] = walk.energies[c]
    for i in range(walk.tokens.shape[1]):
        walk.changed[sweep, c] += walk.tokens[c, i] != walk.initial[c, i]
    if walk.slot[sweep] >= 0:
        walk.kept[walk.slot[sweep], c] = walk.tokens[c]
