"""The index of a move among the net's logits, computed on the device.

Legend: B positions, M most moves of a position in the batch, A = 4672 move indices.

Index = 64 * plane + origin square, with the 73 planes of AlphaZero (Silver et al. 2018, arXiv
1712.01815, table S2), counted as follows. Squares are numbered as in the chess core (a1 = 0,
h8 = 63).

    planes  0 to 55   7 * direction + squares - 1; directions N, NE, E, SE, S, SW, W, NW.
                      A promotion to a queen counts as such a move
           56 to 63   knight moves, in the order of KNIGHT_STEPS
           64 to 72   promotions: 3 * (0 knight, 1 bishop, 2 rook) + (0 to the left, 1 ahead, 2 right)

The board is seen from the side to move: for black, ranks are mirrored, so that its pawns move up. The origin's net sees
it from white's side always; the promotions of black then have the same planes, from other squares.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

NUM_INDICES = 73 * 64
DIRECTIONS = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))
"""Steps (file, rank) of the 8 directions."""
KNIGHT_STEPS = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
MIRROR_RANKS = 56 | 56 << 6
"""XORed with a move's 16 bits, it mirrors the ranks of both squares."""


def plane_of(from_square: int, to_square: int, promotion: int) -> int:
    """The plane of a move, 0 to 72, or -1 if no piece moves like this. `promotion`: as in a move."""
    file_step, rank_step = to_square % 8 - from_square % 8, to_square // 8 - from_square // 8
    if promotion in (1, 2, 3):
        is_pawn_step = abs(rank_step) == 1 and abs(file_step) <= 1
        return 64 + 3 * (promotion - 1) + file_step + 1 if is_pawn_step else -1
    if (file_step, rank_step) in KNIGHT_STEPS:
        return 56 + KNIGHT_STEPS.index((file_step, rank_step))
    distance = max(abs(file_step), abs(rank_step))
    for direction, (file, rank) in enumerate(DIRECTIONS):
        if distance and (file_step, rank_step) == (distance * file, distance * rank):
            return 7 * direction + distance - 1
    return -1


@functools.cache
def index_table(device: torch.device) -> Tensor:
    """int64[5 * 4096]: the index of each move (from | to << 6 | promotion << 12); 0 where there is none."""
    table = [0] * (5 * 4096)
    for move in range(len(table)):
        from_square, to_square = move & 63, move >> 6 & 63
        plane = plane_of(from_square, to_square, move >> 12)
        table[move] = 64 * plane + from_square if plane >= 0 else 0
    return torch.tensor(table, device=device)


def move_indices(moves_BM: Tensor, black_B: Tensor) -> Tensor:
    """int64[B, M]: the indices of moves (int64[B, M]); black_B: 1 where black is to move, else 0.

    Columns behind the moves of a position may hold anything up to 16 bits; so may their results,
    within 0 to A - 1."""
    table = index_table(moves_BM.device)
    seen_BM = moves_BM ^ (black_B * MIRROR_RANKS)[:, None]
    return table[seen_BM.clamp(max=len(table) - 1)]
