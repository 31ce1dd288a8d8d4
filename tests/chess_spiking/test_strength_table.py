"""The strength of a player in games with the fixed players, and the bars of the shipped net."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ranks import UserError
from ranks.chess.players.tree_search import material_evaluator
from ranks.search.config import SearchConfig
from ranks.workloads.chess_spiking import strength_table
from ranks.workloads.chess_spiking.matches.plan import RUNGS, MatchConfig
from ranks.workloads.chess_spiking.matches.strength import play_rungs


def test_exact_material_beats_random_moves_and_not_alphabeta() -> None:
    rows = play_rungs(material_evaluator, MatchConfig(72, 16, 120, SearchConfig(16)))
    assert [row["against"] for row in rows] == [*RUNGS]
    assert [row["games"] for row in rows] == [18] * 4
    scores = {row["against"]: row["score"] for row in rows}
    assert scores["random"] > scores["alphabeta:1"]
    for row in rows:
        assert row["low"] <= row["score"] <= row["high"]
        assert row["by_repetition"] + row["truncated"] <= row["drawn"]
        assert row["rating"] == rows[0]["rating"]
    rating: dict[str, float] = rows[0]["rating"]
    assert rating["low"] < rating["value"] < rating["high"]


def rows_of(player: str, random: float, greedy: float) -> list[dict[str, Any]]:
    common = {"player": player, "low": 0.0, "high": 1.0, "drawn": 0, "by_repetition": 0}
    return [{**common, "against": "random", "score": random}, {**common, "against": "greedy", "score": greedy}]


@pytest.mark.parametrize(
    ("shipped", "expected"),
    [
        ((0.9, 0.6), [True, True]),
        ((0.8, 0.6), [False, True]),
        ((0.9, 0.4), [True, False]),
        ((0.9, 0.55), [True, False]),
    ],
)
def test_the_shipped_net_has_bars_and_must_beat_exact_material(
    shipped: tuple[float, float], expected: list[bool]
) -> None:
    rows = [*rows_of(strength_table.PACKAGE, *shipped), *rows_of(strength_table.MATERIAL, 0.7, 0.55)]
    judged = [*strength_table._judged(rows)]
    assert [row["passed"] for row in judged] == [*expected, None, None]


def test_a_package_without_weights_has_no_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(strength_table, "SHIPPED", tmp_path)
    with pytest.raises(UserError, match="no trained net"):
        strength_table.table()
