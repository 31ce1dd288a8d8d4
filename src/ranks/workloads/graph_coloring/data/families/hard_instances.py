"""Hard 3-colourable graphs: one more random edge makes them not 3-colourable.

Random edges are added until no 3-colouring exists; the graph before the last edge is taken.

The construction follows the positives of Lemos et al. 2019 ("Graph colouring meets deep learning",
arXiv 1903.04598) and Toenshoff et al. 2021 (RUN-CSP, arXiv 1909.08387). Each graph depends on
(seed, purpose, n, item) only.
"""

from __future__ import annotations

import numpy as np

from ranks.engine.sharding.rng import numpy_generator
from ranks.workloads.graph_coloring.classical.exact import k_colour
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

START_EDGES_PER_NODE = 1.5
"""With fewer edges a random graph is almost always 3-colourable, so the first exact search is here."""


def hard_three_colourable(seed: int, purpose: str, n: int, item: int) -> Graph:
    """A 3-colourable graph of n nodes that is not 3-colourable with the next random edge."""
    if n < 4:
        raise ValueError(f"every graph of {n} nodes is 3-colourable: give 4 nodes or more")
    rng = numpy_generator(seed, f"{purpose}/hard/{n}", 0, item)
    u_P, v_P = np.triu_indices(n, 1)
    pairs_P2 = np.stack([u_P, v_P], 1)[rng.permutation(len(u_P))]
    num_first = min(int(n * START_EDGES_PER_NODE), len(u_P) - 1)
    colours_N: Ints | None = None
    for num_kept in range(num_first, len(u_P)):
        u, v = pairs_P2[num_kept]
        if colours_N is not None and colours_N[u] != colours_N[v]:
            continue
        colours_N = k_colour(Graph.of(n, pairs_P2[: num_kept + 1]), 3)
        if colours_N is None and num_kept == num_first:
            return _trimmed(n, pairs_P2[: num_kept + 1])
        if colours_N is None:
            return Graph.of(n, pairs_P2[:num_kept])
    raise AssertionError("the complete graph of 4 nodes or more is not 3-colourable")


def _trimmed(n: int, pairs_P2: Ints) -> Graph:
    """The longest 3-colourable prefix, if (rarely) the first edges exclude a 3-colouring."""
    while k_colour(Graph.of(n, pairs_P2), 3) is None:
        pairs_P2 = pairs_P2[:-1]
    return Graph.of(n, pairs_P2)
