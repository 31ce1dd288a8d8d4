"""The classical solvers, the bench that compares solvers, and its report."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from ranks.cli.flags.parse import call
from ranks.errors import UserError
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx
from ranks.workloads.graph_coloring.net import weights_file
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.solving.bench.best_known import BestKnown, read_best_known
from ranks.workloads.graph_coloring.solving.bench.command import bench
from ranks.workloads.graph_coloring.solving.bench.report import BenchResult, log_line, summary, table
from ranks.workloads.graph_coloring.solving.bench.run import (
    NET_SOLVERS,
    Instance,
    choose_solvers,
    measure,
    read_instances,
)
from ranks.workloads.graph_coloring.solving.search import net_solvers
from ranks.workloads.graph_coloring.solving.search.decrease_colours import SolverResult
from ranks.workloads.graph_coloring.solving.search.net_solvers import NetSolvers
from ranks.workloads.graph_coloring.solving.search.solvers import CLASSICAL_SOLVERS
from tests.graph_coloring import example_graphs
from tests.graph_coloring.example_graphs import is_proper, queen
from tests.graph_coloring.fake_clock import FakeClock


def random_graph(n: int, density: float) -> Graph:
    return example_graphs.random_graph(np.random.default_rng(1), n, density)


@pytest.mark.parametrize("name", CLASSICAL_SOLVERS)
@pytest.mark.parametrize(
    "graph", [Graph.of(1, []), Graph.of(4, []), queen(6, 6), random_graph(60, 0.3)], ids=["one", "four", "queens", "g"]
)
def test_classical_solvers_are_proper_and_never_worse_than_their_start(
    name: str, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeClock(tick_s=0.001).use(monkeypatch)
    result = CLASSICAL_SOLVERS[name](graph, 0.05, 3)
    assert is_proper(graph, result.colours_N)
    assert result.conflicts == 0
    if name == "TabuCol":
        assert result.num_colours <= len(set(dsatur(graph).tolist()))
        assert result.moves > 0 or result.optimal


def test_the_net_has_the_solvers_that_the_bench_names() -> None:
    assert tuple(NetSolvers(ColouringNet(width=4)).by_name()) == NET_SOLVERS


def test_shipped_best_known_values_are_of_these_graphs() -> None:
    best = read_best_known(None)
    assert len(best) == 137
    graphs = {f"myciel{k}": from_networkx(nx.mycielski_graph(k + 1))[0] for k in (3, 4, 5, 6, 7)}
    graphs |= {f"queen{r}_{c}": queen(r, c) for r, c in [(5, 5), (6, 6), (8, 12), (11, 11), (15, 15)]}
    for name, graph in graphs.items():
        assert (best[name].nodes, best[name].edges) == (graph.n, graph.num_edges)
    assert best["myciel7"] == BestKnown(191, 2360, 8, True)
    assert str(best["queen8_8"]) == "9*"
    assert str(best["DSJC500.5"]) == "47"


BAD_BEST = {
    "instance,nodes,edges,best_known\n": "no column proven",
    "instance,nodes,edges,best_known,proven\na,1,0,x,yes\n": "line 2 cannot be read",
    "instance,nodes,edges,best_known,proven\na,1,0,1,maybe\n": "line 2 cannot be read",
    "instance,nodes,edges,best_known,proven\na,1\n": "line 2 cannot be read",
}


@pytest.mark.parametrize("text", BAD_BEST)
def test_bad_best_known_files_are_rejected(text: str, tmp_path: Path) -> None:
    path = tmp_path / "best.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=BAD_BEST[text]):
        read_best_known(path)
    with pytest.raises(UserError, match="--best"):
        read_best_known(tmp_path / "none.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A queen graph under its public name, another graph under the name of one, a self-loop, and
    other files."""
    place = tmp_path / "graphs"
    place.mkdir()
    graph = queen(5, 5)
    lines = "".join(f"e {u + 1} {v + 1}\n" for u, v in graph.edges_E2.tolist())
    (place / "queen5_5.col").write_text(f"p edge 25 {graph.num_edges}\n{lines}")
    (place / "myciel3.col").write_text("p edge 3 3\ne 1 2\ne 2 3\ne 3 3\n")
    (place / "cycle.edges").write_text("0 1\n1 2\n2 3\n3 4\n4 0\n")
    (place / "README.md").write_text("graphs")
    return place


