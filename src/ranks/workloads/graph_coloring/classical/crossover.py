"""Greedy partition crossover, GPX (Galinier & Hao 1999, J. Comb. Optim. 3).

A child takes whole colour classes from its two parents in turn, always the largest that is left, so
it inherits which nodes have the same colour, not which colour they have.

Legend: N nodes, K colours.
"""

from __future__ import annotations

import numpy as np

from ranks.jit import kernel
from ranks.workloads.graph_coloring.classical.rng import mix, randint
from ranks.workloads.graph_coloring.graphs.graph import Ints


@kernel("int64[::1](int64[::1], int64[::1], int64, int64)")
def greedy_partition_crossover(first_N: Ints, second_N: Ints, k: int, seed: int) -> Ints:
    """A child int64[N] of two colourings with the colours 0..k-1.

    Colour c is the largest class of the first parent (even c) or of the second (odd c), of the
    nodes that the child has not coloured yet; random number c of the seed breaks ties. The nodes
    that are left get random colours: node v by number k + v.
    """
    n, key = len(first_N), mix(np.uint64(seed))
    size_2K = np.zeros((2, k), np.int64)
    child_N = np.full(n, -1)
    for v in range(n):
        size_2K[0, first_N[v]] += 1
        size_2K[1, second_N[v]] += 1
    for colour in range(k):
        parent_N, size_K = (first_N, size_2K[0]) if colour % 2 == 0 else (second_N, size_2K[1])

        # Choose one of the largest classes.
        largest, num_ties = size_K.max(), 0
        for c in range(k):
            num_ties += size_K[c] == largest
        chosen, skip = 0, randint(key, colour, num_ties)
        for c in range(k):
            if size_K[c] == largest:
                if skip == 0:
                    chosen = c
                    break
                skip -= 1

        # Give its nodes to the child, and take them from both parents.
        for v in range(n):
            if child_N[v] < 0 and parent_N[v] == chosen:
                child_N[v] = colour
                size_2K[0, first_N[v]] -= 1
                size_2K[1, second_N[v]] -= 1
    for v in range(n):
        if child_N[v] < 0:
            child_N[v] = randint(key, k + v, k)
    return child_N
