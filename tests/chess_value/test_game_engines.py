"""Which engines a run plays with: found before its first game, on all ranks, and part of its identity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ranks import World
from ranks.chess.uci import player
from ranks.errors import UserError
from ranks.workloads.chess_value.config import Config, LabelConfig
from ranks.workloads.chess_value.game_engines import GameEngines, find_game_engines
from tests.chess_value.labels.label_engine import engine_command
from tests.chess_value.tiny import CONFIG, run_config, train


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., GameEngines]:
    """The engines that a run finds; the program `stockfish` is there only if `stockfish`."""
    monkeypatch.setattr(player, "FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()

    def find(cfg: Config, *, stockfish: bool) -> GameEngines:
        program = tmp_path / "bin" / "stockfish"
        program.unlink(missing_ok=True)
        if stockfish:
            program.write_text(f"#!/bin/sh\nexec {engine_command(tmp_path)}\n")
            program.chmod(0o755)
        world = World.join(run_config(tmp_path, "run"), device="cpu", workload="chess-value")
        try:
            return find_game_engines(cfg, world)
        finally:
            world.leave()

    return find


def test_another_engine_for_labels_is_rated_with_stockfish_only_where_there_is_one(
    found: Callable[..., GameEngines], tmp_path: Path
) -> None:
    """So no rating asks for a missing engine in the middle of a run, and a resume without it is another run."""
    other = LabelConfig(engine=engine_command(tmp_path))
    cfg = replace(CONFIG, labels="stockfish", label=other)
    assert found(cfg, stockfish=False) == GameEngines(False, ("rated without Stockfish",))
    assert found(cfg, stockfish=True) == GameEngines(True, ("rated with Small 1.0",))
    outcome = replace(cfg, labels="outcome", stockfish_games=2)
    assert found(outcome, stockfish=False).identity == ("games with Small 1.0", "rated without Stockfish")
    assert found(CONFIG, stockfish=True) == GameEngines(False), "a run without Stockfish does not depend on one"


def test_stockfish_as_the_opponent_rates_too_and_is_named(found: Callable[..., GameEngines]) -> None:
    cfg = replace(CONFIG, labels="outcome", stockfish_games=2)
    assert found(cfg, stockfish=True) == GameEngines(True, ("games with Small 1.0",))
    with pytest.raises(UserError, match="or train with --stockfish-games 0") as error:
        found(cfg, stockfish=False)
    assert error.value.asked == "--stockfish-games 2"
    with pytest.raises(UserError, match="or train with --labels outcome --stockfish-games 0"):
        found(replace(cfg, labels="stockfish"), stockfish=False)


def test_a_missing_opponent_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    cfg = replace(CONFIG, labels="outcome", stockfish_games=2, label=LabelConfig(engine="no-such-engine"))
    with pytest.raises(UserError, match="no-such-engine"):
        train(tmp_path, "without", cfg)
    assert not (tmp_path / "runs" / "without").exists()
