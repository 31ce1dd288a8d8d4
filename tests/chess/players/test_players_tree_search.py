"""The player that searches with a tree: what it finds, and how its tree follows the game."""

from __future__ import annotations

import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.commands.players import make_player
from ranks.chess.players.player import Limits
from ranks.chess.players.tree_search import centipawns
from tests.chess.positions import HANGING_QUEEN, MATES, choose


def test_tree_search_finds_a_mate_and_takes_a_queen() -> None:
    for fen in MATES[1]:
        board = Board(fen)
        board.push(choose("mcts:800", board).move)
        outcome = board.outcome()
        assert outcome is not None, fen
        assert outcome.reason == "checkmate", fen
    choice = choose("mcts:400", Board(HANGING_QUEEN))
    assert move_to_uci(choice.move) == "c3d5"
    assert choice.nodes <= 400


@pytest.mark.parametrize(
    ("halfmove_clock", "reason"), [(100, "fifty moves"), (130, "fifty moves"), (0, "threefold repetition")]
)
def test_tree_search_continues_if_a_draw_is_not_claimed(halfmove_clock: int, reason: str) -> None:
    board = Board(f"6k1/5ppp/8/8/8/8/8/R5K1 w - - {halfmove_clock} 90")
    player = make_player("mcts:100")
    player.new_game(0)
    for text in ["g1f1", "g8f8", "f1g1", "f8g8"] * 2 if halfmove_clock == 0 else []:
        assert player.choose(board, Limits(nodes=5)).nodes > 0
        board.push(board.parse_uci(text))
    outcome = board.outcome()
    assert outcome is not None
    assert outcome.reason == reason
    choice = player.choose(board, Limits())
    assert (move_to_uci(choice.move), choice.nodes) == ("a1a8", 100)
    for text in ["g1f1", "g8f8"]:
        board.push(board.parse_uci(text))
    choice = player.choose(board, Limits())
    assert choice.nodes == 100
    assert choice.move in board.legal_moves()


def test_tree_search_has_a_move_where_neither_side_can_mate() -> None:
    board = Board("8/8/4k3/8/8/4K3/8/8 w - - 0 1")
    assert choose("mcts:100", board).move in board.legal_moves()


def test_tree_search_follows_the_game_and_switches_to_another() -> None:
    player = make_player("mcts:100")
    player.new_game(0)
    board = Board()
    for _ in range(6):
        board.push(player.choose(board, Limits()).move)
    board.pop()
    board.pop()
    other = Board("8/8/8/8/3k4/8/1r6/K7 w - - 0 1")
    for position in (board, other, board):
        assert player.choose(position, Limits()).move in position.legal_moves()


def test_centipawns_of_an_expected_outcome() -> None:
    assert centipawns(0.0) == 0
    assert centipawns(2 * 10 / 11 - 1) == 400
    assert -5000 < centipawns(-1.0) == -centipawns(1.0) < -4000
