"""Solving with little time, or with a net that finds nothing better; and stopping at the time
limit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.checker import check_sol
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving import best_colouring
from ranks.workloads.graph_coloring.solving.best_colouring import Limit
from ranks.workloads.graph_coloring.solving.best_colouring import best_colouring as colour
from ranks.workloads.graph_coloring.solving.search.decrease_colours import SolverResult
from ranks.workloads.graph_coloring.solving.solve import solve
from tests.graph_coloring.example_graphs import LARGE, is_proper, random_graph, write_col
from tests.graph_coloring.fake_clock import FakeClock

C5 = Graph.of(5, [(v, (v + 1) % 5) for v in range(5)])


def test_never_worse_than_dsatur(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the net finds nothing better, the result is DSATUR's, and says so."""
    most = num_colours(dsatur(LARGE))
    helpless = SolverResult(np.zeros(LARGE.n, dtype=np.int64), LARGE.num_edges, 0.1, 0.1)
    poor = SolverResult(np.arange(LARGE.n), 0, 0.1, 0.1)
    for result in (helpless, poor):
        monkeypatch.setattr(best_colouring.NetSolvers, "pipeline", lambda *rest, result=result: result)
        found = colour(LARGE, load_net(run), k=None, limit=Limit.from_now(10.0), seed=0)
        assert (found.found_by, found.num_colours, found.conflicts) == ("DSATUR", most, 0)
        assert found.report is not None


def test_the_net_uses_one_thread(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more threads a round waits for the slowest, which held no budget next to other programs."""
    used, threads = list[int](), torch.get_num_threads()
    result = SolverResult(np.arange(LARGE.n), 0, 0.1, 0.1)
    for name in ("pipeline", "repaired"):
        search = lambda *rest: used.append(torch.get_num_threads()) or result  # noqa: E731
        monkeypatch.setattr(best_colouring.NetSolvers, name, search)
    torch.set_num_threads(3)
    colour(LARGE, load_net(run), k=None, limit=Limit.from_now(10.0), seed=0)
    best_colouring.by_net_alone(LARGE, load_net(run), k=None, limit=Limit.from_now(10.0), seed=0)
    assert (used, torch.get_num_threads()) == ([1, 1], 3)
    torch.set_num_threads(threads)


def test_a_greedy_colouring_is_reported_as_one(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proper colouring that no component of the pipeline claims was completed greedily."""
    result = SolverResult(tabucol(LARGE, 30, 0, max_moves=500_000).colours_N, 0, 0.1, 0.1)
    monkeypatch.setattr(best_colouring.NetSolvers, "pipeline", lambda *rest: result)
    assert colour(LARGE, load_net(run), k=None, limit=Limit.from_now(10.0), seed=0).found_by == "a greedy colouring"


def test_the_net_is_skipped_if_the_graph_is_too_large_for_the_time(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_colouring, "MAX_ENTRIES_PER_SECOND", 0)
    monkeypatch.setattr(best_colouring, "MAX_EXACT_NODES", 0)
    monkeypatch.setattr(best_colouring.NetSolvers, "pipeline", lambda *rest: pytest.fail("the net was asked"))
    fewer = num_colours(dsatur(LARGE)) - 1
    net = load_net(run)
    for k in (None, fewer):
        with monkeypatch.context() as patch:
            FakeClock(tick_s=0.001).use(patch)
            found = colour(LARGE, net, k=k, limit=Limit.from_now(1.0), seed=0)
        assert (found.found_by, found.conflicts, found.report) == ("TabuCol", 0, None)
        assert is_proper(LARGE, found.colours_N, fewer)
        assert "too many for it in this time" in found.without_net
        assert 0 < found.found_s <= found.seconds


@pytest.mark.parametrize("budget", ["0.001s", "0.3s"])
@pytest.mark.parametrize("graph", [C5, LARGE], ids=["cycle", "large"])
def test_no_time_is_too_short_for_a_proper_colouring(
    graph: Graph, run: str, tmp_path: Path, budget: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """DSATUR and a clique settle neither of the two graphs."""
    col, sol = write_col(tmp_path / "g.col", graph), tmp_path / "g.sol"
    assert num_colours(dsatur(graph)) > len(greedy_clique(graph))
    assert solve(str(col), run=run, budget=budget, out=sol) == 0
    assert check_sol(col, sol) == []
    found_by = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("found by"))
    assert "nothing" not in found_by


@pytest.mark.parametrize(("n", "density"), [(800, 0.9), (6000, 0.004)], ids=["dense", "sparse"])
@pytest.mark.parametrize("jump_after", [8, 12, 20])
def test_every_phase_stops_at_the_time_limit(
    n: int, density: float, jump_after: int, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is over after some readings of the clock, in different phases; then few more
    readings follow. A search that starts just then has the time of 20 readings.

    test_features.py and the constants of the searches limit the work between two readings.
    """
    graph = random_graph(np.random.default_rng(1), n, density)
    net = load_net(run)
    colour(C5, net, k=None, limit=Limit.from_now(0.1), seed=0)
    clock = FakeClock(0.024, jump_after).use(monkeypatch)
    found = colour(graph, net, k=None, limit=Limit.from_now(0.5), seed=0)
    assert found.conflicts == 0
    assert clock.readings < jump_after + 30