def test_bench_from_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows_file, all_file = tmp_path / "rows.csv", tmp_path / "all.json"
    flags = ["--budget", "0.02s", "--seeds", "2", "--solvers", "dsatur,tabucol"]
    code = call(bench, [str(folder), *flags, "--csv", str(rows_file), "--json", str(all_file)], prog="bench")
    assert code == 0
    out = capsys.readouterr().out
    assert "skipped, no graph files by their suffixes: README.md" in out
    assert "1 self-loop dropped" in out
    assert "myciel3: the best known value is of a graph with 11 nodes, 20 edges; not used" in out
    assert "queen5_5: 25 nodes, 160 edges, clique 5, best known 5*" in out
    assert "DSATUR: proper 6 of 6; best known 2 of 2 (where proper 0.00 above it on average)" in out
    assert "TabuCol against DSATUR: better 0, equal 6, worse 0" in out
    assert "TabuCol alone has the fewest colours on: none" in out
    with rows_file.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["instance"], row["seed"], row["solver"], row["colours"]) for row in rows[:4]] == [
        ("cycle", "0", "DSATUR", "3"),
        ("cycle", "0", "TabuCol", "3"),
        ("cycle", "1", "DSATUR", "3"),
        ("cycle", "1", "TabuCol", "3"),
    ]
    found = json.loads(all_file.read_text())
    assert len(found["rows"]) == len(rows) == 12
    assert found["provenance"]["budget_s"] == 0.02
    assert {"date", "command", "commit", "versions", "hardware", "threads"} <= set(found["provenance"])
    assert "weights" not in found["provenance"]


def result_of(colours: list[int], conflicts: int) -> SolverResult:
    return SolverResult(np.asarray(colours), conflicts, 0.0, 0.0)


