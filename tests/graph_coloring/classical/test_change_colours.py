"""More colours make a colouring proper; fewer colours keep its largest classes."""

from __future__ import annotations

import numpy as np
import pytest

from ranks.workloads.graph_coloring.solving.search.change_colours import with_fewer_colours, with_more_colours
from tests.graph_coloring.example_graphs import queen, random_graph


@pytest.mark.parametrize("seed", range(12))
def test_more_colours_leave_no_conflict_and_keep_the_other_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(1, 40)), rng.uniform(0, 0.9))
    before = rng.integers(0, 4, graph.n)
    after = with_more_colours(graph, before)
    assert graph.conflicts(after) == 0
    conflict_E = before[graph.edges_E2[:, 0]] == before[graph.edges_E2[:, 1]]
    others = np.setdiff1d(np.arange(graph.n), graph.edges_E2[conflict_E])
    assert (after[others] == before[others]).all()
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
