"""What is given when the time is short, or when the net finds nothing better; and that the time is kept."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.graphs.checker import check_sol
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving import solution
from ranks.workloads.graph_coloring.solving.solution import by_net
from ranks.workloads.graph_coloring.solving.solve import solve
from ranks.workloads.graph_coloring.solving.ways import Answer
from tests.graph_coloring.known import LARGE, is_proper, random_graph, write_col

C5 = Graph.of(5, [(v, (v + 1) % 5) for v in range(5)])


def test_never_worse_than_dsatur_and_it_says_so(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the net finds nothing the answer is DSATUR's, and bears its name."""
    most, helpless = num_colours(dsatur(LARGE)), Answer(np.zeros(LARGE.n, dtype=np.int64), LARGE.num_edges, 0.1, 0.1)
    poor = Answer(np.arange(LARGE.n), 0, 0.1, 0.1)
    monkeypatch.setattr(solution, "READ_SHARE", 1.0)
    for answer in (helpless, poor):
        monkeypatch.setattr(solution.NetWays, "pipeline", lambda *rest, answer=answer: answer)
        found = by_net(LARGE, load_net(run), k=None, budget_s=0.2, seed=0)
        assert (found.found_by, found.num_colours, found.conflicts) == ("DSATUR", most, 0)
        assert found.told is not None


def test_a_greedy_colouring_is_called_one(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proper colouring that no part of the pipeline claims was made by giving colours to what was left."""
    answer = Answer(dsatur(LARGE), 0, 0.1, 0.1)
    monkeypatch.setattr(solution, "READ_SHARE", 1.0)
    monkeypatch.setattr(solution.NetWays, "pipeline", lambda *rest: answer)
    assert by_net(LARGE, load_net(run), k=None, budget_s=0.2, seed=0).found_by == "a greedy colouring"


def test_a_net_that_could_not_even_read_the_graph_in_time_is_left_out(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solution, "READ_SHARE", 0.0)
    monkeypatch.setattr(solution, "MOST_EXACT_NODES", 0)
    monkeypatch.setattr(solution.NetWays, "pipeline", lambda *rest: pytest.fail("the net was asked"))
    fewer = num_colours(dsatur(LARGE)) - 1
    for k in (None, fewer):
        found = by_net(LARGE, load_net(run), k=k, budget_s=1.0, seed=0)
        assert (found.found_by, found.conflicts, found.told) == ("TabuCol", 0, None)
        assert is_proper(LARGE, found.colours_N, fewer)
        assert "to read the graph" in found.without_net
        assert 0 < found.found_s <= found.seconds


@pytest.mark.parametrize("budget", ["0.001s", "0.3s"])
@pytest.mark.parametrize("graph", [C5, LARGE], ids=["cycle", "large"])
def test_no_time_is_too_short_for_a_proper_colouring(
    graph: Graph, run: str, tmp_path: Path, budget: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither of the two is settled by DSATUR and a clique."""
    col, sol = write_col(tmp_path / "g.col", graph), tmp_path / "g.sol"
    assert num_colours(dsatur(graph)) > len(greedy_clique(graph))
    assert solve(str(col), run=run, budget=budget, out=sol) == 0
    assert check_sol(col, sol) == []
    found_by = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("found by"))
    assert "nothing" not in found_by


@pytest.mark.parametrize(("n", "density"), [(800, 0.9), (6000, 0.004)], ids=["dense", "sparse"])
def test_a_budget_is_kept(n: int, density: float, run: str) -> None:
    """By NumPy's features alone the dense graph took ten times as long, before a first try."""
    graph = random_graph(np.random.default_rng(1), n, density)
    net = load_net(run)
    by_net(C5, net, k=None, budget_s=0.1, seed=0)
    begin = time.process_time()
    found = by_net(graph, net, k=None, budget_s=0.5, seed=0)
    assert found.conflicts == 0
    assert time.process_time() - begin < 1.5
