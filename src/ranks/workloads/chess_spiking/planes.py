"""The net's input planes, unpacked from bitboards on the device.

Legend: B positions, W = 13 words of a position (ranks.chess.core.words), P planes, K = 6 kinds of
pieces, 64 squares or 8 ranks and 8 files, M most moves of a position in the batch.

The board is seen from the side to move: for black, ranks are mirrored and colours exchanged. Plane
values lie between 0 and 1:

    0 to 5     own pawns, knights, bishops, rooks, queens, king
    6 to 11    the other side's
    12 to 15   all ones where there is the right to castle: own short, own long, the other's short, long
    16         the en passant square, where the capture is legal
    17         halfmove clock / 100
    18         all ones if the position has occurred before in the game
    19         all ones (it shows the edge of the board to a convolution)

No planes hold earlier positions: a packed position does not have them.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from ranks.chess.core.words import (
    BLACK_WORD,
    CASTLING_ROOKS,
    CASTLING_WORD,
    CLOCKS_WORD,
    EN_PASSANT_WORD,
    KINDS,
    SIDE_WORD,
    WHITE_WORD,
)

PLANES, ORIGIN_PLANES = 20, 13


@functools.cache
def castling_rooks(device: torch.device) -> Tensor:
    """int64[4]: CASTLING_ROOKS on a device, made once: a copy from the host has no place in a CUDA graph."""
    return torch.tensor(CASTLING_ROOKS, device=device)


def black_to_move(states_BW: Tensor) -> Tensor:
    """int64[B]: 1 where black is to move, else 0."""
    return states_BW[:, SIDE_WORD]


def input_planes(states_BW: Tensor, dtype: torch.dtype) -> Tensor:
    """[B, 20, 8, 8] from int64[B, 13], the bits of the chess core's words."""
    flip_B1 = 56 * black_to_move(states_BW)[:, None]
    pieces_B12 = _own_and_other(states_BW)
    boards_BP = torch.cat([pieces_B12, states_BW[:, EN_PASSANT_WORD : EN_PASSANT_WORD + 1]], 1)
    squares_B164 = (_squares(states_BW) ^ flip_B1)[:, None]
    boards_BP64 = (boards_BP[:, :, None] >> squares_B164) & 1

    rooks_4 = castling_rooks(states_BW.device)
    castling_B4 = (states_BW[:, CASTLING_WORD : CASTLING_WORD + 1] >> (rooks_4 ^ flip_B1)) & 1
    clocks_B1 = states_BW[:, CLOCKS_WORD : CLOCKS_WORD + 1]
    halfmove_B1 = (clocks_B1 & 0xFFFF).to(dtype) / 100
    seen_B1 = ((clocks_B1 >> 32) > 0).to(dtype)
    flags_BP = torch.cat([castling_B4.to(dtype), halfmove_B1.clamp(max=1), seen_B1, torch.ones_like(seen_B1)], 1)
    flags_BP64 = flags_BP[:, :, None].expand(-1, -1, 64)

    boards_BP64 = boards_BP64.to(dtype)
    planes = [boards_BP64[:, :12], flags_BP64[:, :4], boards_BP64[:, 12:], flags_BP64[:, 4:]]
    return torch.cat(planes, 1).unflatten(2, (8, 8))


def origin_planes(states_BW: Tensor, moves_BM: Tensor, num_moves_B: Tensor, dtype: torch.dtype) -> Tensor:
    """The planes of chess-snn-rl, [B, 13, 8, 8]: own pieces, the other side's, squares that a legal move leads to.

    Ranks are not mirrored there, so the net does not see whose turn it is. moves: int64[B, M]."""
    pieces_B12 = _own_and_other(states_BW)
    pieces_B12_64 = ((pieces_B12[:, :, None] >> _squares(states_BW)) & 1).to(dtype)
    columns_M = torch.arange(moves_BM.shape[1], device=moves_BM.device)
    nowhere = 64
    to_BM = torch.where(columns_M < num_moves_B[:, None], (moves_BM >> 6) & 63, nowhere)
    targets_B65 = torch.zeros((len(moves_BM), nowhere + 1), dtype=dtype, device=moves_BM.device)
    targets_B65.scatter_(1, to_BM, torch.ones_like(to_BM, dtype=dtype))
    return torch.cat([pieces_B12_64, targets_B65[:, None, :nowhere]], 1).unflatten(2, (8, 8))


def _own_and_other(states_BW: Tensor) -> Tensor:
    """int64[B, 12]: bitboards of the own pieces by kind, then of the other side's."""
    black_B1 = black_to_move(states_BW)[:, None] != 0
    white_B1, theirs_B1 = states_BW[:, WHITE_WORD : WHITE_WORD + 1], states_BW[:, BLACK_WORD : BLACK_WORD + 1]
    own_B1 = torch.where(black_B1, theirs_B1, white_B1)
    other_B1 = torch.where(black_B1, white_B1, theirs_B1)
    kinds_BK = states_BW[:, :KINDS]
    return torch.cat([kinds_BK & own_B1, kinds_BK & other_B1], 1)


def _squares(states_BW: Tensor) -> Tensor:
    return torch.arange(64, device=states_BW.device)
