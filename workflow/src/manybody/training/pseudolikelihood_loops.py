"""The inner loops of `pseudolikelihood`: losses and gradients of the conditionals, site by site.

A site's logits are sums of rows of a table, one row for each colour that another site can have.
Rows count from those of each site's most frequent colour, whose sum is the same for all sequences
and is added once: only the sites that differ from it are visited.
"""

import numpy as np

from manybody.data.vector_loops import LANES, SUMS, clear
from manybody.io.compiled import njit
from manybody.training.pair_fit_loops import sequences


@njit(nogil=True, cache=True, fastmath=SUMS)
def factored(
    first, last, tokens, sequence_weights, offsets, rows, row_site, row_colour, common,
    attention, values, fields, gradients, site_losses, losses, of_attention, of_values, of_fields,
):  # fmt: skip
    """Sites first..last - 1 of H heads: J_ij(a, b) = sum_h A^h_ij V^h_ab.

    tokens (L, N), attention (H, L, L), values (H, q, q) by b, then a; fields (L, q). Writes
    site_losses (L,), adds to losses (N,), writes rows first.. of of_attention (L, H, L), of_values
    (L, H, q, q) and of_fields (L, q).
    """
    heads, length, vocabulary = len(attention), len(common), fields.shape[1]
    lanes = np.empty((2, len(row_site) + 1, -(-vocabulary // LANES), LANES))
    tables, of_tables = lanes[0], lanes[1]
    numbers = lanes.reshape(2, len(row_site) + 1, -1)
    table, of_table = numbers[0, 1:], numbers[1, 1:]
    base, of_base = numbers[0, 0], numbers[1, 0]
    for i in range(first, last):
        clear(tables)
        # Not by a slice: what numpy says of shapes takes seconds to compile.
        for a in range(vocabulary):
            base[a] = fields[i, a]
        for h in range(heads):
            for j in range(length):
                weight = attention[h, i, j] if j != i else 0.0
                for a in range(vocabulary):
                    base[a] += weight * values[h, common[j], a]
            for row in range(len(row_site)):
                j, b = row_site[row], row_colour[row]
                weight = attention[h, i, j] if j != i else 0.0
                for a in range(vocabulary):
                    table[row, a] += weight * (values[h, b, a] - values[h, common[j], a])
        clear(of_tables)
        site_losses[i] = sequences(
            tokens[i], sequence_weights, offsets, rows, tables[1:], tables[:1], gradients,
            of_tables[1:], of_tables[:1], losses, vocabulary,
        )  # fmt: skip
        if not gradients:
            continue
        for a in range(vocabulary):
            of_fields[i, a] = of_base[a]
        for h in range(heads):
            part = of_values[i, h]
            part[:] = 0.0
            for j in range(length):
                total, weight, c = 0.0, attention[h, i, j] if j != i else 0.0, common[j]
                for a in range(vocabulary):
                    total += of_base[a] * values[h, c, a]
                    part[c, a] += weight * of_base[a]
                of_attention[i, h, j] = total
            for row in range(len(row_site)):
                j, b = row_site[row], row_colour[row]
                total, weight, c = 0.0, attention[h, i, j] if j != i else 0.0, common[j]
                for a in range(vocabulary):
                    gradient = of_table[row, a]
                    total += gradient * (values[h, b, a] - values[h, c, a])
                    part[b, a] += weight * gradient
                    part[c, a] -= weight * gradient
                of_attention[i, h, j] += total
            of_attention[i, h, i] = 0.0
