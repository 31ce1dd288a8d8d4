"""Reference implementations of the local searches: the same rules and random numbers as the
compiled ones, but slow.

All counts are computed from the colours at each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ranks.workloads.graph_coloring.graphs.graph import Graph

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15


def splitmix64(word: int) -> int:
    word = (word + GAMMA) & MASK
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


def randint(seed: int, index: int, limit: int) -> int:
    """Random number `index` of a seed, in 0..limit-1."""
    return (splitmix64((splitmix64(seed) + index * GAMMA) & MASK) >> 32) * limit >> 32


@dataclass
class ReferenceSearch:
    """A local search. `conflicting`: the conflicting nodes, in the order that the compiled searches
    keep."""

    graph: Graph
    k: int
    seed: int
    colours: list[int]
    move: int = 0
    conflicting: list[int] = field(default_factory=list)
    tabu: dict[tuple[int, int], int] = field(default_factory=dict)
    tabu_until: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.neighbours = [row.tolist() for row in self.graph.neighbours()]
        self.conflicting = [v for v in range(self.graph.n) if self.gamma(v, self.colours[v])]
        self.best, self.best_colours, self.best_move = self.conflicts, list(self.colours), 0

    def gamma(self, node: int, colour: int) -> int:
        """How many neighbours of a node have a colour."""
        return sum(self.colours[u] == colour for u in self.neighbours[node])

    def delta(self, node: int, colour: int) -> int:
        """The change of the number of conflicts if a node gets a colour."""
        return self.gamma(node, colour) - self.gamma(node, self.colours[node])

    @property
    def conflicts(self) -> int:
        return self.graph.conflicts(self.colours)

    def choose(self, allowed: list[tuple[int, int]]) -> tuple[int, int]:
        """One of the moves that leave the fewest conflicts."""
        deltas = [self.delta(*move) for move in allowed]
        ties = [move for move, delta in zip(allowed, deltas, strict=True) if delta == min(deltas)]
        return ties[randint(self.seed, self.graph.n + 2 * self.move, len(ties))]

    def random_tenure(self, limit: int) -> int:
        """The second random number of a move."""
        return randint(self.seed, self.graph.n + 2 * self.move + 1, limit)

    def recolour(self, node: int, new: int) -> None:
        assert node in self.conflicting, "a node without conflict was moved"
        self.colours[node] = new
        for v in [*self.neighbours[node], node]:
            conflicts = self.gamma(v, self.colours[v]) > 0
            if v in self.conflicting and not conflicts:
                position, last = self.conflicting.index(v), self.conflicting.pop()
                if last != v:
                    self.conflicting[position] = last
            elif conflicts and v not in self.conflicting:
                self.conflicting.append(v)
        if self.conflicts < self.best:
            self.best, self.best_colours, self.best_move = self.conflicts, list(self.colours), self.move

    def tabucol_move(self) -> None:
        self.move += 1
        allowed = [
            (v, c)
            for v in self.conflicting
            for c in range(self.k)
            if c != self.colours[v]
            and (self.tabu.get((v, c), 0) < self.move or self.conflicts + self.delta(v, c) < self.best)
        ]
        if allowed:
            node, new = self.choose(allowed)
            tenure = self.random_tenure(10) + int(0.6 * len(self.conflicting))
            self.tabu[node, self.colours[node]] = self.move + tenure
            self.recolour(node, new)

    def repair_move(self) -> None:
        allowed = [v for v in self.conflicting if self.tabu_until.get(v, 0) <= self.move] or self.conflicting
        self.move += 1
        node, new = self.choose([(v, c) for v in allowed for c in range(self.k) if c != self.colours[v]])
        self.tabu_until[node] = self.move + 1 + self.random_tenure(3)
        self.recolour(node, new)
