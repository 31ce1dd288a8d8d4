"""Hard 3-colourable graphs: random edges are added until no 3-colouring is left; the graph just before is the instance.

The construction follows the positives of Lemos et al. 2019 ("Graph colouring meets deep learning", arXiv 1903.04598)
and Toenshoff et al. 2021 (RUN-CSP, arXiv 1909.08387). Each graph is a pure function of (seed, purpose, n, item id).
"""

from __future__ import annotations

import numpy as np

from ranks.engine.draws import numpy_generator
from ranks.workloads.graph_coloring.exact import k_colour
from ranks.workloads.graph_coloring.graphs import Graph

START_EDGES_PER_NODE = 1.5
"""Below this a random graph is almost always 3-colourable, so the solver is first asked here."""


def hard_three_colourable(seed: int, purpose: str, n: int, item: int) -> Graph:
    """A 3-colourable graph of n nodes that one more edge, the next one drawn, makes not 3-colourable."""
    if n < 4:
        raise ValueError(f"every graph of {n} nodes is 3-colourable: give 4 nodes or more")
    rng = numpy_generator(seed, f"{purpose}/hard/{n}", 0, item)
    u_P, v_P = np.triu_indices(n, 1)
    pairs = np.stack([u_P, v_P], 1)[rng.permutation(len(u_P))].tolist()
    num_first = min(int(n * START_EDGES_PER_NODE), len(pairs) - 1)
    bitsets = [0] * n
    colours: list[int] | None = None
    for num_kept, (u, v) in enumerate(pairs):
        bitsets[u] |= 1 << v
        bitsets[v] |= 1 << u
        if num_kept < num_first or (colours is not None and colours[u] != colours[v]):
            continue
        colours = k_colour(bitsets, 3)
        if colours is None and num_kept == num_first:
            return _trimmed(n, pairs[: num_kept + 1])
        if colours is None:
            return Graph.of(n, pairs[:num_kept])
    raise AssertionError("the complete graph of 4 nodes or more is not 3-colourable")


def _trimmed(n: int, pairs: list[list[int]]) -> Graph:
    """The rare case that the first edges already allow no 3-colouring: the longest prefix that does."""
    while k_colour(Graph.of(n, pairs).bitsets(), 3) is None:
        pairs = pairs[:-1]
    return Graph.of(n, pairs)
