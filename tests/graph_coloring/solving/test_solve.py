"""Solving files and networkx graphs, with a small untrained net."""

from __future__ import annotations

import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from ranks.errors import UserError
from ranks.workloads import WORKLOADS, load
from ranks.workloads import graph_coloring as workload
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.checker import check_sol
from ranks.workloads.graph_coloring.graphs.dimacs import write_sol
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving import best_colouring
from ranks.workloads.graph_coloring.solving.best_colouring import Limit
from ranks.workloads.graph_coloring.solving.best_colouring import best_colouring as colour
from ranks.workloads.graph_coloring.solving.solve import solve
from tests.graph_coloring.example_graphs import (
    LARGE,
    is_proper,
    of_networkx,
    queen,
    random_graph,
    to_networkx,
    union,
    write_col,
)

C5 = Graph.of(5, [(v, (v + 1) % 5) for v in range(5)])


@pytest.fixture
def large(tmp_path: Path) -> Path:
    return write_col(tmp_path / "large.col", LARGE)


def test_solve_prints_how_it_found_the_colouring(
    large: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sol = tmp_path / "g.sol"
    assert solve(str(large), run=run, budget="1s", out=sol) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"weights: run run, sha256 {load_net(run).sha256[:12]}"
    assert check_sol(large, sol) == []
    assert any(line.startswith("found by ") for line in lines)
    assert any("generations of HEAD" in line for line in lines)
    comments = [line for line in sol.read_text().splitlines() if line.startswith("c ")]
    assert any(load_net(run).sha256 in line for line in comments)
    assert any("seed 0" in line for line in comments)
    k = int(sol.read_text().split("s col ")[1].split()[0])
    assert 25 <= k <= num_colours(dsatur(LARGE))
    assert f"s col {k}" in lines
    assert any(line.startswith(f"{k} colours, conflicts 0; at least ") for line in lines)


def test_k_that_is_not_found_is_unknown(
    large: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sol = tmp_path / "g.sol"
    assert solve(str(large), run=run, k=25, budget="0.3s", out=sol) == 1
    out = capsys.readouterr().out
    assert "s UNKNOWN" in out
    assert "impossible" not in out
    conflicts = re.search(r"not found in .*: the best answer leaves (\d+) conflicting edges", out)
    assert conflicts is not None
    assert int(conflicts[1]) > 0
    assert "at least " in out
    assert check_sol(large, sol) == ["the .sol file holds no colouring"]


SETTLED: dict[str, tuple[Graph, int | None, str, str]] = {
    "a clique and DSATUR": (queen(5, 5), None, "5 colours, conflicts 0, optimal: a clique of 5 nodes", "DSATUR"),
    "an odd cycle": (
        C5,
        None,
        "3 colours, conflicts 0, optimal: an exact search with 2 colours found none",
        "DSATUR",
    ),
    "Petersen": (of_networkx(nx.petersen_graph()), None, "optimal: an exact search with 2 colours", "DSATUR"),
    "a board": (queen(6, 6), None, "7 colours, conflicts 0, optimal: an exact search with 6", "exact search"),
    "as many as DSATUR": (queen(6, 6), 9, "(allowed: 9), conflicts 0", "DSATUR"),
    "fewer than DSATUR": (queen(6, 6), 8, "(allowed: 8), conflicts 0", "exact search"),
    "below a clique": (
        Graph.of(3, [(0, 1), (0, 2), (1, 2)]),
        2,
        "proven impossible with 2 colours: a clique of 3 nodes",
        "",
    ),
    "a Mycielskian": (
        of_networkx(nx.mycielski_graph(5)),
        4,
        "proven impossible with 4 colours: an exact search with 4 colours found none",
        "",
    ),
}


@pytest.mark.parametrize("case", SETTLED)
def test_small_graphs_are_settled_without_the_net(
    case: str, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Long before a budget of 10 s, and without the net."""
    graph, k, said, found_by = SETTLED[case]
    monkeypatch.setattr(best_colouring, "by_searches", lambda *rest: pytest.fail("the net was asked"))
    col, sol = write_col(tmp_path / "g.col", graph), tmp_path / "g.sol"
    assert solve(str(col), run=run, k=k, out=sol) == (0 if found_by else 1)
    out, written = capsys.readouterr().out, sol.read_text()
    assert said in out
    assert f"c {said}" in written or said in written
    if found_by:
        assert f"found by {found_by} after" in out
        assert "without the net: not needed" in out
        assert check_sol(col, sol) == []
    else:
        assert written.endswith("s UNKNOWN\n")


def test_chi_of_a_union_is_the_larger_and_an_edge_never_lowers_chi(run: str) -> None:
    rng = np.random.default_rng(0)
    net = load_net(run)

    def chi(graph: Graph) -> int:
        found = colour(graph, net, k=None, limit=Limit.from_now(10.0), seed=0)
        assert found.optimal
        assert is_proper(graph, found.colours_N, found.num_colours)
        return found.num_colours

    for _ in range(15):
        a, b = random_graph(rng, 20, rng.uniform(0.1, 0.9)), random_graph(rng, 16, rng.uniform(0.1, 0.9))
        assert chi(union(a, b)) == max(chi(a), chi(b))
        u, v = rng.choice(20, 2, replace=False)
        assert chi(a) <= chi(Graph.of(20, [*a.edges_E2.tolist(), (u, v)])) <= chi(a) + 1


def test_no_net_uses_dsatur(queen5: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert solve(str(queen5), no_net=True) == 0
    out = capsys.readouterr().out
    assert out.startswith("DSATUR, no net")
    assert "5 colours, conflicts 0, optimal: a clique of 5 nodes" in out
    assert "found by DSATUR" in out
    assert "s col 5" in out
    assert solve(str(queen5), no_net=True, k=4) == 1
    out = capsys.readouterr().out
    assert "proven impossible with 4 colours: a clique of 5 nodes" in out
    assert "s UNKNOWN" in out


def test_dropped_self_loops_are_printed(tmp_path: Path, run: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.col"
    path.write_text("p edge 2 2\ne 1 2\ne 2 2\n")
    assert solve(str(path), run=run, drop_self_loops=True) == 0
    captured = capsys.readouterr()
    assert f"{path}: 1 self-loop dropped\n" in captured.out
    assert captured.err == ""


def test_standard_output_holds_the_colouring_only(
    queen5: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "g.svg"
    assert solve(str(queen5), run=run, out=Path("-"), draw=picture) == 0
    captured = capsys.readouterr()
    assert "found by DSATUR" in captured.err
    assert f"drawing: {picture}" in captured.err
    assert "<svg" in picture.read_text()
    sol = tmp_path / "q.sol"
    sol.write_text(captured.out)
    assert check_sol(queen5, sol) == []


@pytest.mark.parametrize(("text", "k"), [("p edge 1 0\n", 1), ("p edge 4 0\n", 1), ("p edge 2 1\ne 1 2\n", 2)])
def test_smallest_graphs(text: str, k: int, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.col"
    path.write_text(text)
    assert solve(str(path), run=run, budget="1s", draw=tmp_path / "g.png") == 0
    assert f"s col {k}" in capsys.readouterr().out
    assert (tmp_path / "g.png").read_bytes()[:4] == b"\x89PNG"


def test_networkx_graphs_are_coloured_by_their_nodes(run: str) -> None:
    graph = nx.relabel_nodes(nx.mycielski_graph(4), {v: f"node {v}" for v in range(11)})
    found = workload.solve(graph, budget_s=60.0, run=run)
    assert (found.status, found.conflicts, found.lower_bound, found.optimal) == ("proper", 0, 4, True)
    assert set(found.colors) == set(graph.nodes)
    assert all(found.colors[u] != found.colors[v] for u, v in graph.edges)
    assert sorted(set(found.colors.values())) == list(range(found.num_colors)) == [0, 1, 2, 3]
    impossible = workload.solve(graph, k=3, budget_s=60.0, run=run)
    assert (impossible.status, impossible.lower_bound) == ("impossible", 4)
    assert "found none" in impossible.proof


def test_not_found_is_not_impossible(run: str) -> None:
    found = workload.solve(to_networkx(LARGE), k=25, moves=50_000, run=run)
    assert found.status == "not found"
    assert found.conflicts == LARGE.conflicts([found.colors[v] for v in range(LARGE.n)]) > 0
    assert found.lower_bound <= 25


@pytest.mark.parametrize("k", [None, 27])
def test_moves_give_the_same_answer_on_any_number_of_threads(
    k: int | None, large: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole file is equal: colours, comments, numbers of moves. So is what is printed."""
    answers, threads = [], torch.get_num_threads()
    for number in (1, 3):
        torch.set_num_threads(number)
        sol = tmp_path / "answer.sol"
        solve(str(large), run=run, k=k, moves="600k", out=sol)
        answers.append((sol.read_text(), capsys.readouterr().out))
        assert torch.get_num_threads() == number
    torch.set_num_threads(threads)
    assert answers[0] == answers[1]
    assert "600,000 moves" in answers[0][0]
    assert not re.search(r"\d s\b", answers[0][0])


def test_with_seconds_one_line_says_that_the_answer_is_not_repeatable(
    queen5: Path, run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "with seconds the answer depends on the speed of the machine; with --moves it does not"
    assert solve(str(queen5), run=run, budget="1s") == 0
    assert line in capsys.readouterr().out
    assert solve(str(queen5), run=run, moves="1k") == 0
    assert line not in capsys.readouterr().out


def test_the_search_starts_from_a_given_colouring(
    large: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, sol = tabucol(LARGE, 30, 0, max_moves=500_000), tmp_path / "good.sol"
    assert good.conflicts == 0
    write_sol(sol, good.colours_N)
    assert solve(str(large), run=run, moves="1k", init=sol, out=tmp_path / "out.sol") == 0
    out = capsys.readouterr().out
    assert f"{sol}: 30 colours, conflicts 0" in out
    assert "found by the given colouring" in out
    assert "s col 30" in out
    assert check_sol(large, tmp_path / "out.sol") == []
    write_sol(sol, np.arange(LARGE.n) % 2)  # improper: it is made proper first
    assert solve(str(large), run=run, moves="1k", init=sol) == 0


def test_workloads_are_found_by_name_or_path(tmp_path: Path) -> None:
    for name in WORKLOADS:
        assert load(name).Config is not None
    with pytest.raises(UserError, match="did you mean graph-coloring"):
        load("graph-colouring")
    with pytest.raises(UserError, match="no such file"):
        load("./nothing.py")
    path = tmp_path / "mine.py"
    path.write_text("Config = build = train = None\n")
    with pytest.raises(UserError, match="does not define evaluate"):
        load(str(path))
    path.write_text("Config = build = train = evaluate = 1\n")
    with pytest.raises(UserError, match="Config is not a dataclass"):
        load(str(path))
    path.write_text(
        "from dataclasses import dataclass\nbuild = train = evaluate = len\n\n"
        "@dataclass(frozen=True)\nclass Config:\n    size: int = 1\n"
    )
    assert load(str(path)) is load(str(path))
