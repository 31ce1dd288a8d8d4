"""The tables of `ranks prove table` with a small untrained network: their counts, and that bars can
fail."""

from __future__ import annotations

import csv
import json
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.classical.tabucol import TabuResult
from ranks.workloads.graph_coloring.config import small
from ranks.workloads.graph_coloring.data.dataset import GraphDataset
from ranks.workloads.graph_coloring.data.families.items import generate_item
from ranks.workloads.graph_coloring.data.weisfeiler_lehman import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.weights_file import SHIPPED, load_net
from ranks.workloads.graph_coloring.solving.bench.report import BenchResult
from ranks.workloads.graph_coloring.tables import chromatic, hard, instances, unseen
from ranks.workloads.graph_coloring.tables.table import TableSizes, make_table
from ranks.workloads.graph_coloring.tables.training_graphs import TrainingGraphs, read_training_graphs
from tests.graph_coloring.example_graphs import queen

NO_GRAPHS = TrainingGraphs(np.zeros(0, np.uint64), np.array([0, 0, 0, 2, 1]), "")
"""No training graphs; the mean chromatic number is 10 / 3."""


def test_an_untrained_net_fails_on_hard_graphs(run: str) -> None:
    rows = hard.hard_rows(load_net(run).model, num_graphs=3, sizes=(50,))
    assert [row.method.split(",")[0] for row in rows] == [
        "trained net",
        "untrained net",
        "trained net",
        "random start",
        "random start",
        "DSATUR",
        "TabuCol",
        "TabuCol",
        "HEAD",
    ]
    raw, untrained = rows[:2]
    assert (raw.passed, untrained.passed) == (False, False)
    assert all(0 <= row.solved <= row.graphs == 3 for row in rows)
    assert [row.method.endswith(f"at most {raw.cpu_s:.3f} s of CPU a graph") for row in rows] == [
        row is rows[4] or row is rows[7] or row is rows[8] for row in rows
    ]


def test_a_wrong_colouring_does_not_count_as_solved() -> None:
    graphs = [queen(5, 5), queen(5, 5)]
    row = hard.measure("DSATUR", graphs, lambda: [np.zeros(graph.n, dtype=np.int64) for graph in graphs])
    assert (row.method, row.solved, row.graphs) == ("DSATUR", 0, 2)
    path = [Graph.of(3, [(0, 1), (1, 2)])]
    assert hard.measure("by hand", path, lambda: [np.array([0, 1, 0])]).solved == 1


def test_the_same_time_is_cpu_time() -> None:
    limits: list[tuple[object, object]] = []

    def record(graph: Graph, k: int, seed: int, *, max_moves: None, max_s: float, clock: object) -> TabuResult:
        limits.append((max_s, clock))
        return TabuResult(np.zeros(graph.n, dtype=np.int64), 1, 1, 0.0)

    hard.tabucol_colours(queen(5, 5), 0, max_cpu_s=0.25, search=record)
    assert limits == [(0.25, time.process_time)]


Parts = tuple[chromatic.HeldOut, chromatic.HeldOut]


@pytest.fixture(scope="module")
def parts(data_cache: Path) -> Parts:
    """24 graphs of training families and 24 of unseen families, before graphs are excluded."""
    return chromatic.held_out(24, NO_GRAPHS, max_nodes=24)


def test_an_estimate_must_beat_every_rival(run: str, parts: Parts) -> None:
    estimate = partial(chromatic.net_estimate, load_net(run).model)
    seen, others = chromatic.chromatic_rows(estimate, NO_GRAPHS, *parts)
    methods = ["one number for all: the training's mean", "clique found", "DSATUR", chromatic.HALFWAY]
    assert [row.method for row in seen] == [chromatic.ALONE, chromatic.BOUNDED, *methods, "TabuCol, 500 moves per k"]
    assert [row.passed is None for row in seen] == [False, False, True, True, True, True, True]
    assert [row.passed is None for row in others[:2]] == [True, False]
    assert seen[0].passed is False
    assert len({row.families for row in others}) > 3
    assert all(0 <= row.exact <= 1 and row.error >= 0 for row in [*seen, *others])
    right_G = parts[0].dataset.high_G[parts[0].chosen_G]
    assert seen[2].error == pytest.approx(np.abs(right_G.astype(float) - 3).mean())
    assert all(bounded.error <= alone.error for alone, bounded in zip(seen[::7], seen[1::7], strict=True))

    def oracle(dataset: GraphDataset, chosen_G: np.ndarray) -> np.ndarray:
        return dataset.high_G[chosen_G].astype(np.float64) + 0.4

    tied = chromatic.chromatic_rows(oracle, NO_GRAPHS, *parts)[0]
    assert tied[0].passed is (tied[4].exact < 1)
    bad_dsatur = replace(tied[4], exact=0.0, error=9.0)
    right, *_ = chromatic.judged([*tied[:4], bad_dsatur, *tied[5:]], (chromatic.ALONE,))
    assert (right.exact, right.error, right.passed) == (1.0, 0.0, True)


