"""The positions after random moves: legal, different, and all of them where a position has few moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core import rules
from ranks.chess.core.children import random_children
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.words import WORDS
from ranks.chess.fen import parse_fen
from tests.chess_value.boards import random_boards

BOARDS = np.ascontiguousarray(random_boards(60))


def all_children(board_13: NDArray[np.uint64]) -> list[bytes]:
    """The positions after each legal move."""
    moves, after = np.empty(MAX_MOVES, np.uint16), np.empty((1, WORDS), np.uint64)
    found: list[bytes] = []
    for move in moves[: rules.legal(board_13[None], 0, moves, 0) % rules.CHECK].tolist():
        rules.play(board_13[None], 0, after, 0, move)
        found.append(after[0].tobytes())
    return found


def test_children_are_positions_after_different_legal_moves() -> None:
    uniform_NK = np.random.default_rng(1).random((len(BOARDS), 3))
    found = random_children(BOARDS, uniform_NK)
    assert len(found.boards_M13) == len(found.parent_M)
    for parent, board_13 in enumerate(BOARDS):
        legal = all_children(board_13)
        mine = [child.tobytes() for child in found.boards_M13[found.parent_M == parent]]
        assert len(mine) == len(set(mine)) == min(3, len(legal))
        assert set(mine) <= set(legal)
    again = random_children(BOARDS[20:40], uniform_NK[20:40])
    assert np.array_equal(again.boards_M13, found.boards_M13[(found.parent_M >= 20) & (found.parent_M < 40)])
    other = random_children(BOARDS, 1 - uniform_NK - 1e-9)
    assert not np.array_equal(other.boards_M13, found.boards_M13)


def test_a_position_with_fewer_moves_gives_all_its_children() -> None:
    for fen, moves in (("8/8/8/8/8/4k3/8/4K3 w - - 0 1", 2), ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", 0)):
        board_13 = parse_fen(fen)[0]
        found = random_children(board_13[None], np.full((1, 5), 0.99))
        assert sorted(child.tobytes() for child in found.boards_M13) == sorted(all_children(board_13))
        assert len(found.boards_M13) == moves
