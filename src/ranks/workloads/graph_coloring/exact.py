"""Exact colouring by branch and bound, for graphs of some dozens of nodes (near three colours: of some hundreds).

DSATUR branching (Brelaz 1979, Comm. ACM 22) with sets of nodes held as the bits of integers: `free[c]` is the set of
uncoloured nodes that colour c may still take, so that one step costs a few operations on integers. A colour that is
not used yet is tried once only: the others are its mirror images.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranks.workloads.graph_coloring.graphs import Graph


class NodeLimit(Exception):
    """The search looked at more nodes of its tree than it was allowed to."""


@dataclass(frozen=True)
class _Choice:
    """One level of the search: the node to colour, the colours still to try, and the state before it."""

    node: int
    colours: list[int]
    free: list[int]
    left: int
    used: int


def tightest(free: list[int], left: int) -> int | None:
    """The lowest node of `left` with the fewest free colours; none if a node has no free colour."""
    at_least = [0] * (len(free) + 1)  # at_least[j]: nodes with more than j free colours
    for c, nodes in enumerate(free):
        for j in range(c, 0, -1):
            at_least[j] |= at_least[j - 1] & nodes
        at_least[0] |= nodes
    if left & ~at_least[0]:
        return None
    for level in at_least[1:]:
        fewest = left & ~level
        if fewest:
            return (fewest & -fewest).bit_length() - 1
    raise ValueError("no node is left to choose from")


def by_degree(bitsets: list[int]) -> tuple[list[int], list[int]]:
    """(order, bitsets of the same graph with node order[i] renamed i), the largest degree first."""
    order = sorted(range(len(bitsets)), key=lambda v: -bitsets[v].bit_count())
    place = [0] * len(order)
    for i, v in enumerate(order):
        place[v] = i
    renamed = [0] * len(order)
    for v, others in enumerate(bitsets):
        while others:
            low = others & -others
            renamed[place[v]] |= 1 << place[low.bit_length() - 1]
            others ^= low
    return order, renamed


def k_colour(bitsets: list[int], k: int, max_nodes: int | None = None) -> list[int] | None:
    """A proper colouring 0..k-1 of the graph given by `Graph.bitsets`, or none if there is none.

    Raises NodeLimit after `max_nodes` branches.
    """
    order, near = by_degree(bitsets)
    colour = [0] * len(near)
    free, left, used = [(1 << len(near)) - 1] * k, (1 << len(near)) - 1, 0
    path: list[_Choice] = []
    branches = 0
    while left:
        node = tightest(free, left)
        if node is not None:
            colours = [c for c in range(min(used + 1, k)) if free[c] >> node & 1]
            path.append(_Choice(node, colours, free, left, used))
        while path and not path[-1].colours:
            path.pop()
        if not path:
            return None
        branches += 1
        if max_nodes is not None and branches > max_nodes:
            raise NodeLimit
        top = path[-1]
        c = top.colours.pop(0)
        colour[top.node] = c
        without = ~(1 << top.node)
        free = [nodes & without for nodes in top.free]
        free[c] &= ~near[top.node]
        left, used = top.left & without, max(top.used, c + 1)
    out = [0] * len(near)
    for i, v in enumerate(order):
        out[v] = colour[i]
    return out


def greedy_clique(bitsets: list[int]) -> list[int]:
    """A clique, grown greedily from the node of the largest degree: a lower bound of the chromatic number."""
    clique: list[int] = []
    candidates = (1 << len(bitsets)) - 1
    while candidates:
        nodes = [v for v in range(len(bitsets)) if candidates >> v & 1]
        best = max(nodes, key=lambda v: (bitsets[v] & candidates).bit_count())
        clique.append(best)
        candidates &= bitsets[best]
    return clique


def chromatic_number(graph: Graph, max_nodes: int | None = None) -> int:
    """The least number of colours, proven. An edgeless graph has 1, the empty graph 0. Raises NodeLimit."""
    bitsets = graph.bitsets()
    k = len(greedy_clique(bitsets))
    while k_colour(bitsets, k, max_nodes) is None:
        k += 1
    return k