def test_graphs_of_the_training_set_are_excluded(parts: Parts) -> None:
    everything, _ = parts
    trained_hashes = np.sort(everything.dataset.hash_G[everything.chosen_G[:5]])
    seen, other = chromatic.held_out(24, replace(NO_GRAPHS, hash_G=trained_hashes), max_nodes=24)
    assert (everything.excluded, seen.excluded, other.excluded) == (0, 5, 0)
    assert len(everything.chosen_G) - len(seen.chosen_G) == 5
    assert not np.isin(seen.dataset.hash_G[seen.chosen_G], trained_hashes).any()


def test_the_shipped_training_graphs_are_those_of_the_shipped_weights() -> None:
    training = read_training_graphs()
    config = json.loads((SHIPPED / "config.json").read_text(encoding="utf-8"))
    assert training.weights_sha256 == config["weights_sha256"]
    assert len(np.unique(training.hash_G)) == len(training.hash_G) == small().data.train_graphs
    drawn = [generate_item(small().data, "train", item, 0)[1].graph for item in (0, 1, 2, 3999, 7998, 7999)]
    assert np.isin([weisfeiler_lehman_hash(graph) for graph in drawn], training.hash_G).all()
    assert not np.isin(weisfeiler_lehman_hash(Graph.of(2, [(0, 1)])), training.hash_G)
    assert 0.9 * len(training.hash_G) < training.counts_K.sum() <= len(training.hash_G)
    assert NO_GRAPHS.mean == pytest.approx(10 / 3)


@pytest.mark.parametrize(
    ("instance", "repaired", "passed"),
    [("queen8_8", 11, True), ("queen8_8", 12, False), ("anna", 12, True), ("anna", 13, False), ("anna", None, False)],
)
def test_net_with_repair_is_compared_with_dsatur(instance: str, repaired: int | None, passed: bool) -> None:
    colours = {"largest-first": 13, "DSATUR": 12, "TabuCol": 11, "net + repair": repaired, "net + TabuCol": 11}
    found = [
        BenchResult(instance, 64, 728, 8, 9, True, name, 0, c, 0 if c else 5, 1.0, 1.0, 0.5, 0, "")
        for name, c in colours.items()
    ]
    row = instances.instance_row(found)
    assert row["passed"] is passed
    assert row["net + repair"] == ("-" if repaired is None else repaired)


def test_an_untrained_net_fails_in_the_whole_table(run: str, data_cache: Path, tmp_path: Path) -> None:
    sizes = TableSizes(hard=2, chromatic=24, unseen=1, budget_s=0.05, hard_nodes=(50,), max_nodes=24)
    folder = tmp_path / "graphs"
    folder.mkdir()
    edges = "".join(f"e {u + 1} {v + 1}\n" for u, v in queen(5, 5).edges_E2.tolist())
    (folder / "queen5_5.col").write_text(f"p edge 25 {queen(5, 5).num_edges}\n{edges}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = make_table(sizes, folder, load_net(run))
    assert result["passed"] is False
    assert [len(rows) > 0 for rows in result["tables"].values()] == [True] * 5
    facts = result["facts"]
    assert facts["left out as isomorphic to a training graph"].startswith(("0 of", "1 of", "2 of"))
    assert facts["instances: seconds for each solver"] == 0.05
    assert "colours on 1 (queen5_5)" in facts["net + repair against random + repair"]
    rows = list(csv.DictReader(result["instances_csv"]))
    solvers = ["random + repair", "net raw", "net + repair", "net + TabuCol", "net + HEAD"]
    assert [row["solver"] for row in rows][-5:] == solvers
    assert all(float(row["cpu_s"]) >= 0 and int(row["conflicts"]) >= 0 for row in rows)
    json.dumps(result)
    for row in result["tables"]["Graphs of unseen families coloured with the chromatic number of colours, 4 tries"]:
        assert all(0 <= row[name] <= row["graphs"] for name in ("net_raw", "net_repaired", "random_repaired", "dsatur"))
        assert row["net_raw"] <= row["net_repaired"]


def test_unseen_families_are_coloured_with_the_chromatic_number(run: str, parts: Parts) -> None:
    dataset = parts[1].dataset
    for row in unseen.unseen_rows(load_net(run).model, dataset, max_graphs=1):
        g = int(np.flatnonzero(dataset.family_G == dataset.families.index(row.family))[0])
        fewest = len(np.unique(dsatur(dataset.graph(g)))) == dataset.high_G[g]
        assert (row.graphs, row.dsatur) == (1, int(fewest))
        assert row.nodes == f"{dataset.node_counts_G[g]} to {dataset.node_counts_G[g]}"
