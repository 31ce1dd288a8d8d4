"""Graph families for testing only, some in sizes that training never has.

Families whose chromatic number needs a search (random graphs, planar graphs, Paley graphs) have at
most 60 nodes.

Legend: N nodes, E undirected edges.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ranks.workloads.graph_coloring.data.families.generators import (
    Family,
    GeneratedGraph,
    edge_limit,
    random_degree,
    without_bounds,
)
from ranks.workloads.graph_coloring.graphs.graph import Graph

MAX_EXACT_NODES, MAX_NODES = 60, 1500
PALEY_PRIMES = (13, 17, 29, 41)
"""Primes q = 1 modulo 4. Not 5 (a cycle), not 37 and 53 (their exact search takes long)."""


def multipartite(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A complete multipartite graph with parts of random sizes."""
    k = int(rng.integers(2, max(3, n // 2)))
    part_N = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    adjacent_NN = part_N[:, None] != part_N[None, :]
    return GeneratedGraph(Graph.of(n, np.argwhere(np.triu(adjacent_NN, 1))), k, k, part_N)


def paley(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """The Paley graph of a prime q <= n: numbers below q, adjacent if they differ by a square."""
    choices = [q for q in PALEY_PRIMES if q <= n]
    q = choices[int(rng.integers(len(choices)))]
    squares = np.unique(np.arange(1, q) ** 2 % q)
    node_Q = np.arange(q)
    adjacent_QQ = np.isin((node_Q[:, None] - node_Q[None, :]) % q, squares)
    return without_bounds(Graph.of(q, np.argwhere(np.triu(adjacent_QQ, 1))))


def sudoku(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A Sudoku graph with b x b blocks: cells are adjacent in a row, a column or a block."""
    b = int(rng.integers(2, math.isqrt(math.isqrt(n)) + 1))
    row_N, column_N = np.divmod(np.arange(b**4), b * b)
    lines = (row_N, column_N, row_N // b * b + column_N // b)
    same_NN = np.logical_or.reduce([line[:, None] == line[None, :] for line in lines])
    colours_N = (row_N * b + row_N // b + column_N) % (b * b)
    return GeneratedGraph(Graph.of(b**4, np.argwhere(np.triu(same_NN, 1))), b * b, b * b, colours_N)


def windmill(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A windmill graph: cliques of k nodes that have one node in common."""
    k = int(rng.integers(3, min(n // 2, int(2 * edge_limit(n) / n) + 2) + 1))
    blades = (n - 1) // (k - 1)
    members = [np.concatenate([[0], 1 + blade * (k - 1) + np.arange(k - 1)]) for blade in range(blades)]
    pairs = np.concatenate([nodes[np.stack(np.triu_indices(k, 1), 1)] for nodes in members])
    return GeneratedGraph(
        Graph.of(1 + blades * (k - 1), pairs), k, k, np.concatenate([[0], np.tile(np.arange(1, k), blades)])
    )


def wheel(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A wheel graph: a cycle, and a hub that is adjacent to all its nodes."""
    rim_N = np.arange(n - 1)
    pairs = np.concatenate([np.stack([rim_N, (rim_N + 1) % (n - 1)], 1), np.stack([rim_N, np.full(n - 1, n - 1)], 1)])
    colours_N = np.append(rim_N % 2, 2)
    if n % 2 == 0:
        colours_N[n - 2] = 3
    return GeneratedGraph(Graph.of(n, pairs), 4 - n % 2, 4 - n % 2, colours_N)


def bipartite(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A random bipartite graph with sides of random sizes."""
    side_N = (np.arange(n) < rng.integers(1, n // 2 + 1)).astype(np.int64)
    adjacent_NN = side_N[:, None] != side_N[None, :]
    pairs = np.argwhere(np.triu(adjacent_NN, 1))
    count = min(len(pairs), round(random_degree(rng, n) * n / 2))
    return GeneratedGraph(Graph.of(n, pairs[rng.choice(len(pairs), size=count, replace=False)]), 2, 2, side_N)


def k_tree(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A random k-tree (chordal): each further node is joined to k nodes of a (k + 1)-clique."""
    k = int(rng.integers(2, max(3, round(min(n / 2, edge_limit(n) / n))) + 1))
    cliques = [list(range(k + 1))]
    pairs = list(itertools.combinations(range(k + 1), 2))
    colours = list(range(k + 1))
    for v in range(k + 1, n):
        clique = cliques[int(rng.integers(len(cliques)))]
        dropped = int(rng.integers(k + 1))
        colours.append(colours[clique[dropped]])
        chosen = clique[:dropped] + clique[dropped + 1 :]
        pairs += [(u, v) for u in chosen]
        cliques.append([*chosen, v])
    return GeneratedGraph(Graph.of(n, pairs), k + 1, k + 1, np.array(colours))


def barabasi_albert(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """Preferential attachment to high degrees (Barabasi & Albert 1999, Science 286)."""
    k = int(rng.integers(2, 7))
    pairs = [(u, k) for u in range(k)]
    for v in range(k + 1, n):
        ends = np.array(pairs).ravel()
        chosen: set[int] = set()
        while len(chosen) < k:
            chosen.add(int(ends[rng.integers(len(ends))]))
        pairs += [(u, v) for u in sorted(chosen)]
    return without_bounds(Graph.of(n, pairs))


def watts_strogatz(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A small world: a ring lattice, randomly rewired (Watts & Strogatz 1998, Nature 393)."""
    k, rewire_p = int(rng.integers(2, 6)), rng.uniform(0.05, 0.6)
    edges = {(min(v, u), max(v, u)) for v in range(n) for u in ((v + i) % n for i in range(1, k + 1))}
    for u, v in sorted(edges):
        w = int(rng.integers(n))
        new = (min(u, w), max(u, w))
        if rng.random() < rewire_p and w != u and new not in edges:
            edges.remove((u, v))
            edges.add(new)
    return without_bounds(Graph.of(n, sorted(edges)))


def triangulation(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A random planar triangulation: nodes inserted into random faces, then random edge flips."""
    faces: list[tuple[int, int, int]] = [(0, 1, 2), (0, 1, 2)]
    for v in range(3, n):
        a, b, c = faces.pop(int(rng.integers(len(faces))))
        faces += [(a, b, v), (a, c, v), (b, c, v)]
    for _ in range(4 * n):
        _flip(rng, faces)
    return without_bounds(Graph.of(n, [pair for face in faces for pair in itertools.combinations(face, 2)]))


def _flip(rng: np.random.Generator, faces: list[tuple[int, int, int]]) -> None:
    """Flips an edge: faces a-b-c and a-b-d become c-d-a and c-d-b, unless c-d is an edge."""
    one = int(rng.integers(len(faces)))
    c, a, b = _rotated(faces[one], int(rng.integers(3)))
    other = next(i for i, face in enumerate(faces) if i != one and a in face and b in face)
    (d,) = (v for v in faces[other] if v not in (a, b))
    if c != d and not any(c in face and d in face for face in faces):
        faces[one], faces[other] = (c, d, a), (c, d, b)


def _rotated(face: Sequence[int], turns: int) -> tuple[int, int, int]:
    a, b, c = (*face[turns:], *face[:turns])
    return a, b, c


UNSEEN: Mapping[str, Family] = {
    "multipartite": Family(multipartite, max_nodes=120),
    "paley": Family(paley, min_nodes=min(PALEY_PRIMES), max_nodes=MAX_EXACT_NODES),
    "sudoku": Family(sudoku, min_nodes=16, max_nodes=256),
    "windmill": Family(windmill, max_nodes=MAX_NODES),
    "wheel": Family(wheel, max_nodes=MAX_NODES),
    "bipartite": Family(bipartite, max_nodes=MAX_NODES),
    "k-tree": Family(k_tree, max_nodes=MAX_NODES),
    "barabasi-albert": Family(barabasi_albert, max_nodes=MAX_EXACT_NODES),
    "watts-strogatz": Family(watts_strogatz, min_nodes=12, max_nodes=MAX_EXACT_NODES),
    "triangulation": Family(triangulation, max_nodes=MAX_EXACT_NODES),
}
