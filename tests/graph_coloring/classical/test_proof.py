"""SAT proofs: against brute force, with both solvers, within limits; and removing dominated nodes."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from ranks.workloads.graph_coloring.classical.exact import chromatic_number
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.solving import best_colouring
from ranks.workloads.graph_coloring.solving.budget import MoveClock
from ranks.workloads.graph_coloring.solving.proof import sat
from ranks.workloads.graph_coloring.solving.proof.dominated import without_dominated
from ranks.workloads.graph_coloring.solving.solve import solve
from tests.graph_coloring.example_graphs import is_proper, of_networkx, queen, random_graph, write_col


def decided(graph: Graph, k: int) -> bool:
    try:
        colours_N = sat.decide(graph, k, 1e8, MoveClock())
    except sat.Impossible:
        return False
    assert colours_N is not None
    assert is_proper(graph, colours_N, k)
    return True


def test_the_sat_solvers_agree_with_the_exact_search() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        graph = random_graph(rng, int(rng.integers(1, 26)), rng.uniform(0, 0.9))
        chi = chromatic_number(graph)
        assert [decided(graph, k) for k in (chi - 1, chi, chi + 1) if k] == [False, True, True][chi == 1 :]
    assert decided(Graph.of(0, []), 1)


def test_dominated_nodes_take_the_colour_of_others() -> None:
    rng = np.random.default_rng(1)
    removed = 0
    for _ in range(40):
        graph = random_graph(rng, int(rng.integers(1, 30)), rng.uniform(0, 0.6))
        reduced = without_dominated(graph)
        chi = chromatic_number(graph)
        assert max(1, chromatic_number(reduced.core)) == chi
        colours_N = reduced.extend(np.arange(reduced.core.n))
        assert graph.conflicts(colours_N) == 0
        removed += len(reduced.removed)
    assert removed > 100
    star = without_dominated(of_networkx(nx.star_graph(9)))
    assert star.core.n == 2


def test_a_proof_that_is_not_finished_is_none() -> None:
    board = queen(8, 8)
    assert sat.decide(board, 8, 100_000, MoveClock()) is None
    assert sat.decide(board, 8, 0, MoveClock()) is None


def test_an_impossible_number_of_colours_needs_both_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = of_networkx(nx.mycielski_graph(5))
    with pytest.raises(sat.Impossible, match="CaDiCaL and MiniSat both prove that 4 colours are too few"):
        sat.decide(graph, 4, 1e8, MoveClock())
    monkeypatch.setattr(sat, "_by_minisat", lambda *rest: None)
    assert sat.decide(graph, 4, 1e8, MoveClock()) is None
    monkeypatch.setattr(sat, "_by_minisat", lambda *rest: True)
    with pytest.raises(AssertionError, match="MiniSat finds one"):
        sat.decide(graph, 4, 1e8, MoveClock())


def test_solve_proves_what_the_exact_search_cannot(
    tmp_path: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(best_colouring, "MAX_EXACT_NODES", 0)
    col = write_col(tmp_path / "g.col", of_networkx(nx.mycielski_graph(6)))
    assert solve(str(col), run=run, k=5, moves="40M") == 1
    out = capsys.readouterr().out
    assert "proven impossible with 5 colours: CaDiCaL and MiniSat both prove" in out
