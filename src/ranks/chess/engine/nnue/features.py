"""The inputs of the net: which piece is on which square, as seen from the king of each side.

Each side has its own view of the board, its *perspective*. Black's view is turned upside down. A view whose king is on
the files a to d is mirrored, so that the king is on the files e to h. The square of the king then chooses one of six
buckets, and a feature is (bucket, piece, square):

    rank 8 to 5    5 5 5 5        piece   0 to 5    pawn, knight, bishop, rook, queen, king of the perspective's side
    rank 4, 3      4 4 4 4                6 to 11   the same of the other side
    rank 2         2 2 3 3
    rank 1         0 0 1 1        index   bucket * 768 + piece * 64 + square
             file  e f g h

This is a small form of HalfKA (king, all pieces). Castling rights, the en passant square and the clocks are no
features. Legend: N positions, A active features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core.alphabeta_state import Number
from ranks.chess.core.bits import ONE, ZERO, Word, clear_lsb, lsb, popcount
from ranks.chess.core.position import Position, kind_at, load
from ranks.chess.core.tables import Words
from ranks.jit import helper, kernel

NUM_KING_BUCKETS = 6
NUM_PIECES = 12
BUCKET_FEATURES = NUM_PIECES * 64
NUM_FEATURES = NUM_KING_BUCKETS * BUCKET_FEATURES
MAX_ACTIVE = 32
"""The most pieces on a board. Positions with more are not supported."""
NUM_OUTPUT_BUCKETS = 8
PIECES_PER_OUTPUT_BUCKET = 4


def king_buckets() -> NDArray[np.int64]:
    """int64[64]: the bucket of a king on the files e to h; the other entries are not used."""
    right_half = np.array([[0, 0, 1, 1], [2, 2, 3, 3], [4] * 4, [4] * 4, [5] * 4, [5] * 4, [5] * 4, [5] * 4])
    return np.concatenate([np.zeros((8, 4), np.int64), right_half], axis=1).ravel()


KING_BUCKET = king_buckets()


@helper
def orientation(king: Word, perspective: Number) -> Number:
    """What a square is XORed with for the view of a side (0 white, 1 black) whose king is on a square."""
    return 56 * perspective ^ (7 if np.int64(king) & 4 == 0 else 0)


@helper
def first_feature(king: Word, orient: Number) -> Number:
    """The first feature of a king's bucket; orient: as `orientation` gives it."""
    return KING_BUCKET[np.int64(king) ^ orient] * BUCKET_FEATURES


@helper
def feature(first: Number, orient: Number, piece: Number, square: Word) -> Number:
    """The feature of a piece (0 to 11) on a square, for the bucket and orientation of a view."""
    return first + piece * 64 + (np.int64(square) ^ orient)


@helper
def king_of(p: Position, perspective: Number) -> Word:
    """The square of the king of one side."""
    return lsb(p.kings & (p.white if perspective == 0 else p.black))


@helper
def write_features(p: Position, perspective: Number, features_A: NDArray[np.int16]) -> int:
    """Write the active features of one side's view, in the order of the squares. Returns their number.

    More than MAX_ACTIVE pieces are left out."""
    king = king_of(p, perspective)
    orient = orientation(king, perspective)
    first = first_feature(king, orient)
    pieces = p.white | p.black
    written = 0
    while pieces != ZERO and written < len(features_A):
        square = lsb(pieces)
        of_other = np.int64((p.black >> square) & ONE) ^ perspective
        features_A[written] = feature(first, orient, of_other * 6 + np.int64(kind_at(p, square)) - 1, square)
        written += 1
        pieces = clear_lsb(pieces)
    return written


@helper
def output_bucket_of(p: Position) -> Number:
    """The output bucket of a position: 0 for 1 to 4 pieces on the board, ..., 7 for 29 and more."""
    return min((np.int64(popcount(p.white | p.black)) - 1) // PIECES_PER_OUTPUT_BUCKET, NUM_OUTPUT_BUCKETS - 1)


@kernel("void(uint64[:, ::1], int16[:, :, ::1])")
def _active_features(boards_N13: Words, features_N2A: NDArray[np.int16]) -> None:
    for row in range(len(boards_N13)):
        p = load(boards_N13, row)
        for view in range(2):
            features_A = features_N2A[row, view]
            written = write_features(p, view ^ np.int64(p.side), features_A)
            features_A[written:] = -1


@kernel("void(uint64[:, ::1], int8[::1])")
def _output_buckets(boards_N13: Words, bucket_N: NDArray[np.int8]) -> None:
    for row in range(len(boards_N13)):
        bucket_N[row] = output_bucket_of(load(boards_N13, row))


def active_features(boards_N13: Words) -> NDArray[np.int16]:
    """int16[N, 2, MAX_ACTIVE]: the features of the side to move, then of the other side, padded with -1.

    boards: uint64[N, 13], positions as in `ranks.chess.core.words`."""
    features_N2A = np.empty((len(boards_N13), 2, MAX_ACTIVE), np.int16)
    _active_features(np.ascontiguousarray(boards_N13), features_N2A)
    return features_N2A


def output_bucket(boards_N13: Words) -> NDArray[np.int8]:
    """int8[N]: the output bucket of each position, by its number of pieces: (pieces - 1) // 4."""
    bucket_N = np.empty(len(boards_N13), np.int8)
    _output_buckets(np.ascontiguousarray(boards_N13), bucket_N)
    return bucket_N
