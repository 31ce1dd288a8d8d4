"""More colours make a colouring proper, fewer keep its largest classes; the search that descends through them."""

from __future__ import annotations

import numpy as np
import pytest

from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.solving.change_colours import with_fewer_colours, with_more_colours
from ranks.workloads.graph_coloring.solving.ways import descend
from tests.graph_coloring.known import queen, random_graph


@pytest.mark.parametrize("seed", range(12))
def test_more_colours_leave_no_conflict_and_spare_the_innocent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(1, 40)), rng.uniform(0, 0.9))
    before = rng.integers(0, 4, graph.n)
    after = with_more_colours(graph, before)
    assert graph.conflicts(after) == 0
    clash_E = before[graph.edges_E2[:, 0]] == before[graph.edges_E2[:, 1]]
    innocent = np.setdiff1d(np.arange(graph.n), graph.edges_E2[clash_E])
    assert (after[innocent] == before[innocent]).all()
    assert (after == before).all() == (graph.conflicts(before) == 0)


def test_fewer_colours_keep_the_largest_classes() -> None:
    graph = queen(5, 5)
    colours_N = np.arange(25) % 7
    colours_N[:6] = 3
    fewer = with_fewer_colours(graph, colours_N, 4)
    assert set(fewer.tolist()) == {0, 1, 2, 3}
    assert len(set(fewer[colours_N == 3].tolist())) == 1
    again = with_fewer_colours(graph, np.arange(25), 25)
    assert graph.conflicts(again) == 0


def test_the_descent_opens_colours_then_halves_the_way_down() -> None:
    """An attempt that succeeds from 7 colours on: the ks that are asked for, and the answer."""
    graph, asked = queen(6, 6), list[int]()
    proper_N = np.array([(2 * (v % 6) + v // 6) % 7 for v in range(36)])
    assert graph.conflicts(with_more_colours(graph, proper_N)) == 0
    best_N = with_more_colours(graph, proper_N)
    needs = len(set(best_N.tolist()))

    def attempt(core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        asked.append(k)
        assert known_C is None or len(set(known_C.tolist())) > k
        if k >= needs:
            return best_N, 0
        return np.arange(36) % 2, graph.conflicts(np.arange(36) % 2)

    answer = descend(graph, 0.05, 0, attempt, first_k=6, reduces=False, opens=True)
    assert (answer.conflicts, answer.num_colours) == (0, needs)
    assert asked[0] == 6
    assert all(k >= 6 for k in asked)
    assert len(set(asked)) < 12
