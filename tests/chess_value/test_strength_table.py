"""The table of chess-value, with a net that has learned nothing and few games."""

from __future__ import annotations

import json

import pytest
import torch

from ranks.chess.board import Board
from ranks.chess.commands.players import ENGINE
from ranks.chess.engine.evaluator import Evaluator
from ranks.chess.engine.nnue.inference import net_arrays
from ranks.chess.engine.tables import default_values
from ranks.chess.match.schedule import Participant
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.chess.players.strength import FILE
from ranks.errors import UserError
from ranks.workloads.chess_value.config import ValueNetConfig
from ranks.workloads.chess_value.net.building import build_net
from ranks.workloads.chess_value.net.nnue import NnueNet
from ranks.workloads.chess_value.net.quantise import quantise
from ranks.workloads.chess_value.players.saved_net import SHIPPED, from_files
from ranks.workloads.chess_value.strength_table import TRAINED_RATING, compare, material_values, opener, play, rated


def untrained() -> NnueNet:
    torch.manual_seed(0)
    net = build_net(ValueNetConfig(width=16))
    assert isinstance(net, NnueNet)
    return net


def test_an_untrained_net_loses_to_the_tables_at_equal_nodes_and_misses_the_bar_at_equal_time() -> None:
    rows = compare(quantise(untrained()), {"tables": Evaluator.of_tables(default_values())}, pairs=2)
    nodes, timed = rows
    assert (nodes["kind"], nodes["nodes"], nodes["its nodes"], nodes["passed"]) == ("equal nodes", 2000, 2000, None)
    assert nodes["won"] + nodes["drawn"] + nodes["lost"] == 4
    assert nodes["lost"] > nodes["won"]
    assert timed["kind"] == "equal time"
    assert timed["passed"] is False


class Dying:
    """A player whose engine dies at its first move."""

    name = "dying"

    def new_game(self, seed: int) -> None:
        pass

    def choose(self, board: Board, limits: Limits) -> Choice:
        raise Forfeit("the engine ended")

    def close(self) -> None:
        pass


def test_a_player_that_fails_gives_no_points() -> None:
    tables = Participant("net", opener("net", Evaluator.of_tables(default_values()), 10))
    with pytest.raises(UserError, match=r"dying could not go on: .* the engine ended"):
        play(tables, {"dying": Dying}, pairs=1)


def test_a_rating_has_its_games_and_its_interval() -> None:
    found = rated(Evaluator.of_net(net_arrays(quantise(untrained()))), pairs=1)
    assert found["games"] == 8
    assert found["low"] < found["value"] < min(found["high"], TRAINED_RATING)


def test_material_is_worth_the_same_on_every_square() -> None:
    values_PKS = material_values()
    assert (values_PKS == values_PKS[:, :, :1]).all()
    pawn, knight, rook, queen = (int(values_PKS[0, kind, 0]) for kind in (0, 1, 3, 4))
    assert pawn < knight < rook < queen


def test_the_shipped_net_plays_and_knows_what_a_queen_is_worth() -> None:
    shipped = from_files(SHIPPED, "a test")
    assert (SHIPPED / "nnue.safetensors").stat().st_size < 3e6
    player = opener("shipped", Evaluator.of_net(net_arrays(shipped.weights)), 200)()
    choice = player.choose(Board(), Limits())
    assert choice.move in Board().legal_moves()
    assert choice.score_cp is not None
    assert abs(choice.score_cp) < 100
    queen_up = player.choose(Board("rnb1kbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"), Limits())
    assert queen_up.score_cp is not None
    assert queen_up.score_cp > 300


def test_the_strengths_that_ship_are_those_of_the_weights_that_ship() -> None:
    """`python -m benchmarks.chess.strength` measures them again."""
    tables, net = Evaluator.of_tables(default_values()).sha256, from_files(SHIPPED, "a test").sha256
    shipped = {path: sha256 for path, sha256 in ((ENGINE / FILE, tables), (SHIPPED / FILE, net)) if path.exists()}
    if not shipped:
        pytest.skip("no player that ships has measured strengths")
    for path, sha256 in shipped.items():
        assert json.loads(path.read_text())["weights_sha256"] == sha256
