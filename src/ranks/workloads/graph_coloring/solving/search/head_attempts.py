"""Attempts with k colours for `decrease_colours`: TabuCol until it fails once, then HEAD.

Legend: N nodes, C nodes of the k-core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ranks.workloads.graph_coloring.classical.head import head
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.solving.budget import WALL, SearchClock
from ranks.workloads.graph_coloring.solving.search.change_colours import with_fewer_colours
from ranks.workloads.graph_coloring.solving.search.restarts import FIRST_MOVES_PER_NODE, random_starts

Start = Callable[[Graph, int, float, int], Ints]
"""(core, k, time allowed, seed) -> a colouring int64[C] to start from."""


def random_start(core: Graph, k: int, seconds: float, seed: int) -> Ints:
    """Random colours."""
    del seconds
    return next(random_starts(core.n, k, seed))


@dataclass
class HeadAttempts:
    """TabuCol until it fails once; then HEAD, for that k and all further ones.

    `start`: where TabuCol starts if no colouring with more colours is known. `found_by`: the
    component that found the last proper colouring.
    """

    clock: SearchClock = WALL
    start: Start = random_start
    found_by: str = "nothing"
    moves: int = 0
    generations: int = 0
    tabucol_failed: bool = False

    def __call__(self, core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        """An `Attempt`: (colours int64[C], conflicts)."""
        end_s, start_C = self.clock() + seconds, None
        if not self.tabucol_failed:
            start_C = self.start(core, k, seconds, seed) if known_C is None else with_fewer_colours(core, known_C, k)
            max_moves, max_s = self.clock.limits(FIRST_MOVES_PER_NODE * core.n, max(end_s - self.clock(), 0.0))
            found = tabucol(core, k, seed, max_moves=max_moves, max_s=max_s, start_N=start_C)
            self._charge(found.moves, core)
            if found.conflicts == 0:
                self.found_by = "TabuCol"
                return found.colours_N, 0
            self.tabucol_failed, start_C = True, found.colours_N
        max_moves, max_s = self.clock.limits(None, max(end_s - self.clock(), 0.0))
        best = head(core, k, seed, max_moves=max_moves, max_s=max_s, start_N=start_C)
        self._charge(best.moves, core)
        self.generations += best.generations
        if best.conflicts == 0:
            self.found_by = "HEAD"
        return best.colours_N, best.conflicts

    def _charge(self, moves: int, core: Graph) -> None:
        self.moves += moves
        self.clock.charge(moves + core.n)
