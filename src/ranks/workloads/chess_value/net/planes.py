"""Input planes of the convolutional nets, unpacked from bitboards on the device.

    cnn       13 planes as the origin has them: white pawns to king, black pawns to king, ones where white is to move;
              and four numbers: whether white may castle short and long, and black. Nothing is mirrored.
    resnet    17 planes seen from the side to move: own pawns to king, the other side's, castling rights (own short,
              own long, the other's), ones. For black, ranks are mirrored and colours exchanged.

Legend: B positions, 13 words of a position (ranks.chess.core.words), P planes, 64 squares from a1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ranks.chess.core.words import BLACK_WORD, CASTLING_ROOKS, CASTLING_WORD, KINDS, SIDE_WORD, WHITE_WORD

CNN_PLANES, CNN_FLAGS = 13, 4
RESNET_PLANES = 17


def cnn_planes(boards_B13: Tensor, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """[B, 13, 8, 8] and [B, 4] from int64[B, 13], the bits of the words."""
    kinds_B6 = boards_B13[:, :KINDS]
    white_B1, black_B1 = boards_B13[:, WHITE_WORD, None], boards_B13[:, BLACK_WORD, None]
    pieces_B12 = torch.cat([kinds_B6 & white_B1, kinds_B6 & black_B1], 1)
    pieces_B12_64 = _unpack(pieces_B12, _squares(boards_B13)).to(dtype)
    white_to_move_B1 = (boards_B13[:, SIDE_WORD, None] == 0).to(dtype)
    planes_BP64 = torch.cat([pieces_B12_64, white_to_move_B1[:, None].expand(-1, 1, 64)], 1)
    return planes_BP64.unflatten(2, (8, 8)), _castling(boards_B13, flip_B1=0).to(dtype)


def resnet_planes(boards_B13: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """[B, 17, 8, 8] from int64[B, 13]."""
    black_B1 = boards_B13[:, SIDE_WORD, None]
    flip_B1 = 56 * black_B1
    white_B1, theirs_B1 = boards_B13[:, WHITE_WORD, None], boards_B13[:, BLACK_WORD, None]
    own_B1 = torch.where(black_B1 != 0, theirs_B1, white_B1)
    other_B1 = torch.where(black_B1 != 0, white_B1, theirs_B1)
    kinds_B6 = boards_B13[:, :KINDS]
    pieces_B12_64 = _unpack(torch.cat([kinds_B6 & own_B1, kinds_B6 & other_B1], 1), _squares(boards_B13) ^ flip_B1)
    flags_B4 = _castling(boards_B13, flip_B1)
    flags_B5 = torch.cat([flags_B4, torch.ones_like(flags_B4[:, :1])], 1)
    planes_BP64 = torch.cat([pieces_B12_64, flags_B5[:, :, None].expand(-1, -1, 64)], 1)
    return planes_BP64.to(dtype).unflatten(2, (8, 8))


def _squares(boards_B13: Tensor) -> Tensor:
    return torch.arange(64, device=boards_B13.device)[None]


def _unpack(bitboards_BP: Tensor, squares_B64: Tensor) -> Tensor:
    """int64[B, P, 64] of 0 and 1."""
    return (bitboards_BP[:, :, None] >> squares_B64[:, None]) & 1


def _castling(boards_B13: Tensor, flip_B1: Tensor | int) -> Tensor:
    """int64[B, 4]: rights of the rooks in CASTLING_ROOKS, on the flipped board."""
    rights_B1 = boards_B13[:, CASTLING_WORD, None]
    # The squares stay Python's numbers: to copy a tensor of them to a GPU, the host would wait for it.
    return torch.cat([(rights_B1 >> (flip_B1 ^ rook)) & 1 for rook in CASTLING_ROOKS], 1)
