"""The proof tables with a small untrained net: what they count, and that they can fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving.bench_report import Row
from ranks.workloads.graph_coloring.tables import chromatic, hard, instances
from ranks.workloads.graph_coloring.tables.table import table


def test_table_says_fail_for_an_untrained_net(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard, "NUM_GRAPHS_QUICK", 3)
    monkeypatch.setattr(hard, "SIZES", (50,))
    rows = hard.hard_rows(load_net(run).model, quick=True)
    ways = [row.way for row in rows]
    assert len(ways) == 7
    assert ways[4] == "DSATUR"
    raw, untrained = rows[:2]
    assert (raw.passed, untrained.passed) == (False, False)
    assert all(0 <= row.solved <= row.graphs == 3 for row in rows)


def test_a_claimed_colouring_that_is_wrong_is_not_counted(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard, "dsatur", lambda graph: np.zeros(graph.n, dtype=np.int64))
    monkeypatch.setattr(hard, "NUM_GRAPHS_QUICK", 2)
    monkeypatch.setattr(hard, "SIZES", (50,))
    rows = hard.hard_rows(load_net(run).model, quick=True)
    assert rows[4].solved == 0


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(chromatic, "NUM_GRAPHS_QUICK", 24)
    monkeypatch.setattr(chromatic, "MOST_NODES", 24)


def test_an_estimate_must_beat_every_other_way(run: str, few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, unseen = chromatic.chromatic_rows(load_net(run).model, quick=True)
    assert [row.way for row in seen[1:]] == ["one number for all: their mean", "clique found", "DSATUR"]
    assert seen[0].passed is False
    assert len({row.families for row in unseen}) > 3
    assert all(0 <= row.exact <= 1 and row.error >= 0 for row in [*seen, *unseen])

    def oracle(model: object, stored: chromatic.Stored, chosen_G: np.ndarray) -> np.ndarray:
        return stored.high_G[chosen_G].astype(np.float64) + 0.4

    monkeypatch.setattr(chromatic, "estimates", oracle)
    tied = chromatic.chromatic_rows(load_net(run).model, quick=True)[0]
    assert tied[0].passed is (tied[3].exact < 1)
    monkeypatch.setattr(chromatic, "dsatur", lambda graph: np.arange(graph.n))
    right, *_ = chromatic.chromatic_rows(load_net(run).model, quick=True)[0]
    assert (right.exact, right.error, right.passed) == (1.0, 0.0, True)


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


def test_the_whole_table_says_fail_for_an_untrained_net(run: str, few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard, "NUM_GRAPHS_QUICK", 2)
    monkeypatch.setattr(hard, "SIZES", (50,))
    result = table(quick=True, net=load_net(run))
    assert result["passed"] is False
    assert [len(rows) > 0 for rows in result["tables"].values()] == [True] * 3
