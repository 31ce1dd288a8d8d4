"""Slow twins of the compiled searches: the same rules and random numbers, everything counted afresh at each step."""

from __future__ import annotations

from dataclasses import dataclass, field

from ranks.workloads.graph_coloring.graphs.graph import Graph

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def mix(word: int) -> int:
    word = (word + STEP) & MASK
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


def draw(seed: int, index: int, limit: int) -> int:
    """Number `index` of a seed, in 0..limit-1."""
    return (mix((mix(seed) + index * STEP) & MASK) >> 32) * limit >> 32


@dataclass
class Twin:
    """A local search under way. `bad`: the conflicting nodes, in the order that the compiled searches keep."""

    graph: Graph
    k: int
    seed: int
    colours: list[int]
    move: int = 0
    bad: list[int] = field(default_factory=list)
    tabu: dict[tuple[int, int], int] = field(default_factory=dict)
    rested: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.near = [row.tolist() for row in self.graph.neighbours()]
        self.bad = [v for v in range(self.graph.n) if self.gamma(v, self.colours[v])]
        self.best, self.best_colours, self.best_move = self.conflicts, list(self.colours), 0

    def gamma(self, node: int, colour: int) -> int:
        return sum(self.colours[u] == colour for u in self.near[node])

    def delta(self, node: int, colour: int) -> int:
        return self.gamma(node, colour) - self.gamma(node, self.colours[node])

    @property
    def conflicts(self) -> int:
        return self.graph.conflicts(self.colours)

    def choose(self, allowed: list[tuple[int, int]]) -> tuple[int, int]:
        """One of the moves that leave the fewest conflicts."""
        deltas = [self.delta(*move) for move in allowed]
        ties = [move for move, delta in zip(allowed, deltas, strict=True) if delta == min(deltas)]
        return ties[draw(self.seed, self.graph.n + 2 * self.move, len(ties))]

    def number(self, limit: int) -> int:
        """The second random number of a move."""
        return draw(self.seed, self.graph.n + 2 * self.move + 1, limit)

    def recolour(self, node: int, new: int) -> None:
        assert node in self.bad, "a node without conflict was moved"
        self.colours[node] = new
        for v in [*self.near[node], node]:
            conflicts = self.gamma(v, self.colours[v]) > 0
            if v in self.bad and not conflicts:
                place, last = self.bad.index(v), self.bad.pop()
                if last != v:
                    self.bad[place] = last
            elif conflicts and v not in self.bad:
                self.bad.append(v)
        if self.conflicts < self.best:
            self.best, self.best_colours, self.best_move = self.conflicts, list(self.colours), self.move

    def tabucol_move(self) -> None:
        self.move += 1
        allowed = [
            (v, c)
            for v in self.bad
            for c in range(self.k)
            if c != self.colours[v]
            and (self.tabu.get((v, c), 0) < self.move or self.conflicts + self.delta(v, c) < self.best)
        ]
        if allowed:
            node, new = self.choose(allowed)
            self.tabu[node, self.colours[node]] = self.move + self.number(10) + int(0.6 * len(self.bad))
            self.recolour(node, new)

    def repair_move(self) -> None:
        awake = [v for v in self.bad if self.rested.get(v, 0) <= self.move] or self.bad
        self.move += 1
        node, new = self.choose([(v, c) for v in awake for c in range(self.k) if c != self.colours[v]])
        self.rested[node] = self.move + 1 + self.number(3)
        self.recolour(node, new)