def test_bench_reports_failures_and_refutes_claims(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    net = SimpleNamespace(model=None, name="a net", sha256="f" * 64)
    solvers = {
        "net raw": lambda graph, budget_s, seed: result_of([0] * graph.n, graph.num_edges),
        "net + repair": lambda graph, budget_s, seed: result_of([0] * graph.n, 0),
        "net + TabuCol": lambda graph, budget_s, seed: result_of(dsatur(graph).tolist(), 0),
        "net + HEAD": lambda graph, budget_s, seed: result_of(dsatur(graph).tolist(), 0),
    }
    monkeypatch.setattr(weights_file, "load_net", lambda run: net)
    monkeypatch.setattr(net_solvers, "NetSolvers", lambda model: SimpleNamespace(by_name=lambda: solvers))
    assert bench(folder / "cycle.edges", budget="0.02s") == 1
    out = capsys.readouterr().out
    assert "weights: a net, sha256 ffffffffffff" in out
    assert "seed 0, net raw: - (5 conflicts)" in out
    assert "net raw against DSATUR: better 0, equal 0, worse 1 (cycle)" in out
    assert "net + repair on cycle, seed 0: refuted by the checker: 0 conflicts claimed, 5 found" in out
    assert "net + TabuCol against TabuCol: better 0, equal 1, worse 0" in out


def test_bench_rejects_bad_arguments(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        bench(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no graph file in it"):
        bench(tmp_path)
    with pytest.raises(UserError, match="at least one"):
        bench(folder, seeds=0)
    with pytest.raises(UserError, match="a search needs time"):
        bench(folder, budget="0s")
    with pytest.raises(
        UserError,
        match=r"no solver is called tabu\n.*choose from largest-first,dsatur,tabucol,head,random-repair,net-raw",
    ):
        bench(folder, solvers=["dsatur", "tabu"])
    with pytest.raises(UserError, match="--csv"):
        bench(folder, solvers=["dsatur"], csv=tmp_path / "no" / "rows.csv")
    (folder / "a.col").write_text("p edge 2 1\n")
    (folder / "b.mtx").write_text("x")
    with pytest.raises(
        UserError, match=r"a\.col, line 1: the p line says 1 edges.*; .*b\.mtx, line 1: no MatrixMarket"
    ):
        bench(folder, solvers=["dsatur"])


def test_solvers_are_chosen_by_name() -> None:
    assert choose_solvers(()) == [*CLASSICAL_SOLVERS, *NET_SOLVERS]
    assert choose_solvers(("net-repair", "dsatur")) == ["DSATUR", "net + repair"]
    assert choose_solvers(("Net + Repair,tabucol", "DSATUR")) == ["DSATUR", "TabuCol", "net + repair"]


def test_solvers_may_be_given_several_times(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(
        bench,
        [str(folder / "cycle.edges"), "--solvers", "TabuCol", "--solvers", "dsatur", "--budget", "0.02s"],
        prog="bench",
    )
    assert "for each of: DSATUR, TabuCol;" in capsys.readouterr().out


def test_files_with_the_same_stem_get_different_names(tmp_path: Path) -> None:
    for name in ("g.col", "g.edges", "h.col.gz"):
        text = "p edge 2 1\ne 1 2\n" if "col" in name else "1 2\n"
        (tmp_path / name).write_text(text)
    assert [instance.name for instance in read_instances(tmp_path, {})] == ["g.col", "g.edges", "h"]


@pytest.mark.parametrize(
    ("spent_s", "note"), [(1.1, "optimal"), (1.25, "optimal; took 1.2 s"), (9.0, "optimal; took 9.0 s")]
)
def test_an_overrun_of_the_budget_is_noted(spent_s: float, note: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeClock(tick_s=spent_s).use(monkeypatch)
    graph = Graph.of(2, [(0, 1)])

    def solver(graph: Graph, budget_s: float, seed: int) -> SolverResult:
        return SolverResult(np.arange(2), 0, 0.0, 0.0, optimal=True)

    assert measure(Instance("a", graph, 2, None), "a solver", solver, 1.0, 0).note == note


def row(instance: str, solver: str, colours: int | None, seed: int = 0, best: int | None = 9) -> BenchResult:
    conflicts = 0 if colours else 3
    return BenchResult(instance, 64, 1728, 8, best, True, solver, seed, colours, conflicts, 2.0, 1.5, 0.25, 0, "")


def test_table_and_summary() -> None:
    rows = [
        *(row("a", "DSATUR", 12, seed) for seed in range(3)),
        *(row("a", "TabuCol", colours, seed) for seed, colours in enumerate((9, 10, None))),
        *(row("a", "net raw", colours, seed) for seed, colours in enumerate((None, 11, None))),
        *(row(name, solver, 9, best=None) for name in ("b", "c") for solver in ("DSATUR", "TabuCol", "net raw")),
        *(row("d", solver, None) for solver in ("DSATUR", "TabuCol", "net raw")),
    ]
    assert table(rows) == [
        "instance   n      m  clique  best     DSATUR    TabuCol   net raw  fewest",
        "a         64  1,728       8    9*  12  0.25s  10  0.25s         -  TabuCol",
        "b         64  1,728       8         9  0.25s   9  0.25s  9  0.25s  all",
        "c         64  1,728       8         9  0.25s   9  0.25s  9  0.25s  all",
        "d         64  1,728       8    9*          -          -         -  none",
    ]
    assert summary(rows) == [
        "DSATUR: proper 5 of 6; best known 0 of 4 (where proper 3.00 above it on average); 12.0 s, CPU 9.0 s in all",
        "TabuCol: proper 4 of 6; best known 1 of 4 (where proper 0.50 above it on average); 12.0 s, CPU 9.0 s in all",
        "net raw: proper 3 of 6; best known 0 of 4 (where proper 2.00 above it on average); 12.0 s, CPU 9.0 s in all",
        "TabuCol against DSATUR: better 2, equal 3, worse 1 (a)",
        "net raw against DSATUR: better 1, equal 3, worse 2 (a)",
        "DSATUR against TabuCol: better 1, equal 3, worse 2 (a)",
        "net raw against TabuCol: better 0, equal 4, worse 2 (a)",
        "TabuCol alone has the fewest colours on: a",
    ]


def test_the_log_line() -> None:
    line = log_line(BenchResult("a", 9, 9, 2, 3, True, "TabuCol", 1, 4, 0, 2.0, 1.9, 0.0123, 3_000_000, "optimal"))
    assert line == "  seed 1, TabuCol: 4 colours after 0.0123 s; in all 2 s, CPU 1.9 s, 1.50 M moves/s (optimal)"
