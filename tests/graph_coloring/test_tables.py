"""The proof tables with a small untrained net: what they count, and that they can fail."""

from __future__ import annotations

import csv
import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.classical.tabucol import TabuResult
from ranks.workloads.graph_coloring.config import small
from ranks.workloads.graph_coloring.data.weisfeiler_lehman import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.data.items import draw
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.weights_file import SHIPPED, load_net
from ranks.workloads.graph_coloring.solving.bench_report import Row
from ranks.workloads.graph_coloring.tables import chromatic, hard, instances, unseen
from ranks.workloads.graph_coloring.tables import table as table_file
from ranks.workloads.graph_coloring.tables.table import table
from ranks.workloads.graph_coloring.tables.training_graphs import TrainingGraphs, read_training_graphs
from tests.graph_coloring.known import queen

NOTHING_SEEN = TrainingGraphs(np.zeros(0, np.uint64), np.array([0, 0, 0, 2, 1]), "")
"""A mean of 10 / 3."""


def test_table_says_fail_for_an_untrained_net(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard, "NUM_GRAPHS_QUICK", 3)
    monkeypatch.setattr(hard, "SIZES", (50,))
    rows = hard.hard_rows(load_net(run).model, quick=True)
    assert [row.way.split(",")[0] for row in rows] == [
        "trained net",
        "untrained net",
        "trained net",
        "random start",
        "random start",
        "DSATUR",
        "TabuCol",
        "TabuCol",
    ]
    raw, untrained = rows[:2]
    assert (raw.passed, untrained.passed) == (False, False)
    assert all(0 <= row.solved <= row.graphs == 3 for row in rows)
    assert [row.way.endswith(f"at most {raw.cpu_s:.3f} s of CPU a graph") for row in rows] == [
        row is rows[4] or row is rows[7] for row in rows
    ]


def test_a_claimed_colouring_that_is_wrong_is_not_counted(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard, "dsatur", lambda graph: np.zeros(graph.n, dtype=np.int64))
    monkeypatch.setattr(hard, "NUM_GRAPHS_QUICK", 2)
    monkeypatch.setattr(hard, "SIZES", (50,))
    rows = hard.hard_rows(load_net(run).model, quick=True)
    assert (rows[5].way, rows[5].solved) == ("DSATUR", 0)


def test_the_same_time_is_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def noted(graph: Graph, k: int, seed: int, **limits: object) -> TabuResult:
        asked.append((limits["max_s"], limits["clock"]))
        return TabuResult(np.zeros(graph.n, dtype=np.int64), 1, 1, 0.0)

    monkeypatch.setattr(hard, "tabucol", noted)
    hard._tabu(queen(5, 5), 0, cpu_s=0.25)
    assert asked == [(0.25, hard.time.process_time)]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(chromatic, "NUM_GRAPHS_QUICK", 24)
    monkeypatch.setattr(chromatic, "MOST_NODES", 24)
    monkeypatch.setattr(unseen, "GRAPHS_QUICK", 1)


