"""The ways to colour a graph within a time, the bench that compares them, and what it says."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from ranks.cli.parse import call
from ranks.errors import UserError
from ranks.workloads.graph_coloring.classical.exact import k_colour
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.solving import bench as bench_file
from ranks.workloads.graph_coloring.solving.bench import NET_WAYS, bench, chosen, read_instances
from ranks.workloads.graph_coloring.solving.bench_report import Row, summary, table, told
from ranks.workloads.graph_coloring.solving.best_known import BestKnown, read_best_known
from ranks.workloads.graph_coloring.solving.net_solvers import NetWays
from ranks.workloads.graph_coloring.solving.ways import CLASSICAL, CLIMBING_SHARE, Answer, descend
from tests.graph_coloring import known
from tests.graph_coloring.known import is_proper, queen

LONG_S = 1000.0
"""A budget that no test here uses up."""


def random_graph(n: int, density: float) -> Graph:
    return known.random_graph(np.random.default_rng(1), n, density)


class Exact:
    """An attempt that finds a proper colouring wherever there is one, and keeps what it was asked."""

    def __init__(self, stop_below: int = 0) -> None:
        self.asked: list[tuple[int, int, float, int]] = []
        self.stop_below = stop_below

    def __call__(self, core: Graph, k: int, allowed_s: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        self.asked.append((core.n, k, allowed_s, seed))
        colours = k_colour(core, k) if k >= self.stop_below else None
        if colours is None:
            worst = np.zeros(core.n, dtype=np.int64)
            return worst, core.conflicts(worst)
        return np.asarray(colours), 0


def test_descends_one_below_the_last_colouring_until_a_clique_ends_it() -> None:
    graph = queen(5, 5)
    attempt = Exact()
    answer = descend(graph, LONG_S, 0, attempt, start=lambda graph: np.arange(graph.n))
    asked = [k for _, k, _, _ in attempt.asked]
    assert asked == sorted(set(asked), reverse=True)
    assert 5 <= asked[-1] <= asked[0] < 24  # with 24 colours every node can be coloured last
    assert answer.num_colours == 5
    assert answer.optimal
    assert is_proper(graph, answer.colours_N)
    assert answer.conflicts == 0
    assert 0 <= (answer.found_s or 0) <= answer.seconds


def test_a_clique_ends_it_before_any_attempt() -> None:
    attempt = Exact()
    answer = descend(Graph.of(5, list(itertools.combinations(range(5), 2))), LONG_S, 0, attempt, start=dsatur)
    assert (attempt.asked, answer.num_colours, answer.optimal) == ([], 5, True)


def test_the_start_stands_where_nothing_better_is_found() -> None:
    graph = queen(6, 6)
    first = dsatur(graph)
    answer = descend(graph, 0.02, 0, Exact(stop_below=99), start=dsatur)
    assert answer.colours_N.tolist() == first.tolist()
    assert (answer.conflicts, answer.optimal) == (0, False)


def test_climbs_in_short_attempts_until_something_is_proper_then_descends_with_other_seeds() -> None:
    graph = random_graph(30, 0.5)
    attempt = Exact(stop_below=7)
    answer = descend(graph, 0.5, 0, attempt, first_k=2)
    tried = [k for _, k, _, _ in attempt.asked]
    first = next(place for place, k in enumerate(tried) if k >= 7)
    assert tried[: first + 1] == sorted(tried[: first + 1])
    assert all(allowed <= 0.5 * CLIMBING_SHARE for _, _, allowed, _ in attempt.asked[: first + 1])
    assert answer.num_colours == 7
    again = [seed for _, k, _, seed in attempt.asked[first + 1 :] if k == 6]
    assert len(again) > 1
    assert len(set(again)) == len(again)


def test_one_number_of_colours_alone() -> None:
    graph = queen(5, 5)
    attempt = Exact()
    answer = descend(graph, LONG_S, 0, attempt, first_k=3, only_k=8)
    assert [k for _, k, _, _ in attempt.asked] == [8]
    assert (answer.conflicts, answer.num_colours <= 8) == (0, True)
    impossible = descend(graph, LONG_S, 0, attempt, only_k=4)
    assert len(attempt.asked) == 1
    assert impossible.conflicts == graph.num_edges


def test_attempts_see_only_what_cannot_be_coloured_last() -> None:
    wheel = [(0, v) for v in range(1, 6)] + [(v, v % 5 + 1) for v in range(1, 6)]
    tail = [(1, 6), (6, 7), (7, 8), (8, 6)]
    graph = Graph.of(9, wheel + tail)
    attempt = Exact()
    answer = descend(graph, 0.02, 0, attempt, first_k=3)
    assert {(nodes, k) for nodes, k, _, _ in attempt.asked} == {(6, 3)}
    assert answer.num_colours == 4
    assert answer.note == "by the reduction alone"
    assert is_proper(graph, answer.colours_N)


def test_the_best_attempt_is_given_where_none_is_proper() -> None:
    graph = queen(5, 5)

    def attempt(core: Graph, k: int, allowed_s: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        colours = np.arange(core.n) % min(k, 4)
        return colours, core.conflicts(colours)

    answer = descend(graph, 0.02, 0, attempt, first_k=2, only_k=5)
    assert answer.conflicts == graph.conflicts(answer.colours_N) > 0


@pytest.mark.parametrize("title", CLASSICAL)
@pytest.mark.parametrize(
    "graph", [Graph.of(1, []), Graph.of(4, []), queen(6, 6), random_graph(60, 0.3)], ids=["one", "four", "queens", "g"]
)
def test_classical_ways_are_proper_and_never_above_their_start(title: str, graph: Graph) -> None:
    answer = CLASSICAL[title](graph, 0.05, 3)
    assert is_proper(graph, answer.colours_N)
    assert answer.conflicts == 0
    if title == "TabuCol":
        assert answer.num_colours <= len(set(dsatur(graph).tolist()))
        assert answer.moves > 0 or answer.optimal


def test_the_net_has_the_ways_that_the_bench_names() -> None:
    assert tuple(NetWays(ColouringNet(width=4)).table()) == NET_WAYS


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
def test_bad_best_known_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "best.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=BAD_BEST[text]):
        read_best_known(path)
    with pytest.raises(UserError, match="--best"):
        read_best_known(tmp_path / "none.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A queen graph under its public name, another graph under the name of one, a self-loop, and other files."""
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
    flags = ["--budget", "0.02s", "--seeds", "2", "--ways", "dsatur,tabucol"]
    code = call(bench, [str(folder), *flags, "--csv", str(rows_file), "--json", str(all_file)], prog="bench")
    assert code == 0
    out = capsys.readouterr().out
    assert "left out, no graph files by their endings: README.md" in out
    assert "1 self-loop dropped" in out
    assert "myciel3: the best known value is of a graph with 11 nodes, 20 edges; not used" in out
    assert "queen5_5: 25 nodes, 160 edges, clique 5, best known 5*" in out
    assert "DSATUR: proper 6 of 6; best known 2 of 2 (where proper 0.00 above it on average)" in out
    assert "TabuCol against DSATUR: better 0, equal 6, worse 0" in out
    assert "TabuCol alone has the fewest colours on: none" in out
    with rows_file.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["instance"], row["seed"], row["way"], row["colours"]) for row in rows[:4]] == [
        ("cycle", "0", "DSATUR", "3"),
        ("cycle", "0", "TabuCol", "3"),
        ("cycle", "1", "DSATUR", "3"),
        ("cycle", "1", "TabuCol", "3"),
    ]
    found = json.loads(all_file.read_text())
    assert len(found["rows"]) == len(rows) == 12
    assert found["made"]["budget_s"] == 0.02
    assert {"date", "command", "commit", "versions", "hardware", "threads"} <= set(found["made"])
    assert "weights" not in found["made"]


