"""The openings of a match: our own seeded set, each line a start that neither side regrets.

A line is eight uniformly random legal moves, kept if our alpha-beta sees no more than half a pawn for either side. All
draws are keyed by (seed, line, ply): the set is the same on every machine, and a longer set begins with the shorter.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass

from ranks.chess.board import Board
from ranks.chess.core.alphabeta import go_on
from ranks.chess.core.alphabeta_tree import new_tree, set_root, start

PLIES = 8
LEVEL_CP = 50
"""A line is kept where the side to move is ahead or behind by no more than this, in centipawns."""
DEPTH = 3
"""Of the search that says so, with captures played out and piece-square tables."""
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


def repetition_lines(openings: Iterable[Opening], pairs: int) -> Iterator[str]:
    """A line that says so where so many pairs of games are more than there are different openings for."""
    if isinstance(openings, Sized):
        different = len({(opening.fen, opening.moves) for opening in openings})
        if different < pairs:
            yield (
                f"{different} different openings for {pairs} pairs of games: openings are repeated, and as far as "
                "their games are too, the intervals are too narrow"
            )


def seeded_openings(seed: int) -> Iterator[Opening]:
    """Endless lines of 8 plies, no position twice, nobody in check."""
    tree = new_tree(table_bits=16)
    seen: set[str] = set()
    for line in itertools.count():
        board = _random_line(seed, line)
        if board is None or board.in_check or len(moves := board.legal_moves()) < MIN_MOVES:
            continue
        position = " ".join(board.fen().split()[:4])
        if position in seen:
            continue
        set_root(tree, board.rows, salt=line)
        start(tree, moves, DEPTH)
        go_on(tree, 1, 1, 1 << 40)
        if abs(int(tree.best[0])) <= LEVEL_CP:
            seen.add(position)
            yield Opening(f"seed {seed} line {line}", None, tuple(board.moves))


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
