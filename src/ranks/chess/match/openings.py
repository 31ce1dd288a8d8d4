"""The built-in openings of a match: balanced random lines that follow from a seed.

A line is eight uniformly random legal moves. It is kept if our alpha-beta search sees at most half
a pawn for either side. Each random number is a hash of (seed, line, ply), so the set is the same on
every machine, and a longer set starts with the shorter one.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass

from ranks.chess.board import Board
from ranks.chess.core.alphabeta import run_search
from ranks.chess.core.alphabeta_state import new_state, set_root, start
from ranks.chess.match import OPENING_PLIES

LEVEL_CP = 50
"""A line is kept if the score for the side to move is within this many centipawns of 0."""
DEPTH = 3
"""The depth of that search, which uses quiescence search and piece-square tables."""
MIN_MOVES = 5
"""The side to move must have at least this many legal moves."""


@dataclass(frozen=True)
class Opening:
    """The common start of a pair of games."""

    name: str
    fen: str | None
    """None: the initial position."""
    moves: tuple[int, ...]

    def board(self) -> Board:
        """A new board after the moves of the opening."""
        board = Board(self.fen)
        for move in self.moves:
            board.push(move)
        return board


def repetition_lines(openings: Iterable[Opening], pairs: int) -> Iterator[str]:
    """A warning if there are more pairs of games than different openings."""
    if isinstance(openings, Sized):
        different = len({(opening.fen, opening.moves) for opening in openings})
        if different < pairs:
            yield (
                f"{different} different openings for {pairs} pairs of games: openings are repeated. If games "
                "repeat too, the intervals are too narrow"
            )


def seeded_openings(seed: int) -> Iterator[Opening]:
    """An endless stream of lines of 8 plies.

    No position occurs twice and neither side is in check."""
    state = new_state(table_bits=16)
    seen: set[str] = set()
    for line in itertools.count():
        board = _random_line(seed, line)
        if board is None or board.in_check or len(moves := board.legal_moves()) < MIN_MOVES:
            continue
        position = " ".join(board.fen().split()[:4])
        if position in seen:
            continue
        set_root(state, board.rows, salt=line)
        start(state, moves, DEPTH)
        run_search(state, 1, 1, 1 << 40)
        if abs(int(state.best[0])) <= LEVEL_CP:
            seen.add(position)
            yield Opening(f"seed {seed} line {line}", None, tuple(board.moves))


def _random_line(seed: int, line: int) -> Board | None:
    """Uniformly random moves from the initial position, or None if the game ends too early."""
    board = Board()
    for ply in range(OPENING_PLIES):
        moves = sorted(board.legal_moves())
        if not moves:
            return None
        digest = hashlib.sha256(f"opening {seed} {line} {ply}".encode()).digest()
        board.push(moves[int.from_bytes(digest[:8], "little") % len(moves)])
    return board
