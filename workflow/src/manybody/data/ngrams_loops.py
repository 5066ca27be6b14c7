"""The compiled loops that draw sequences from n-grams and from Markov chains, token by token."""

import numpy as np

from manybody.io.compiled import njit


@njit(nogil=True, cache=True)
def interpolated(tokens, first, stop, vocabulary, uniforms, levels, discounts):
    """Fills `tokens[:, first:stop]` (N, L), each from its n - 1 predecessors, interpolated.

    uniforms: (N, stop - first, n + 1), one for the uniform distribution and for each of n levels
    levels: of the orders 1 ... n, (k-grams by their keys, sums of their counts up to each,
        contexts by their keys, the first k-gram of each context and the end)
    """
    for row in range(len(tokens)):
        for place in range(first, stop):
            own = uniforms[row, place - first]
            token = min(np.int64(own[0] * vocabulary), vocabulary - 1)
            for order in range(len(levels), 0, -1):
                grams, sums, contexts, starts = levels[order - 1]
                key = np.int64(0)
                for before in range(place - order + 1, place):
                    key = key * vocabulary + tokens[row, before]
                context = np.searchsorted(contexts, key)
                if context == len(contexts) or contexts[context] != key:
                    continue
                low, high, discount = starts[context], starts[context + 1], discounts[order - 1]
                wanted = own[order] * (sums[high] - sums[low])
                if wanted >= sums[high] - sums[low] - discount * (high - low):
                    continue  # the share of the next lower order
                left, right = low, high - 1
                while left < right:
                    middle = (left + right) // 2
                    if sums[middle + 1] - sums[low] - discount * (middle + 1 - low) > wanted:
                        right = middle
                    else:
                        left = middle + 1
                token = grams[left] % vocabulary
                break
            tokens[row, place] = token


@njit(nogil=True, cache=True)
def walked(tokens, first, states, uniforms, starts, targets, labels, weights, after):
    """Fills `tokens[:, first:]` (N, L) by walks over the edges of a graph from `states` (N,).

    uniforms: (N, L - first)
    starts: the first edge of each state and the end; targets and labels: state and token that an
        edge leads to; weights: of edges
    after: (L - first, states), by which the weight of an edge is multiplied in each step
    """
    for row in range(len(tokens)):
        state = states[row]
        for step in range(tokens.shape[1] - first):
            low, high, total = starts[state], starts[state + 1], 0.0
            for edge in range(low, high):
                total += weights[edge] * after[step, targets[edge]]
            wanted, chosen = uniforms[row, step] * total, low
            for edge in range(low, high):
                weight = weights[edge] * after[step, targets[edge]]
                if weight > 0:
                    chosen = edge
                    wanted -= weight
                    if wanted < 0:
                        break
            tokens[row, first + step] = labels[chosen]
            state = targets[chosen]
