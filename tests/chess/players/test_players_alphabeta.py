"""Alpha-beta and minimax: the value of trying everything, and mates."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.commands.players import make_player
from ranks.chess.core.alphabeta_state import MATE
from ranks.chess.core.evaluation import evaluations
from ranks.chess.fen import START_FEN
from ranks.chess.players.player import Choice, Info, Limits
from tests.chess.positions import HANGING_QUEEN, MATES, choose, random_boards


@pytest.mark.parametrize("spec", ["minimax:2", "alphabeta:2", "alphabeta:3?evaluation=position"])
def test_two_plies_keep_the_queen(spec: str) -> None:
    board = Board("r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4")
    for seed in range(10):
        player = make_player(spec)
        player.new_game(seed)
        after = board.copy()
        after.push(player.choose(board, Limits()).move)
        white_queen = int(after.words[4] & after.words[6])
        taken = [move for move in after.legal_moves() if white_queen >> (move >> 6 & 63) & 1]
        assert not taken or move_to_uci(after.moves[-1]) == "h5f7"


def evaluated(board: Board, positional: bool) -> int:
    scores_cp = np.zeros(1, np.int64)
    evaluations(board.rows[-1:].copy(), positional, scores_cp)
    return int(scores_cp[0])


def test_evaluation_by_hand_and_from_both_sides() -> None:
    assert evaluated(Board(), True) == evaluated(Board(), False) == 0
    rook_up = Board("4k3/8/8/8/8/8/8/R3K3 w - - 0 1")
    assert evaluated(rook_up, False) == 500
    assert evaluated(rook_up, True) == 500 + 0 + (-30) - (-30)
    pawn_on_seventh = Board("4k3/8/8/8/8/8/p7/4K3 b - - 0 1")
    assert evaluated(pawn_on_seventh, True) == 100 + 50
    knight_in_the_centre = Board("4k3/8/8/8/3N4/8/8/4K3 b - - 0 1")
    assert evaluated(knight_in_the_centre, True) == -(320 + 20)
    with_queens = Board("q3k3/8/8/8/8/8/8/Q3K2R w - - 0 1")  # white has more than a queen: no endgame
    assert evaluated(with_queens, True) == 500 + (-20 + 0) + 0 - (-20 + 0)
    for board in random_boards(20, seed=1, plies=(10, 60)):
        mirrored = Board(mirror(board.fen()))
        assert evaluated(board, True) == evaluated(mirrored, True)
        assert evaluated(board, False) == evaluated(mirrored, False)


def mirror(fen: str) -> str:
    """The same position with colours exchanged."""
    rows, side, castling, en_passant, *clocks = fen.split()
    rows = "/".join(reversed(rows.swapcase().split("/")))
    if en_passant != "-":
        en_passant = en_passant[0] + str(9 - int(en_passant[1]))
    return " ".join([rows, "b" if side == "w" else "w", castling.swapcase(), en_passant, *clocks])


class Minimax:
    """A reference implementation: minimax with a quiescence search, by the rules of Board, without
    pruning."""

    def __init__(self, positional: bool, quiescence: bool) -> None:
        self.positional, self.quiescence = positional, quiescence

    def value(self, board: Board, depth: int, ply: int = 0) -> int:
        outcome = board.outcome()
        if ply and outcome:
            return ply - MATE if outcome.reason == "checkmate" else 0
        if depth < 0 or (depth == 0 and not (self.quiescence and board.in_check)):
            return self.leaf(board, ply)
        best = -10 * MATE
        for move in board.legal_moves():
            board.push(move)
            best = max(best, -self.value(board, depth - 1, ply + 1))
            board.pop()
        return best

    def leaf(self, board: Board, ply: int) -> int:
        best = evaluated(board, self.positional)
        for move in self.captures(board):
            board.push(move)
            outcome = board.outcome()
            won = MATE - ply - 1 if outcome and outcome.reason == "checkmate" else 0
            best = max(best, won if outcome else -self.leaf(board, ply + 1))
            board.pop()
        return best

    def captures(self, board: Board) -> list[int]:
        if not self.quiescence:
            return []
        pieces = int(board.words[6] | board.words[7])
        pawns, en_passant = int(board.words[0]), int(board.words[10])
        return [
            move
            for move in board.legal_moves()
            if pieces >> (move >> 6 & 63) & 1
            or move >> 12
            or (en_passant >> (move >> 6 & 63) & 1 and pawns >> (move & 63) & 1)
        ]


def mates(board: Board, moves: int) -> bool:
    """Whether the side to move can force mate in so many moves: everything is tried."""
    for move in board.legal_moves():
        board.push(move)
        outcome = board.outcome()
        forced = outcome.reason == "checkmate" if outcome else moves > 1 and loses(board, moves - 1)
        board.pop()
        if forced:
            return True
    return False


def loses(board: Board, moves: int) -> bool:
    """Whether every move of the side to move lets it be mated in so many moves."""
    for move in board.legal_moves():
        board.push(move)
        mated = board.outcome() is None and mates(board, moves)
        board.pop()
        if not mated:
            return False
    return True


def value_of(choice: Choice) -> int:
    if choice.mate_in is None:
        assert choice.score_cp is not None
        return choice.score_cp
    return MATE - 2 * choice.mate_in + 1 if choice.mate_in > 0 else -MATE - 2 * choice.mate_in


@pytest.mark.parametrize("spec", ["alphabeta:{}", "alphabeta:{}?evaluation=position", "minimax:{}"])
@pytest.mark.parametrize(("depth", "number", "max_pieces"), [(1, 100, 14), (2, 30, 9), (3, 12, 6)])
def test_alpha_beta_is_minimax(spec: str, depth: int, number: int, max_pieces: int) -> None:
    reference = Minimax(positional=spec != "alphabeta:{}", quiescence=spec.startswith("alphabeta"))
    for board in random_boards(number, seed=depth, plies=(60, 120), max_pieces=max_pieces):
        choice = choose(spec.format(depth), board)
        assert value_of(choice) == reference.value(board, depth), board.fen()
        board.push(choice.move)
        if not board.outcome():
            assert -reference.value(board, depth - 1, ply=1) == value_of(choice), board.fen()


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ("minimax:1", [20, 43, 14]),
        ("minimax:2", [107, 128, 43]),
        ("alphabeta:1", [20, 68, 20]),
        ("alphabeta:2", [83, 216, 119]),
        ("alphabeta:3", [625, 216, 394]),
        ("alphabeta:4", [1990, 216, 1347]),
        ("alphabeta:3?evaluation=position", [676, 218, 449]),
    ],
)
def test_the_rungs_search_the_nodes_of_the_code_that_made_the_ladder(spec: str, nodes: list[int]) -> None:
    """These are the counts at 5b68d0d1, which has played benchmarks/results/chess_ladder_2026-11-20.json."""
    after_four_moves = "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
    rook_ending = "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
    assert [choose(spec, Board(fen)).nodes for fen in (START_FEN, after_four_moves, rook_ending)] == nodes


def test_threads_change_no_score() -> None:
    running = threading.enumerate()
    one, three = make_player("alphabeta:5?evaluation=position"), make_player("alphabeta:5?evaluation=position")
    for board in random_boards(12, seed=9, plies=(10, 60)):
        assert value_of(one.choose(board, Limits())) == value_of(three.choose(board, Limits(threads=3))), board.fen()
    three.choose(Board(), Limits(threads=2, movetime_s=0.02))
    assert one.choose(Board(), Limits()) == one.choose(Board(), Limits(threads=1))
    one.close()
    three.close()
    assert [thread for thread in threading.enumerate() if thread not in running] == []


def test_alpha_beta_is_minimax_where_repetition_and_fifty_moves_matter() -> None:
    """Kings and rooks that have moved back and forth, so that many positions have occurred before,
    and late clocks."""
    rng = random.Random(5)
    reference = Minimax(positional=True, quiescence=True)
    drawn = 0
    for number in range(20):
        board = Board(f"7k/8/8/8/8/8/1p6/K7 w - - {0 if number % 2 else 93 + number % 5} 80")
        while board.ply < 4 * (number % 3):
            there = rng.choice(board.legal_moves())
            back = (there >> 6 & 63) | (there & 63) << 6
            reply = next((m for m in board.legal_moves() if m == back), None)
            board.push(reply or there)
            if board.outcome():
                board.pop()
                break
        plain = Minimax.value(reference, board, 5)
        assert value_of(choose("alphabeta:5?evaluation=position", board)) == plain, (board.fen(), board.moves)
        drawn += plain == 0
    assert drawn


@pytest.mark.parametrize("moves", MATES)
def test_mates_are_found_and_are_the_shortest(moves: int) -> None:
    for fen in MATES[moves]:
        board = Board(fen)
        assert mates(board, moves), fen
        assert moves == 1 or not mates(board, moves - 1), fen
        for spec in (f"alphabeta:{2 * moves - 1}", f"minimax:{2 * moves - 1}", "alphabeta:8?evaluation=position"):
            choice = choose(spec, board)
            assert choice.mate_in == moves, (spec, fen)
            assert choice.score_cp is None
            after = board.copy()
            for move in choice.pv:
                after.push(move)
            assert choice.pv[0] == choice.move
            outcome = after.outcome()
            assert len(choice.pv) < 2 * moves - 1 or (outcome is not None and outcome.reason == "checkmate")
            reply = board.copy()
            reply.push(choice.move)
            if moves > 1:
                assert choose(spec.replace(str(2 * moves - 1), str(2 * moves)), reply).mate_in == 1 - moves


def test_depth_is_limited_by_the_spec_and_by_the_limits() -> None:
    board = Board(HANGING_QUEEN)
    assert choose("alphabeta:4", board, Limits(depth=2)).depth == 2
    assert choose("alphabeta:3", board, Limits(depth=9)).depth == 3
    assert choose("alphabeta:3", board, Limits(depth=9)).score_cp == choose("alphabeta:3", board).score_cp


def test_lines_are_no_more_than_legal_moves() -> None:
    infos: list[Info] = []
    board = Board("8/8/8/8/3k4/8/1r6/K7 w - - 0 1")
    assert len(board.legal_moves()) < 5
    choose("alphabeta:2", board, Limits(multipv=5, on_info=infos.append))
    assert max(info.multipv for info in infos) == len(board.legal_moves())
