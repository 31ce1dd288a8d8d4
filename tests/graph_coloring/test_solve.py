"""Solving files and networkx graphs, with a small untrained net."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads import WORKLOADS, load
from ranks.workloads import graph_coloring as workload
from ranks.workloads.graph_coloring.graphs.checker import check_sol
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving import solution
from ranks.workloads.graph_coloring.solving.solve import solve


@pytest.fixture
def queen5(tmp_path: Path) -> Path:
    cells = list(itertools.product(range(1, 6), repeat=2))
    edges = [
        f"e {i} {j}"
        for (i, a), (j, b) in itertools.combinations(enumerate(cells, 1), 2)
        if a[0] == b[0] or a[1] == b[1] or abs(a[0] - b[0]) == abs(a[1] - b[1])
    ]
    path = tmp_path / "queen.col"
    path.write_text("\n".join([f"p edge 25 {len(edges)}", *edges, ""]))
    return path


def test_solves_and_says_how(queen5: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sol = tmp_path / "q.sol"
    assert solve(str(queen5), run=run, budget="2s", out=sol) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"weights: run run, sha256 {load_net(run).sha256[:12]}"
    assert check_sol(queen5, sol) == []
    assert any(line.startswith("found by ") for line in lines)
    comments = [line for line in sol.read_text().splitlines() if line.startswith("c ")]
    assert any(load_net(run).sha256 in line for line in comments)
    assert any("seed 0" in line for line in comments)
    k = int(sol.read_text().split("s col ")[1].split()[0])
    assert 5 <= k <= 7
    assert f"s col {k}" in lines


def test_k_out_of_reach_is_unknown(queen5: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sol = tmp_path / "q.sol"
    assert solve(str(queen5), run=run, k=4, budget="0.2s", out=sol) == 1
    assert "s UNKNOWN" in capsys.readouterr().out
    assert check_sol(queen5, sol) == ["the .sol file holds no colouring"]


def test_no_net_is_dsatur_by_name(queen5: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert solve(str(queen5), no_net=True) == 0
    out = capsys.readouterr().out
    assert out.startswith("DSATUR, no net")
    assert "s col 5" in out
    assert solve(str(queen5), no_net=True, k=4) == 1
    assert "s UNKNOWN" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "k"), [("p edge 1 0\n", 1), ("p edge 4 0\n", 1), ("p edge 2 1\ne 1 2\n", 2)])
def test_smallest_graphs(text: str, k: int, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.col"
    path.write_text(text)
    assert solve(str(path), run=run, budget="1s", draw=tmp_path / "g.png") == 0
    assert f"s col {k}" in capsys.readouterr().out
    assert (tmp_path / "g.png").read_bytes()[:4] == b"\x89PNG"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "k 0": ({"k": 0}, "at least one colour"),
    "budget": ({"budget": "ten"}, "no length of time"),
    "run and no net": ({"no_net": True, "run": "x"}, "uses no weights"),
    "no such run": ({"run": "nowhere"}, "holds a net"),
}


@pytest.mark.parametrize("case", BAD)
def test_refuses(case: str, queen5: Path) -> None:
    flags, found = BAD[case]
    with pytest.raises(UserError, match=found):
        solve(str(queen5), **flags)


def test_damaged_and_foreign_weights_are_refused(run: str) -> None:
    export = Path(run) / "export"
    raw = bytearray((export / "model.safetensors").read_bytes())
    raw[-1] ^= 1
    (export / "model.safetensors").write_bytes(raw)
    with pytest.raises(UserError, match="is damaged"):
        load_net(run)
    (export / "config.json").write_text("{}")
    with pytest.raises(UserError, match="does not describe a net"):
        load_net(run)


def test_networkx_graphs_are_coloured_by_their_own_names(run: str) -> None:
    graph = nx.relabel_nodes(nx.mycielski_graph(4), {v: f"node {v}" for v in range(11)})
    found = workload.solve(graph, budget_s=2.0, run=run)
    assert found is not None
    assert set(found.colors) == set(graph.nodes)
    assert all(found.colors[u] != found.colors[v] for u, v in graph.edges)
    assert sorted(set(found.colors.values())) == list(range(found.num_colors)) == [0, 1, 2, 3]
    assert workload.solve(graph, k=3, budget_s=0.2, run=run) is None
    with pytest.raises(UserError, match="at least one colour"):
        workload.solve(graph, k=0, run=run)


def test_never_worse_than_dsatur_and_it_says_so(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the net finds nothing the answer is DSATUR's, and bears its name."""
    graph = Graph.of(6, [(u, v) for u in range(3) for v in range(3, 6)])
    ways = solution.NetWays

    class Helpless(ways):
        def _tabucol(self, core: Graph, *rest: Any) -> tuple[Any, int]:
            return np.zeros(core.n, dtype=np.int64), core.num_edges

    monkeypatch.setattr(solution, "NetWays", Helpless)
    found = solution.by_net(graph, load_net(run), k=2, budget_s=0.2, seed=0)
    assert (found.found_by, found.num_colours, found.conflicts) == ("DSATUR", 2, 0)
    assert found.optimal


@pytest.mark.parametrize("budget", ["0.001s", "0.3s"])
def test_no_time_is_too_short_for_a_proper_colouring(
    queen5: Path, run: str, tmp_path: Path, budget: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sol = tmp_path / "q.sol"
    assert solve(str(queen5), run=run, budget=budget, out=sol) == 0
    assert check_sol(queen5, sol) == []
    found_by = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("found by"))
    assert "nothing" not in found_by


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
    assert load(str(path)) is load(str(path))
