"""A net as a player of a ladder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ranks.chess.board import Board
from ranks.chess.players.player import Choice, Limits
from ranks.chess.players.tree_search import centipawns
from ranks.cli.main import main
from ranks.engine.export.about import ExportAbout
from ranks.engine.export.export import export_model
from ranks.workloads.chess_value.analysis.game import score_position
from ranks.workloads.chess_value.config import ValueNetConfig
from ranks.workloads.chess_value.labelling.search_labels import SearchWorker
from ranks.workloads.chess_value.labels.units import MATE_CP, win_probability
from ranks.workloads.chess_value.matches.rungs import open_stockfish
from ranks.workloads.chess_value.net.building import build_net
from ranks.workloads.chess_value.net.inputs import inputs_of
from ranks.workloads.chess_value.players.net_player import open_net, open_quantised
from ranks.workloads.chess_value.players.score_units import label_cp
from tests.chess_value.labels.label_engine import engine_command


def export(folder: Path, net: ValueNetConfig, seed: int) -> None:
    """Write an untrained net as `ranks fetch` would."""
    torch.manual_seed(seed)
    export_model(build_net(net), folder)
    (folder / "ranks.json").write_bytes(ExportAbout("chess-value", "demo", 1, 0, {}, {}, {}).to_bytes())


def test_the_score_of_a_search_is_a_label_of_the_same_win_probability(tmp_path: Path) -> None:
    """Players count centipawns otherwise than labels do. The position has one move, and no capture comes after it."""
    torch.manual_seed(4)
    net = build_net(ValueNetConfig(width=64))
    board = Board("7k/8/8/8/8/p7/P6r/K7 w - - 0 1")
    player = open_net(net, "net", nodes=2)()
    (only,) = board.legal_moves()
    label = label_cp(player.choose(board, Limits()), player)
    analysed = score_position(board, player, Limits())
    board.push(only)
    with torch.no_grad():
        expected = 1 - torch.sigmoid(net(*inputs_of("nnue", board.words[None], torch.device("cpu")))).item()
    assert abs(expected - 0.5) > 0.04
    assert win_probability(np.array([label], np.int16))[0] == pytest.approx(expected, abs=0.005)
    assert analysed.win == pytest.approx(expected, abs=0.005), "an analysis says the same"

    searcher = open_net(build_net(ValueNetConfig(kind="resnet", blocks=1, block_channels=8)), "net", nodes=2)()
    label = label_cp(Choice(only, centipawns(0.4)), searcher)
    assert win_probability(np.array([label], np.int16))[0] == pytest.approx(0.7, abs=0.001)
    engine = open_stockfish(engine_command(tmp_path), nodes=1)
    assert label_cp(Choice(only, 123), engine) == 123, "labels are in the unit of a UCI engine"
    engine.close()


def test_a_search_labels_positions_in_which_the_game_has_ended() -> None:
    """Children of positions that are not quiet may be mate or stalemate."""
    fens = ("7k/5KQ1/8/8/8/8/8/8 b - - 0 1", "7k/5K2/6Q1/8/8/8/8/8 b - - 0 1", Board().fen())
    boards_N13 = np.array([Board(fen).words for fen in fens], np.uint64)
    worker = SearchWorker(boards_N13, open_quantised(None, "tables", 10, None)())
    mated, stalemate, start = (worker.run(task, lambda: False) for task in range(3))
    worker.close()
    assert (mated, stalemate) == (-MATE_CP, 0)
    assert abs(start) < 100


@pytest.mark.parametrize(
    "net",
    [
        ValueNetConfig(kind="cnn", channels=(4, 4, 4), hidden=(8, 8)),
        ValueNetConfig(kind="resnet", blocks=1, block_channels=8),
        ValueNetConfig(width=16),
    ],
    ids=lambda net: net.kind,
)
def test_a_ladder_with_other_weights_under_the_same_name_is_refused(
    net: ValueNetConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["chess", "ladder", "pool", "--player", "model:net@2", "--player", "random"]
    command += ["--games-per-pair", "2", "--max-plies", "10"]
    for _ in range(2):
        export(tmp_path / "net", net, seed=1)
        assert main(command) == 0
    export(tmp_path / "net", net, seed=2)
    capsys.readouterr()
    assert main(command) == 2
    assert "model:net@2: sha256 was " in capsys.readouterr().err
