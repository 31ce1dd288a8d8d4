"""Checks of our rules against python-chess, an independent library, on single and random positions.

A failed check raises AssertionError and names the position.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import chess
import numpy as np

from ranks.chess.board import Board
from ranks.chess.fen import START_FEN, parse_fen
from ranks.chess.san import format_line, format_san, parse_line, parse_san
from ranks.errors import UserError
from tests.chess.suites import perft_suites

REPETITIONS = np.uint64(0xFFFFFFFF)
"""The part of a position's clocks that does not count repetitions."""


def as_ours(move: chess.Move) -> int:
    """A move of python-chess in our 16 bits."""
    return move.from_square | move.to_square << 6 | (move.promotion - 1 if move.promotion else 0) << 12


def ending(rival: chess.Board) -> str | None:
    """How a game of python-chess has ended in our terms and order."""
    if not any(rival.legal_moves):
        return "checkmate" if rival.is_check() else "stalemate"
    if rival.is_repetition(3):
        return "threefold repetition"
    if rival.halfmove_clock >= 100:
        return "fifty moves"
    return "insufficient material" if rival.is_insufficient_material() else None


class Keys:
    """Checks that two positions have equal keys if and only if they are the same."""

    def __init__(self) -> None:
        self.position: dict[int, str] = {}
        self.key: dict[str, int] = {}

    def check(self, key: int, fen: str) -> None:
        """A key and the position that it belongs to."""
        same = " ".join(fen.split()[:4])
        assert self.position.setdefault(key, same) == same
        assert self.key.setdefault(same, key) == key


def check_position(board: Board, rival: chess.Board, keys: Keys) -> list[chess.Move]:
    """Legal moves, check, ending, FEN both ways and key of one position. Returns its legal
    moves."""
    fen = rival.fen()
    assert board.fen() == fen
    again, now = parse_fen(fen)[0], board.words.copy()
    now[11] &= REPETITIONS
    assert again.tolist() == now.tolist(), fen
    theirs = list(rival.legal_moves)
    assert sorted(board.legal_moves()) == sorted(map(as_ours, theirs)), fen
    assert board.in_check == rival.is_check(), fen
    outcome = board.outcome()
    assert (outcome and outcome.reason) == ending(rival), fen
    keys.check(int(board.words[12]), fen)
    return theirs


def check_san(board: Board, rival: chess.Board, move: chess.Move) -> None:
    """One move of a position as text, both ways."""
    text = rival.san(move)
    assert format_san(board, as_ours(move)) == text, rival.fen()
    assert parse_san(board, text) == as_ours(move), rival.fen()


def check_game(rng: random.Random, fen: str, plies: int, keys: Keys) -> tuple[int, str | None]:
    """A game of random moves, every position checked. Returns the number of positions and how it
    ended."""
    board, rival = Board(fen), chess.Board(fen)
    texts: list[str] = []
    while True:
        moves, outcome = check_position(board, rival, keys), board.outcome()
        end = outcome.reason if outcome else None  # as python-chess says too: that was checked
        if end or len(texts) == plies:
            break
        move = rng.choice(moves)
        texts.append(rival.san(move))
        board.push(as_ours(move))
        rival.push(move)
    assert format_line(board.rows[:1], board.moves) == texts, fen
    assert parse_line(board.rows[:1], texts) == board.moves, fen
    return len(texts) + 1, end


def placements(rng: random.Random) -> Iterator[str]:
    """Random placements of pieces that our FEN parser accepts, many with castling rights or en
    passant."""
    while True:
        squares = rng.sample(range(64), rng.randint(3, 16))
        letters = ["1"] * 64
        for square, letter in zip(squares, "Kk" + "".join(rng.choices("QRBNPPqrbnpp", k=14)), strict=False):
            if not (letter in "Pp" and square // 8 in (0, 7)):
                letters[square] = letter
        white = rng.random() < 0.5
        castling, en_passant = "-", "-"
        if rng.random() < 0.3:
            castling = _put_castling(rng, letters)
        if rng.random() < 0.4:
            en_passant = _put_double_push(rng, letters, white=white)
        rows = "/".join("".join(letters[8 * rank : 8 * rank + 8]) for rank in range(7, -1, -1))
        rows = re.sub("1+", lambda empty: str(len(empty[0])), rows)
        fen = f"{rows} {'w' if white else 'b'} {castling} {en_passant} {rng.randint(0, 99)} 60"
        try:
            parse_fen(fen)
        except UserError:
            continue
        yield fen


def _put_castling(rng: random.Random, letters: list[str]) -> str:
    """Kings and rooks at home, and the rights of some of them."""
    letters[letters.index("K")] = letters[letters.index("k")] = "1"
    for square, letter in ((4, "K"), (60, "k"), (0, "R"), (7, "R"), (56, "r"), (63, "r")):
        letters[square] = letter
    return "".join(letter for letter in "KQkq" if rng.random() < 0.7) or "-"


def _put_double_push(rng: random.Random, letters: list[str], *, white: bool) -> str:
    """A double push of an enemy pawn to a square next to one of our pawns."""
    file, neighbour = rng.choice([(file, file + side) for file in range(8) for side in (-1, 1) if 0 <= file + side < 8])
    rank, behind, home = (4, 5, 6) if white else (3, 2, 1)
    changed = {8 * rank + file: "p" if white else "P", 8 * rank + neighbour: "P" if white else "p"}
    changed |= {8 * behind + file: "1", 8 * home + file: "1"}
    if any(letters[square] in "Kk" for square in changed):
        return "-"
    for square, letter in changed.items():
        letters[square] = letter
    return f"{'abcdefgh'[file]}{behind + 1}"


def check_games(seed: int, num_positions: int, keys: Keys, plies: int = 260) -> dict[str | None, int]:
    """Random games from the positions of the perft suites in turn. Returns how often each ending
    came."""
    rng = random.Random(seed)
    starts = [START_FEN, *(fen for fen, _ in perft_suites())]
    ends: dict[str | None, int] = {}
    checked, game = 0, 0
    while checked < num_positions:
        positions, end = check_game(rng, starts[game % len(starts)], plies, keys)
        checked, game = checked + positions, game + 1
        ends[end] = ends.get(end, 0) + 1
    return ends


def check_placements(seed: int, num_positions: int, keys: Keys) -> int:
    """Random placements of pieces, with two moves each as text. Returns in how many of them a king
    is in check."""
    rng = random.Random(seed)
    checks = 0
    for fen, _ in zip(placements(rng), range(num_positions), strict=False):
        board, rival = Board(fen), chess.Board(fen)
        moves = check_position(board, rival, keys)
        for move in rng.sample(moves, min(2, len(moves))):
            check_san(board, rival, move)
        checks += board.in_check
    return checks
