"""Metropolis-Hastings chains between two calls of their backend, in compiled loops."""

from collections import namedtuple

import numpy as np

from manybody.io.compiled import njit

# C chains that make S sweeps, and what is recorded of them.
# visits, proposing, accepting (C, steps): of each step the position, the uniform number that draws
#     its proposal, and the logarithm of the uniform number that accepts it.
# tokens, initial (C, L): the states and their starts. energies (C,): those of the states.
# step (C,): how many steps are done. ready (C,): True where the next step has drawn another token,
#     which `proposals` (C,) has; its logit is higher by `gains` (C,).
# same, accepted, changed, recorded (S, C): the arrays of a `Record`.
# kept (K, C, L): states after some sweeps. slot (S,): the place of each sweep in `kept`, or -1.
Walk = namedtuple(
    "Walk",
    "visits proposing accepting tokens initial energies step ready proposals gains same accepted "
    "changed recorded kept slot",
)


@njit(nogil=True, cache=True)
def asked(walk, ahead):
    """Returns the chains (n,) that wait for a proposal, and chain, position, token and uniform
    number of their next `ahead` steps (n ahead,); the last step stands for those beyond it."""
    last = walk.visits.shape[1]
    waiting = np.flatnonzero(~walk.ready & (walk.step < last))
    chains = np.empty(len(waiting) * ahead, np.int64)
    positions, current = np.empty_like(chains), np.empty_like(chains)
    numbers = np.empty(len(chains))
    for m in range(len(chains)):
        c = waiting[m // ahead]
        t = min(walk.step[c] + m % ahead, last - 1)
        i = walk.visits[c, t]
        chains[m], positions[m], current[m] = c, i, walk.tokens[c, i]
        numbers[m] = walk.proposing[c, t]
    return waiting, chains, positions, current, numbers


@njit(nogil=True, cache=True)
def skip_same(walk, waiting, drawn, gains):
    """Skips steps of chains (n,) that draw the current token, to the first to draw another, which
    makes the chain ready. drawn (n, ahead): tokens; their logits are higher by gains (n, ahead)."""
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
    """Returns the chains (n,) that are ready, with position and proposal of each."""
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
    """Counts a step of chain c as done, and records the chain if a sweep ends there."""
    length = walk.visits.shape[1] // len(walk.same)
    walk.step[c] += 1
    if walk.step[c] % length:
        return
    sweep = walk.step[c] // length - 1
    walk.recorded[sweep, c] = walk.energies[c]
    for i in range(walk.tokens.shape[1]):
        walk.changed[sweep, c] += walk.tokens[c, i] != walk.initial[c, i]
        # Not the row at once: what numba says of shapes takes seconds to compile.
        if walk.slot[sweep] >= 0:
            walk.kept[walk.slot[sweep], c, i] = walk.tokens[c, i]
