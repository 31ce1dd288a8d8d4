"""What a label belongs to: a position without its past.

A label is a function of the pieces, the side to move, castling and en passant. Engines also count the halfmove clock,
so all positions are labelled with the clock at 0; else two positions with one key would have two labels.

Legend: N positions, 13 words of a position (ranks.chess.core.words).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core.words import CASTLING_WORD, CLOCKS_WORD, EN_PASSANT_WORD, KEY_WORD, SIDE_WORD
from ranks.chess.fen import CASTLING as CASTLING_ROOKS
from ranks.chess.fen import square_name
from ranks.splitmix64 import GOLDEN_GAMMA, MIX_1, MIX_2

LETTERS = np.frombuffer(b"1PNBRQKpnbrqk", np.uint8)
"""Of an empty square, white's pieces and black's."""


class PositionKeys:
    """Two independent hashes of positions: the Zobrist key, and a check that tells positions with equal keys apart."""

    def __init__(self, boards_N13: NDArray[np.uint64]) -> None:
        self.key_N = np.ascontiguousarray(boards_N13[:, KEY_WORD])
        """uint64[N]: the Zobrist keys."""
        self.check_N = checks(boards_N13)
        """uint64[N]: splitmix64 over the words before the clocks."""


def checks(boards_N13: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """uint64[N]: a hash of the words 0 to 10, which does not use the Zobrist key."""
    state_N = np.zeros(len(boards_N13), np.uint64)
    for word in range(CLOCKS_WORD):
        state_N = _mix((state_N ^ boards_N13[:, word]) + np.uint64(GOLDEN_GAMMA))
    return state_N


def fresh_fens(boards_N13: NDArray[np.uint64]) -> list[str]:
    """The FENs of positions with the clocks `0 1`. As `format_fen`, but for many positions at once."""
    bits_NK64 = np.unpackbits(boards_N13[:, :8].astype("<u8").view(np.uint8), axis=1, bitorder="little")
    bits_NK64 = bits_NK64.reshape(len(boards_N13), 8, 64)
    kind_N64 = np.tensordot(bits_NK64[:, :6], np.arange(1, 7, dtype=np.uint8), ([1], [0])) + 6 * bits_NK64[:, 7]
    letters_N = LETTERS[kind_N64.reshape(-1, 8, 8)[:, ::-1]]  # the last rank first
    text = np.concatenate([letters_N, np.full_like(letters_N[:, :, :1], ord("/"))], axis=2).tobytes().decode()
    for run in range(8, 1, -1):
        text = text.replace("1" * run, str(run))
    ranks = text.split("/")
    fields = boards_N13[:, [SIDE_WORD, CASTLING_WORD, EN_PASSANT_WORD]].tolist()
    return [_fen("/".join(ranks[8 * row : 8 * row + 8]), *found) for row, found in enumerate(fields)]


def _fen(board: str, side: int, castling: int, en_passant: int) -> str:
    rights = "".join(letter for letter, rook in CASTLING_ROOKS.items() if castling >> rook & 1) or "-"
    square = square_name(en_passant.bit_length() - 1) if en_passant else "-"
    return f"{board} {'wb'[side]} {rights} {square} 0 1"


def _mix(x_N: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x_N = (x_N ^ (x_N >> np.uint64(30))) * np.uint64(MIX_1)
    x_N = (x_N ^ (x_N >> np.uint64(27))) * np.uint64(MIX_2)
    return x_N ^ (x_N >> np.uint64(31))
