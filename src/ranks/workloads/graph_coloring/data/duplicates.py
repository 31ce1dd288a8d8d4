"""Which graphs are the same: a hash that does not depend on how the nodes are numbered.

Legend: N nodes, D = 2E directed edges.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from ranks.workloads.graph_coloring.graphs.graph import Graph

Hashes = npt.NDArray[np.uint64]


def weisfeiler_lehman_hash(graph: Graph) -> int:
    """64 bits, equal for isomorphic graphs: colour refinement until no class of nodes splits any more.

    Each node's colour is hashed with the multiset of its neighbours' colours, again and again (Weisfeiler & Lehman
    1968; Shervashidze et al. 2011, JMLR 12). Graphs that this cannot tell apart (such as two regular ones of equal
    size and degree) have equal hashes too.
    """
    starts, near = graph.csr()
    colour_N = np.diff(starts).astype(np.uint64)
    num_classes = len(np.unique(colour_N))
    while True:
        heard_D = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mix(colour_N)[near], dtype=np.uint64)])
        heard_N = heard_D[starts[1:]] - heard_D[starts[:-1]]
        colour_N = _mix(_mix(colour_N) + heard_N * _ODD)
        before, num_classes = num_classes, len(np.unique(colour_N))
        if num_classes == before:
            break
    content = f"{graph.n} {graph.num_edges} ".encode() + np.sort(colour_N).tobytes()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


_ODD = np.uint64(0x9E3779B97F4A7C15)


def _mix(x: Hashes) -> Hashes:
    """The finaliser of splitmix64: sums of what it gives tell multisets apart."""
    x = (x + _ODD) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
