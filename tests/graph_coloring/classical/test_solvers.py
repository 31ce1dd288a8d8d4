"""Starts and restarts of the solvers, the bounded estimate of the net, and comparisons in the
report."""

from __future__ import annotations

import itertools
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ranks.errors import UserError
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.classical.tabucol import TabuResult
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.solving.bench.command import bench
from ranks.workloads.graph_coloring.solving.bench.report import BenchResult, gaps, net_comparison, summary
from ranks.workloads.graph_coloring.solving.budget import MoveClock
from ranks.workloads.graph_coloring.solving.search import restarts
from ranks.workloads.graph_coloring.solving.search.change_colours import with_fewer_colours
from ranks.workloads.graph_coloring.solving.search.estimate import bounded_estimate
from ranks.workloads.graph_coloring.solving.search.net_solvers import NetSolvers
from ranks.workloads.graph_coloring.solving.search.restarts import (
    random_starts,
    repair_until_proper,
    restarted_tabucol,
    until_deadline,
)
from tests.graph_coloring.example_graphs import is_proper, queen

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "graph-coloring.md"
TRIANGLE, CYCLE = Graph.of(3, [(0, 1), (0, 2), (1, 2)]), Graph.of(5, [(v, (v + 1) % 5) for v in range(5)])


@pytest.mark.parametrize(
    ("graph", "estimate", "bounded"),
    [
        (TRIANGLE, 7.8, 3.0),
        (TRIANGLE, -2.0, 3.0),
        (CYCLE, 1.2, 2.0),
        (CYCLE, 2.4, 2.4),
        (CYCLE, 9.0, 3.0),
        (Graph.of(4, []), 5.0, 1.0),
    ],
)
def test_the_estimate_is_clipped_to_a_clique_and_dsatur(graph: Graph, estimate: float, bounded: float) -> None:
    assert bounded_estimate(graph, estimate) == bounded


def test_a_search_starts_at_the_bounded_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net = NetSolvers(ColouringNet(width=4, encoder_width=4).eval(), clock=MoveClock())
    asked: list[int] = []

    def attempt(core: Graph, k: int, seconds: float, seed: int, start_C: Any) -> tuple[Any, int]:
        asked.append(k)
        return dsatur(core), 0

    monkeypatch.setattr(net, "raw_attempt", attempt)
    for graph in (TRIANGLE, CYCLE, queen(6, 6)):
        asked.clear()
        net.raw(graph, 1000.0, 0)
        assert asked[0] == round(net.report.chromatic)
        assert len(np.unique(dsatur(graph))) >= net.report.chromatic >= 2


def test_starts_end_at_the_deadline_after_at_least_one() -> None:
    clock = iter([0.0, 0.4, 0.9, 1.0, 1.1]).__next__
    assert [int(start[0]) for start in until_deadline(1.0, (np.array([i]) for i in itertools.count()), clock)] == [
        0,
        1,
        2,
    ]
    late = iter([0.0, 7.0]).__next__
    assert len(list(until_deadline(1.0, random_starts(5, 3, 0), late))) == 1


def test_random_starts_depend_on_the_seed_and_differ() -> None:
    one, again = (list(itertools.islice(random_starts(40, 3, 5), 3)) for _ in range(2))
    assert [start.tolist() for start in one] == [start.tolist() for start in again]
    assert len({tuple(start.tolist()) for start in one}) == 3
    assert set(np.concatenate(one).tolist()) == {0, 1, 2}


def test_repair_stops_at_the_first_proper_start() -> None:
    graph = queen(5, 5)
    asked: list[int] = []

    def starts() -> Any:
        for number, start in enumerate(random_starts(graph.n, 7, 1)):
            asked.append(number)
            yield start

    found = repair_until_proper(graph, 7, 3, starts())
    assert found.conflicts == 0
    assert is_proper(graph, found.colours_N)
    assert asked == list(range(len(asked)))
    raw = repair_until_proper(graph, 4, 3, itertools.islice(random_starts(graph.n, 4, 1), 20), max_moves=0)
    counts = [graph.conflicts(start) for start in itertools.islice(random_starts(graph.n, 4, 1), 20)]
    assert (raw.conflicts, raw.changes) == (min(counts), 0)


