"""Nets as players of `ranks chess`: of a run, of its snapshots, and of the package's files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import chess
import numpy as np
import pytest
import torch

from ranks.chess.board import Board, move_to_uci
from ranks.chess.commands import players
from ranks.chess.commands.match_options import participants
from ranks.chess.commands.players import make_player
from ranks.chess.core.rules import CHESS
from ranks.chess.players.player import Limits
from ranks.cli.main import main
from ranks.errors import UserError
from ranks.search.evaluation import Leaves
from ranks.selfplay import SelfPlayConfig
from ranks.selfplay.net.net_evaluator import NetEvaluator
from ranks.workloads.chess_spiking.building import build_net
from ranks.workloads.chess_spiking.config import PRESETS, NetConfig
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.players import specs
from ranks.workloads.chess_spiking.players.net_player import net_player
from ranks.workloads.chess_spiking.players.saved_net import SavedNet, from_files, from_run
from tests.chess_spiking.net.reference import leaves, positions
from tests.chess_spiking.tiny import TINY_NET, train

MATE_IN_ONE = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1"
CPU = torch.device("cpu")


def made(net: NetConfig = TINY_NET) -> SavedNet:
    torch.manual_seed(0)
    return SavedNet(build_net(net).eval(), net, SelfPlayConfig(), seed=0, sha256="", source="a test")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs/tiny of 3 iterations: matches, and so checkpoints, after 2 and 3."""
    folder = tmp_path_factory.mktemp("trained")
    train(folder)
    return folder


