"""The Weisfeiler-Lehman hash of a graph, which finds duplicates.

It does not depend on how the nodes are numbered.

Legend: N nodes, D = 2E directed edges.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from ranks.splitmix64 import GOLDEN_GAMMA_U64, MIX_1_U64, MIX_2_U64
from ranks.workloads.graph_coloring.graphs.graph import Graph

Hashes = npt.NDArray[np.uint64]


def weisfeiler_lehman_hash(graph: Graph) -> int:
    """A 64-bit hash that is equal for isomorphic graphs, by colour refinement.

    The refinement ends when no class of nodes splits.

    In each round the colour of a node is hashed with the multiset of its neighbours' colours
    (Weisfeiler & Lehman 1968; Shervashidze et al. 2011, JMLR 12). Graphs that colour refinement
    cannot distinguish have equal hashes too, for example two regular graphs of equal size and
    degree.
    """
    starts, neighbours = graph.csr()
    colour_N = np.diff(starts).astype(np.uint64)
    num_classes = len(np.unique(colour_N))
    while True:
        hashes_D = _mix(colour_N)[neighbours]
        cumulative = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes_D, dtype=np.uint64)])
        neighbour_sum_N = cumulative[starts[1:]] - cumulative[starts[:-1]]
        colour_N = _mix(_mix(colour_N) + neighbour_sum_N * GOLDEN_GAMMA_U64)
        before, num_classes = num_classes, len(np.unique(colour_N))
        if num_classes == before:
            break
    content = f"{graph.n} {graph.num_edges} ".encode() + np.sort(colour_N).tobytes()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _mix(x: Hashes) -> Hashes:
    """A hash of each element, with the constants of splitmix64.

    The sum of the hashes identifies a multiset. The steps are not those of splitmix64 itself.
    """
    x = (x + GOLDEN_GAMMA_U64) * MIX_1_U64
    x = (x ^ (x >> np.uint64(30))) * MIX_2_U64
    return x ^ (x >> np.uint64(31))