def test_tabucol_with_and_without_the_net_differ_only_in_further_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, k = queen(5, 5), 6
    proper = np.arange(graph.n)
    asked: list[tuple[list[int], int]] = []

    def hopeless(core: Graph, k: int, seed: int, *, max_moves: int, max_s: float, start_N: Any) -> TabuResult:
        asked.append((start_N.tolist(), max_moves))
        return TabuResult(start_N, 0 if len(asked) == 3 else 1, 10, 0.0)

    monkeypatch.setattr(restarts, "tabucol", hopeless)
    best, moves = restarted_tabucol(graph, k, 100.0, 0, proper, random_starts(graph.n, k, 9))
    assert (best.conflicts, moves) == (0, 30)
    assert asked[0][0] == with_fewer_colours(graph, proper, k).tolist()
    randoms = [start.tolist() for start in itertools.islice(random_starts(graph.n, k, 9), 2)]
    assert [start for start, _ in asked[1:]] == randoms
    assert [moves for _, moves in asked] == [restarts.FIRST_MOVES_PER_NODE * graph.n * 2**i for i in range(3)]

    of_classical = list(asked)
    asked.clear()
    torch.manual_seed(0)
    net = NetSolvers(ColouringNet(width=4, encoder_width=4).eval())
    net.tabucol_attempt(graph, k, 100.0, 0, proper)
    assert asked[0] == of_classical[0]
    assert [moves for _, moves in asked] == [moves for _, moves in of_classical]
    assert (net.report.moves, net.report.found_by) == (30, "net + TabuCol")

    asked.clear()
    restarted_tabucol(graph, k, 100.0, 0, None, random_starts(graph.n, k, 9))
    assert [start for start, _ in asked[:2]] == randoms


def row(instance: str, solver: str, colours: int | None, best: int | None = 9) -> BenchResult:
    conflicts = 0 if colours else 3
    return BenchResult(instance, 64, 1728, 8, best, True, solver, 0, colours, conflicts, 2.0, 1.5, 0.25, 0, "")


ROWS = [
    row(instance, solver, colours)
    for instance, found in {"queen8_8": (10, 11), "queen9_9": (9, 9), "le450": (None, 12), "anna": (11, None)}.items()
    for solver, colours in zip(("net + repair", "random + repair"), found, strict=True)
]


def test_the_net_is_compared_by_instance() -> None:
    comparison = net_comparison([*ROWS, row("queen8_8", "TabuCol", 9), row("queen8_8", "net + TabuCol", 9)])
    assert comparison == {
        "net + repair against random + repair": "fewer colours on 2 (queen8_8, anna); as many colours on 1 (queen9_9); "
        "more colours on 1 (le450)",
        "net + TabuCol against TabuCol": "fewer colours on 0 (none); as many colours on 1 (queen8_8); "
        "more colours on 0 (none)",
    }
    assert summary(ROWS)[-1] == "net + repair against random + repair: better 2, equal 1, worse 1 (le450)"


def test_gaps_by_family_and_solver() -> None:
    found = gaps([*ROWS, row("queen10_10", "net + repair", 12, best=None)])
    assert list(found) == [
        "queen, net + repair",
        "queen, random + repair",
        "others, net + repair",
        "others, random + repair",
    ]
    assert found["queen, net + repair"] == [1.0, 0.0]
    np.testing.assert_array_equal(found["others, net + repair"], [np.nan, 2.0])


def col(path: Path, graph: Graph) -> None:
    edges = "".join(f"e {u + 1} {v + 1}\n" for u, v in graph.edges_E2.tolist())
    path.write_text(f"p edge {graph.n} {graph.num_edges}\n{edges}")


def test_bench_plots_its_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    col(tmp_path / "queen5_5.col", queen(5, 5))
    picture = tmp_path / "gaps.png"
    assert bench(tmp_path / "queen5_5.col", budget="0.02s", solvers=["dsatur", "tabucol"], plot=picture) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert f"plot: {picture}" in capsys.readouterr().out


def test_a_plot_that_cannot_be_drawn_is_rejected_before_the_bench(tmp_path: Path) -> None:
    col(tmp_path / "mine.col", CYCLE)
    col(tmp_path / "queen5_5.col", queen(5, 5))
    with pytest.raises(UserError, match="--best"):
        bench(tmp_path / "mine.col", solvers=["dsatur"], plot=tmp_path / "gaps.png")
    with pytest.raises(UserError, match="can be written"):
        bench(tmp_path, solvers=["dsatur"], plot=tmp_path / "no" / "gaps.png")


def test_the_page_plots_conflicts_over_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python conflicts\.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    col(tmp_path / "graph.col", queen(5, 5))
    monkeypatch.chdir(tmp_path)
    Path("conflicts.py").write_text(code)
    runpy.run_path("conflicts.py")
    assert Path("conflicts.png").read_bytes()[:4] == b"\x89PNG"
