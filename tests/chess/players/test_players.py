"""The built-in players: legal moves, the same game for the same seed, limits and reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.commands.players import make_player
from ranks.chess.players.player import Clock, Info, Limits
from tests.chess.fake_clock import FakeClock
from tests.chess.positions import HANGING_QUEEN, MATES, choose, random_boards

OWN = ["random", "greedy", "minimax:2", "alphabeta:2", "alphabeta:3?evaluation=position", "mcts:100"]


def played(spec: str, seed: int, plies: int = 40) -> list[int]:
    """The moves of a game of a player against itself."""
    player = make_player(spec)
    player.new_game(seed)
    board = Board()
    while board.ply < plies and board.outcome() is None:
        board.push(player.choose(board.copy(), Limits()).move)
    player.close()
    return board.moves


@pytest.mark.parametrize("spec", OWN)
def test_games_are_legal_and_follow_from_the_seed(spec: str) -> None:
    first = played(spec, seed=7)  # an illegal move raises ValueError
    assert len(first) == 40
    assert first == played(spec, seed=7)
    if not spec.startswith("mcts"):
        assert first != played(spec, seed=8)


@pytest.mark.parametrize("spec", OWN)
def test_a_player_leaves_the_board_as_it_was_and_can_be_closed_twice(spec: str) -> None:
    board = random_boards(1, seed=3, plies=(20, 30))[0]
    before = board.fen(), board.moves.copy(), board.rows.copy()
    player = make_player(spec)
    assert player.name == spec
    player.new_game(0)
    assert player.choose(board, Limits()).move in board.legal_moves()
    assert (board.fen(), board.moves) == before[:2]
    assert (board.rows == before[2]).all()
    player.close()
    player.close()


def test_random_player_gives_every_move_its_share() -> None:
    player = make_player("random")
    board = Board()
    counts = dict.fromkeys(board.legal_moves(), 0)
    for seed in range(4000):
        player.new_game(seed)
        counts[player.choose(board, Limits()).move] += 1
    chi_square = sum((count - 200) ** 2 / 200 for count in counts.values())
    assert chi_square < 45  # 19 degrees of freedom: one correct player in a thousand is refused


def test_greedy_takes_what_is_worth_most_and_mates() -> None:
    assert move_to_uci(choose("greedy", Board(HANGING_QUEEN)).move) == "c3d5"
    assert move_to_uci(choose("greedy", Board("4k3/1P6/8/8/8/8/8/4K3 w - - 0 1")).move) == "b7b8q"
    for fen in MATES[1]:
        choice = choose("greedy", Board(fen))
        board = Board(fen)
        board.push(choice.move)
        assert board.outcome() is not None
        assert choice.mate_in == 1


@pytest.mark.parametrize("spec", ["alphabeta:64?evaluation=position", "minimax:64", "mcts:100000"])
def test_limits_end_a_search(spec: str) -> None:
    player = make_player(spec)
    player.new_game(0)
    board = Board()

    clock = FakeClock(tick_s=0.001)

    def seconds(limits: Limits) -> float:
        started_s = clock.now_s
        assert player.choose(board, replace(limits, now=clock)).move in board.legal_moves()
        return clock.now_s - started_s

    assert seconds(Limits(should_stop=lambda: True)) < 0.1
    assert seconds(Limits(infinite=True, should_stop=lambda: True)) < 0.1
    assert 0.04 < seconds(Limits(movetime_s=0.05)) < 0.3
    assert seconds(Limits(clock=Clock(0.01, 60))) < 0.1
    assert seconds(Limits(clock=Clock(1.0, 60))) < 0.5
    stop_s = clock.now_s + 0.1
    assert 0.09 < seconds(Limits(infinite=True, should_stop=lambda: clock.now_s >= stop_s)) < 0.4
    assert player.choose(board, Limits(nodes=1)).move in board.legal_moves()
    for nodes in (1, 777):
        player.new_game(0)
        first = player.choose(board, Limits(nodes=nodes))
        assert first.nodes <= nodes
        player.new_game(0)
        assert player.choose(board, Limits(nodes=nodes)) == first
    player.close()


@pytest.mark.parametrize("spec", ["alphabeta:3?evaluation=position", "mcts:200"])
def test_information_while_searching(spec: str) -> None:
    infos: list[Info] = []
    board = Board(HANGING_QUEEN)
    choice = choose(spec, board, Limits(multipv=3, on_info=infos.append))
    last = infos[-3:]
    assert [info.multipv for info in last] == [1, 2, 3]
    assert last[0].pv == choice.pv
    assert last[0].score_cp == choice.score_cp
    assert len({info.pv[0] for info in last}) == 3
    if spec.startswith("alpha"):
        scores = [info.score_cp for info in last if info.score_cp is not None]
        assert scores == sorted(scores, reverse=True)
        assert [info.depth for info in infos] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
        assert choose(spec, board).score_cp == choice.score_cp
    for info in infos:
        line = board.copy()
        for move in info.pv:
            line.push(move)
        assert info.elapsed_s >= 0
    assert [info.nodes for info in infos] == sorted(info.nodes for info in infos)