def test_an_estimate_must_beat_every_other_way(run: str, few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    model, graphs = load_net(run).model, chromatic.held_out(True, NOTHING_SEEN)
    seen, others = chromatic.chromatic_rows(model, NOTHING_SEEN, *graphs)
    ways = ["one number for all: the training's mean", "clique found", "DSATUR", chromatic.HALFWAY]
    assert [row.way for row in seen] == [chromatic.ALONE, chromatic.BOUNDED, *ways, "TabuCol, 500 moves a k"]
    assert [row.passed is None for row in seen] == [False, False, True, True, True, True, True]
    assert [row.passed is None for row in others[:2]] == [True, False]
    assert seen[0].passed is False
    assert len({row.families for row in others}) > 3
    assert all(0 <= row.exact <= 1 and row.error >= 0 for row in [*seen, *others])
    right_G = graphs[0].stored.high_G[graphs[0].chosen_G]
    assert seen[2].error == pytest.approx(np.abs(right_G.astype(float) - 3).mean())
    assert all(bounded.error <= alone.error for alone, bounded in zip(seen[::7], seen[1::7], strict=True))

    def oracle(model: object, stored: chromatic.Stored, chosen_G: np.ndarray) -> np.ndarray:
        return stored.high_G[chosen_G].astype(np.float64) + 0.4

    monkeypatch.setattr(chromatic, "estimates", oracle)
    tied = chromatic.chromatic_rows(model, NOTHING_SEEN, *graphs)[0]
    assert tied[0].passed is (tied[4].exact < 1)
    monkeypatch.setattr(chromatic, "dsatur", lambda graph: np.arange(graph.n))
    right, *_ = chromatic.chromatic_rows(model, NOTHING_SEEN, *graphs)[0]
    assert (right.exact, right.error, right.passed) == (1.0, 0.0, True)


def test_graphs_that_the_net_was_trained_on_are_left_out(few: None) -> None:
    everything, _ = chromatic.held_out(True, NOTHING_SEEN)
    known = np.sort(everything.stored.hash_G[everything.chosen_G[:5]])
    seen, other = chromatic.held_out(True, replace(NOTHING_SEEN, hash_G=known))
    assert (everything.dropped, seen.dropped, other.dropped) == (0, 5, 0)
    assert len(everything.chosen_G) - len(seen.chosen_G) == 5
    assert not np.isin(seen.stored.hash_G[seen.chosen_G], known).any()


def test_the_shipped_training_graphs_are_those_of_the_shipped_weights() -> None:
    training = read_training_graphs()
    config = json.loads((SHIPPED / "config.json").read_text(encoding="utf-8"))
    assert training.weights_sha256 == config["weights_sha256"]
    assert len(np.unique(training.hash_G)) == len(training.hash_G) == small().data.train_graphs
    drawn = [draw(small().data, "train", item, 0)[1].graph for item in (0, 1, 2, 3999, 7998, 7999)]
    assert np.isin([weisfeiler_lehman_hash(graph) for graph in drawn], training.hash_G).all()
    assert not np.isin(weisfeiler_lehman_hash(Graph.of(2, [(0, 1)])), training.hash_G)
    assert 0.9 * len(training.hash_G) < training.counts_K.sum() <= len(training.hash_G)
    assert NOTHING_SEEN.mean == pytest.approx(10 / 3)


@pytest.mark.parametrize(
    ("instance", "repaired", "passed"),
    [("queen8_8", 11, True), ("queen8_8", 12, False), ("anna", 12, True), ("anna", 13, False), ("anna", None, False)],
)
def test_a_failure_counts_as_worse(instance: str, repaired: int | None, passed: bool) -> None:
    colours = {"largest-first": 13, "DSATUR": 12, "TabuCol": 11, "net + repair": repaired, "net + TabuCol": 11}
    found = [
        Row(instance, 64, 728, 8, 9, True, way, 0, c, 0 if c else 5, 1.0, 1.0, 0.5, 0, "") for way, c in colours.items()
    ]
    row = instances._row(found)
    assert row["passed"] is passed
    assert row["net + repair"] == ("-" if repaired is None else repaired)


def test_the_whole_table_says_fail_for_an_untrained_net(
    run: str, few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hard, "NUM_GRAPHS_QUICK", 2)
    monkeypatch.setattr(hard, "SIZES", (50,))
    monkeypatch.setattr(instances, "BUDGET_QUICK_S", 0.05)
    monkeypatch.setattr(table_file, "load_net", lambda _: load_net(run))
    folder = tmp_path / "graphs"
    folder.mkdir()
    edges = "".join(f"e {u + 1} {v + 1}\n" for u, v in queen(5, 5).edges_E2.tolist())
    (folder / "queen5_5.col").write_text(f"p edge 25 {queen(5, 5).num_edges}\n{edges}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = table(quick=True, instances=folder)
    assert result["passed"] is False
    assert [len(rows) > 0 for rows in result["tables"].values()] == [True] * 5
    facts = result["facts"]
    assert facts["left out as isomorphic to a training graph"].startswith(("0 of", "1 of", "2 of"))
    assert facts["instances: seconds for each way"] == 0.05
    assert "colours on 1 (queen5_5)" in facts["net + repair against random + repair"]
    rows = list(csv.DictReader(result["instances_csv"]))
    assert [row["way"] for row in rows][-4:] == ["random + repair", "net raw", "net + repair", "net + TabuCol"]
    assert all(float(row["cpu_s"]) >= 0 and int(row["conflicts"]) >= 0 for row in rows)
    json.dumps(result)
    for row in result["tables"]["Colours on unseen families and sizes, as many as the chromatic number, 4 tries"]:
        assert all(0 <= row[way] <= row["graphs"] for way in ("net_raw", "net_repaired", "random_repaired", "dsatur"))
        assert row["net_raw"] <= row["net_repaired"]


def test_colours_on_unseen_families_are_as_many_as_the_chromatic_number(run: str, few: None) -> None:
    stored = chromatic.held_out(True, NOTHING_SEEN)[1].stored
    for row in unseen.unseen_rows(load_net(run).model, stored, quick=True):
        g = int(np.flatnonzero(stored.family_G == stored.families.index(row.family))[0])
        fewest = len(np.unique(dsatur(stored.graph(g)))) == stored.high_G[g]
        assert (row.graphs, row.dsatur) == (1, int(fewest))
        assert row.nodes == f"{stored.node_counts_G[g]} to {stored.node_counts_G[g]}"