@pytest.fixture
def runs(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the runs in the current folder, which a test may change."""
    shutil.copytree(trained / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(players, "MODULES", ["ranks.workloads.chess_spiking", "ranks.workloads.run_players"])
    return tmp_path / "runs"


# The evaluator and the players ----------------------------------------------------------------------------------------


def test_an_evaluator_pads_leaves_and_skips_rows_without_one() -> None:
    batch, saved = leaves(positions()[:5]), made()
    evaluator = NetEvaluator(saved.model, CHESS, encoding_of(TINY_NET, 0), CPU)
    whole = evaluator(batch)
    assert np.allclose(whole.priors_BM.sum(1), 1, atol=1e-6)
    assert np.abs(whole.value_B).max() < 1
    fewer = batch.num_moves_B.copy()
    fewer[[1, 3]] = 0
    partly = evaluator(Leaves(batch.states_BW, batch.moves_BM, fewer))
    kept = [0, 2, 4]
    assert np.allclose(partly.priors_BM[kept], whole.priors_BM[kept], atol=1e-6)
    assert np.allclose(partly.value_B[kept], whole.value_B[kept], atol=1e-6)
    assert not partly.priors_BM[[1, 3]].any()


@pytest.mark.parametrize("simulations", [0, 1, 12])
def test_a_player_moves_legally_and_always_the_same(simulations: int) -> None:
    games: list[list[int]] = []
    for _ in range(2):
        player = net_player("net", made(), simulations)
        player.new_game(1)
        board = Board()
        for _ in range(4):
            board.push(player.choose(board, Limits()).move)
        games.append(board.moves)
        player.close()
    assert games[0] == games[1]


def test_search_finds_a_mate_that_an_untrained_policy_does_not_know() -> None:
    player = net_player("net", made(), 32)
    player.new_game(0)
    choice = player.choose(Board(MATE_IN_ONE), Limits())
    assert move_to_uci(choice.move) == "d1d8"
    assert choice.nodes == 32


def test_the_policy_player_plays_the_likeliest_move() -> None:
    """Trained by hand: the bias of one plane, moves of two squares to the north."""
    saved = made()
    assert isinstance(saved.model.policy_out.bias, torch.Tensor)
    with torch.no_grad():
        saved.model.policy_out.weight.zero_()
        saved.model.policy_out.bias.zero_()
        saved.model.policy_out.bias[1] = 10
    player, board = net_player("net", saved, 0), Board()
    for expected in ("a2a4", "a7a5"):
        uci = move_to_uci(player.choose(board, Limits()).move)
        assert (uci[1], uci[3]) == (expected[1], expected[3])
        board.push(board.parse_uci(uci))


def test_the_origin_s_net_plays() -> None:
    player, board = net_player("origin", made(PRESETS["origin"]().net), 0), Board()
    assert player.choose(board, Limits()).move in board.legal_moves()


def test_the_shipped_net_plays_and_knows_what_a_queen_is_worth() -> None:
    saved = from_files(specs.SHIPPED, "a test")
    assert (specs.SHIPPED / "model.safetensors").stat().st_size < 3e6
    player, board = net_player("shipped", saved, 16), Board()
    assert player.choose(board, Limits()).move in board.legal_moves()
    with_queen, without = "4k3/pppp4/8/8/8/8/PPPP4/3QK3 w - - 0 1", "3qk3/pppp4/8/8/8/8/PPPP4/4K3 w - - 0 1"
    evaluator = NetEvaluator(saved.model, CHESS, encoding_of(saved.net, saved.seed), CPU)
    values = evaluator(leaves([chess.Board(with_queen), chess.Board(without)])).value_B
    assert values[0] > values[1] + 0.2


# Words ----------------------------------------------------------------------------------------------------------------


def test_words_name_the_best_checkpoint_the_newest_and_snapshots(runs: Path) -> None:
    found = {which: from_run("tiny", which, "x").source for which in ("best", "latest", "1", "3")}
    assert found["latest"] == found["3"] == "tiny, iteration 3"
    assert found["1"] == "tiny, iteration 1"
    assert not (runs / "tiny" / "checkpoints" / "00000001").exists()
    rows = [json.loads(line) for line in (runs / "tiny" / "metrics.jsonl").read_text().splitlines()]
    assert found["best"] == f"tiny, iteration {rows[-1]['match/best_iteration']:.0f}"
    board = Board()
    for word in ("run:tiny", "run:tiny@2", "run:tiny/1@0", "run:tiny/latest@3", f"run:{runs}/tiny/2@1"):
        player = make_player(word)
        player.new_game(0)
        assert player.choose(board, Limits(nodes=2)).move in board.legal_moves()
        assert player.name == word


def test_the_command_line_plays_a_match_of_two_states_of_a_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "chess match --player run:tiny/1@2 --player run:tiny/3@2 --rounds 1 --max-plies 10"
    assert main(command.split()) == 0
    assert "Score of run:tiny/1@2 vs run:tiny/3@2: 0 - 0 - 2" in capsys.readouterr().out
    first, second = (found.identity["sha256"] for found in participants(["run:tiny/1@2", "run:tiny/3@2"]))
    assert first != second


def test_a_published_net_plays_as_its_run_does(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["publish", "tiny", "--to", "me/tiny", "--checkpoint", "2", "--dry-run"]) == 0
    shutil.copytree(runs / "tiny" / "publish", "net")
    ours, theirs = participants(["run:tiny/2@4", "model:net@4"])
    assert ours.identity["sha256"] == theirs.identity["sha256"]
    moves = [side.open().choose(Board(), Limits()).move for side in (ours, theirs)]
    assert moves[0] == moves[1]
    Path("net/model.safetensors").write_bytes(b"damaged")
    assert main(["chess", "match", "--player", "model:net", "--player", "random", "--rounds", "1"]) == 2
    assert "its config.json says" in capsys.readouterr().err


def change_settings(run: Path, change: Any) -> None:
    """Change the settings of a run, in both files that hold them."""
    for name in ("run_config.json", "run.json"):
        content = json.loads((run / name).read_text())
        change(content if name == "run_config.json" else content["identity"])
        (run / name).write_text(json.dumps(content))


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("word", "found", "do"),
    [
        ("run:tiny/2@many", "'many' is not a number", "run:RUN"),
        ("run:tiny?x=1", "no options", "write run:tiny"),
        ("run", "the name of a run is missing", "run:RUN"),
        ("run:tny", "no run tny", "did you mean tiny?"),
        ("run:tiny/7", "but those of 0, 1, 2, 3", "name one of those"),
        ("runs:tiny", "there is no player 'runs'", "did you mean run?"),
        ("chess-spikng@8", "there is no player 'chess-spikng'", "did you mean chess-spiking?"),
        ("chess-spiking:8", "simulations follow an @, not '8'", "chess-spiking[@SIMULATIONS]"),
        ("chess-spiking@8", "this version of ranks has no trained net", "run:RUN"),
    ],
)
def test_other_words_are_refused(
    word: str, found: str, do: str, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(specs, "SHIPPED", tmp_path / "nothing")
    with pytest.raises(UserError) as error:
        make_player(word)
    assert found in error.value.found
    assert do in error.value.do
    assert main(["chess", "play", "--player", word]) == 2


def test_runs_of_another_game_or_net_and_damaged_ones_are_refused(runs: Path) -> None:
    def refused(word: str) -> str:
        with pytest.raises(UserError) as error:
            make_player(word)
        assert error.value.asked == f"the player '{word}'"
        return error.value.found

    flip_a_bit(runs / "tiny" / "checkpoints" / "00000003" / "learner.safetensors")
    assert "learner.safetensors: its sha256 is not the manifest's" in refused("run:tiny/3")
    snapshot = next((runs / "tiny" / "kept" / "snapshots").glob("00000000-*"))
    flip_a_bit(snapshot)
    assert snapshot.name in refused("run:tiny/1")

    change_settings(runs / "tiny", lambda content: content["config"]["net"].update(width=16))
    assert "are of another net" in refused("run:tiny/2")
    change_settings(runs / "tiny", lambda content: content.update(workload="./my_game.py"))
    assert "a run of ./my_game.py, whose net is no player of chess" in refused("run:tiny")


def test_the_files_of_the_package_are_a_player(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "weights"
    folder.write_text("a file is in its way")
    assert main(["chess-spiking", "weights", "tiny/1", "--out", str(folder)]) == 2
    assert f"{folder} is no folder" in capsys.readouterr().err
    folder.unlink()
    assert main(["chess-spiking", "weights", "tiny/1", "--out", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "config.json"}
    monkeypatch.setattr(specs, "SHIPPED", folder)
    from_package, of_run = from_files(folder, "x"), from_run("tiny", "1", "x")
    assert from_package.sha256 == of_run.sha256
    assert from_package.net == TINY_NET
    board = Board()
    assert make_player("chess-spiking@3").choose(board, Limits()) == make_player("run:tiny/1@3").choose(board, Limits())
    flip_a_bit(folder / "model.safetensors")
    with pytest.raises(UserError, match="damaged"):
        make_player("chess-spiking")
