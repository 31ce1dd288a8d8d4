"""A colouring that is changed one node at a time, with its conflicts kept up to date; and the repair of a net's answer.

Legend: N nodes, K colours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranks.workloads.graph_coloring.graphs import Graph, Ints


class Colouring:
    """`colours_N`; `gamma_NK[v, c]`: neighbours of v with colour c; `own_N[v]`: those with v's own colour."""

    def __init__(self, graph: Graph, k: int, colours_N: Ints) -> None:
        self.k = k
        self.neighbours = graph.neighbours()
        self.colours_N = colours_N.astype(np.int64)
        self.gamma_NK = np.zeros((graph.n, k), dtype=np.int64)
        for v, near in enumerate(self.neighbours):
            self.gamma_NK[v] = np.bincount(self.colours_N[near], minlength=k)
        self.own_N = self.gamma_NK[np.arange(graph.n), self.colours_N]
        self.conflicts = int(self.own_N.sum()) // 2

    def recolour(self, node: int, new: int) -> None:
        """Give `node` the colour `new`; costs one look at its neighbours."""
        old = int(self.colours_N[node])
        near = self.neighbours[node]
        self.conflicts += int(self.gamma_NK[node, new] - self.gamma_NK[node, old])
        self.gamma_NK[near, old] -= 1
        self.gamma_NK[near, new] += 1
        self.colours_N[node] = new
        near_colours = self.colours_N[near]
        self.own_N[near[near_colours == old]] -= 1
        self.own_N[near[near_colours == new]] += 1
        self.own_N[node] = self.gamma_NK[node, new]


@dataclass(frozen=True)
class Repaired:
    """`changes`: recolourings made, at most 2n. `conflicts`: edges that still conflict."""

    colours_N: Ints
    conflicts: int
    changes: int


def repair(graph: Graph, k: int, colours_N: Ints, rng: np.random.Generator) -> Repaired:
    """Recolours conflicting nodes only, at most 2n times, and gives back the best colouring met.

    Each move takes the conflicting node and colour that leave the fewest conflicts; ties are drawn from `rng`. A node
    does not move again in the next few moves. A proper colouring is given back as it is.
    """
    state = Colouring(graph, k, colours_N)
    best, best_conflicts, changes, best_changes = state.colours_N.copy(), state.conflicts, 0, 0
    rested_N = np.zeros(graph.n, dtype=np.int64)
    while state.conflicts and changes < 2 * graph.n and k > 1:
        bad = np.flatnonzero((state.own_N > 0) & (rested_N <= changes))
        if len(bad) == 0:
            bad = np.flatnonzero(state.own_N)
        delta_MK = state.gamma_NK[bad] - state.own_N[bad, None]
        delta_MK[np.arange(len(bad)), state.colours_N[bad]] = graph.n
        ties = np.flatnonzero(delta_MK == delta_MK.min())
        row, colour = divmod(int(ties[rng.integers(len(ties))]), k)
        node = int(bad[row])
        state.recolour(node, colour)
        changes += 1
        rested_N[node] = changes + 1 + int(rng.integers(3))
        if state.conflicts < best_conflicts:
            best, best_conflicts, best_changes = state.colours_N.copy(), state.conflicts, changes
    return Repaired(best, best_conflicts, best_changes)