def answer_of(colours: list[int], conflicts: int) -> Answer:
    return Answer(np.asarray(colours), conflicts, 0.0, 0.0)


def test_bench_tells_failures_and_refutes_claims(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    net = SimpleNamespace(model=None, name="a net", sha256="f" * 64)
    table = {
        "net raw": lambda graph, budget_s, seed: answer_of([0] * graph.n, graph.num_edges),
        "net + repair": lambda graph, budget_s, seed: answer_of([0] * graph.n, 0),
        "net + TabuCol": lambda graph, budget_s, seed: answer_of(dsatur(graph).tolist(), 0),
    }
    monkeypatch.setattr(bench_file, "load_net", lambda run: net)
    monkeypatch.setattr(bench_file, "NetWays", lambda model: SimpleNamespace(table=lambda: table))
    assert bench(folder / "cycle.edges", budget="0.02s") == 1
    out = capsys.readouterr().out
    assert "weights: a net, sha256 ffffffffffff" in out
    assert "seed 0, net raw: - (5 conflicts)" in out
    assert "net raw against DSATUR: better 0, equal 0, worse 1 (cycle)" in out
    assert "net + repair on cycle, seed 0: refuted by the checker: 0 conflicts claimed, 5 found" in out
    assert "net + TabuCol against TabuCol: better 0, equal 1, worse 0" in out


def test_bench_refuses(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        bench(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no graph file in it"):
        bench(tmp_path)
    with pytest.raises(UserError, match="at least one"):
        bench(folder, seeds=0)
    with pytest.raises(UserError, match="a search needs time"):
        bench(folder, budget="0s")
    with pytest.raises(
        UserError, match=r"no way is called tabu\n.*choose of largest-first,dsatur,tabucol,random-repair,net-raw"
    ):
        bench(folder, ways=("dsatur", "tabu"))
    with pytest.raises(UserError, match="--csv"):
        bench(folder, ways=("dsatur",), csv=tmp_path / "no" / "rows.csv")
    (folder / "a.col").write_text("p edge 2 1\n")
    (folder / "b.mtx").write_text("x")
    with pytest.raises(UserError, match=r"a\.col, line 1: 1 edges.*; .*b\.mtx, line 1: no MatrixMarket"):
        bench(folder, ways=("dsatur",))


def test_ways_are_chosen_by_plain_words() -> None:
    assert chosen(()) == [*CLASSICAL, *NET_WAYS]
    assert chosen(("net-repair", "dsatur")) == ["DSATUR", "net + repair"]
    assert chosen(("Net + Repair,tabucol", "DSATUR")) == ["DSATUR", "TabuCol", "net + repair"]


def test_ways_may_be_given_several_times(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(
        bench, [str(folder / "cycle.edges"), "--ways", "TabuCol", "--ways", "dsatur", "--budget", "0.02s"], prog="bench"
    )
    assert "for each of: DSATUR, TabuCol;" in capsys.readouterr().out


def test_files_of_one_stem_are_told_apart(tmp_path: Path) -> None:
    for name in ("g.col", "g.edges", "h.col.gz"):
        text = "p edge 2 1\ne 1 2\n" if "col" in name else "1 2\n"
        (tmp_path / name).write_text(text)
    assert [instance.name for instance in read_instances(tmp_path, {})] == ["g.col", "g.edges", "h"]


@pytest.mark.parametrize(
    ("spent_s", "note"), [(1.1, "optimal"), (1.25, "optimal; took 1.2 s"), (9.0, "optimal; took 9.0 s")]
)
def test_an_overrun_of_the_budget_is_noted(spent_s: float, note: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, spent_s])
    clocks = SimpleNamespace(perf_counter=lambda: next(times), process_time=lambda: 0.0)
    monkeypatch.setattr(bench_file, "time", clocks)
    graph = Graph.of(2, [(0, 1)])

    def way(graph: Graph, budget_s: float, seed: int) -> Answer:
        return Answer(np.arange(2), 0, 0.0, 0.0, optimal=True)

    assert bench_file.measure(bench_file.Instance("a", graph, 2, None), "a way", way, 1.0, 0).note == note


def row(instance: str, way: str, colours: int | None, seed: int = 0, best: int | None = 9) -> Row:
    return Row(instance, 64, 1728, 8, best, True, way, seed, colours, 0 if colours else 3, 2.0, 1.5, 0.25, 0, "")


def test_table_and_summary() -> None:
    rows = [
        *(row("a", "DSATUR", 12, seed) for seed in range(3)),
        *(row("a", "TabuCol", colours, seed) for seed, colours in enumerate((9, 10, None))),
        *(row("a", "net raw", colours, seed) for seed, colours in enumerate((None, 11, None))),
        *(row(name, way, 9, best=None) for name in ("b", "c") for way in ("DSATUR", "TabuCol", "net raw")),
        *(row("d", way, None) for way in ("DSATUR", "TabuCol", "net raw")),
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


def test_a_line_for_a_log() -> None:
    line = told(Row("a", 9, 9, 2, 3, True, "TabuCol", 1, 4, 0, 2.0, 1.9, 0.0123, 3_000_000, "optimal"))
    assert line == "  seed 1, TabuCol: 4 colours after 0.0123 s; in all 2 s, CPU 1.9 s, 1.50 M moves/s (optimal)"
