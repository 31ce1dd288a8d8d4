"""Positions for tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranks.chess.board import Board


def random_boards(count: int, seed: int = 0) -> NDArray[np.uint64]:
    """uint64[N, 13]: different positions of random games."""
    rng = np.random.default_rng(seed)
    found: dict[int, NDArray[np.uint64]] = {}
    while len(found) < count:
        board = Board()
        while len(found) < count and board.ply < 80 and (moves := board.legal_moves()):
            board.push(moves[int(rng.integers(len(moves)))])
            if board.ply > 4 and board.outcome() is None:
                found.setdefault(int(board.words[12]), board.words.copy())
    return np.array(list(found.values()))
