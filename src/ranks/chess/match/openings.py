"""The openings of a match: our own seeded set, each line a start that neither side regrets.

A line is made of uniformly random legal moves, and kept if material stays level under best play of a few plies. All
draws are keyed by (seed, line, ply): the set is the same on every machine, and a longer set begins with the shorter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ranks.chess.board import Board

PLIES = 8
LEVEL_CP = 100
"""A line is kept where the search sees at most this advantage, in centipawns, for the side to move."""
MIN_MOVES = 5
"""The side to move must have as many legal moves."""


@dataclass(frozen=True)
class Opening:
    """Where a pair of games begins."""

    name: str
    fen: str | None
    """None: the initial position."""
    moves: tuple[int, ...]

    def board(self) -> Board:
        """A new board after the opening's moves."""
        board = Board(self.fen)
        for move in self.moves:
            board.push(move)
        return board


def seeded_openings(seed: int, judge: Callable[[Board], int]) -> Iterator[Opening]:
    """Endless lines of 8 plies, no position twice. `judge` gives the score of the side to move in centipawns."""
    seen: set[str] = set()
    line = 0
    while True:
        board = _random_line(seed, line)
        line += 1
        if board is None or board.in_check or len(board.legal_moves()) < MIN_MOVES:
            continue
        position = " ".join(board.fen().split()[:4])
        if position not in seen and abs(judge(board)) <= LEVEL_CP:
            seen.add(position)
            yield Opening(f"seed {seed} line {line - 1}", None, tuple(board.moves))


def _random_line(seed: int, line: int) -> Board | None:
    """Uniformly random moves from the start, or None where the game ends before."""
    board = Board()
    for ply in range(PLIES):
        moves = sorted(board.legal_moves())
        if not moves:
            return None
        draw = hashlib.sha256(f"opening {seed} {line} {ply}".encode()).digest()
        board.push(moves[int.from_bytes(draw[:8], "little") % len(moves)])
    return board
