"""The tiny net in torch as an evaluator of our search.

It unpacks positions to planes and returns the logits of the legal moves. Positions are seen from
the side to move: its own pieces come first, and black's board is flipped.
"""

# B rows, W words of a position, K kinds of pieces, C planes or channels, H ranks, V files, M moves,
# P move planes, S squares, A = P * S logits

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from tiny_net import weights
from torch import Tensor
from torch.nn import functional as F

from ranks.search.evaluation import Evaluation, Leaves

SIDE, CASTLING, CLOCKS = 8, 9, 11
"""Words of a position; 0 to 5 are the kinds of pieces, 6 and 7 the colours."""
MOST_ROWS = 128
ROOKS = torch.tensor([0, 7, 56, 63])
BITS = torch.from_numpy(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")).float()
"""float32[256, 8]: the squares of a rank, by its byte."""


def planes(states_BW: Tensor) -> Tensor:
    """float32[B, 19, 8, 8] of int64[B, 13]: 6 kinds of each side, side, full moves, 4 castlings, 50
    moves."""
    black_B1 = states_BW[:, SIDE : SIDE + 1]
    own_B1 = torch.where(black_B1 == 1, states_BW[:, 7:8], states_BW[:, 6:7])
    other_B1 = torch.where(black_B1 == 1, states_BW[:, 6:7], states_BW[:, 7:8])
    kinds_BK = states_BW[:, :6]
    ranks_BKH = torch.cat([kinds_BK & own_B1, kinds_BK & other_B1], 1).view(torch.uint8).view(-1, 12, 8)
    ranks_BKH = torch.where(black_B1[:, :, None] == 1, ranks_BKH.flip(2), ranks_BKH)
    pieces_BKHV = F.embedding(ranks_BKH.int(), BITS)
    clocks_B1, castling_B1 = states_BW[:, CLOCKS : CLOCKS + 1], states_BW[:, CASTLING : CASTLING + 1]
    castlings_B4 = (castling_B1 >> torch.where(black_B1 == 1, ROOKS ^ 56, ROOKS)) & 1
    full_moves_B1, half_moves_B1 = (clocks_B1 >> 16 & 0xFFFF) / 256, (clocks_B1 & 0xFFFF) / 100
    rest_BC = torch.cat([black_B1, full_moves_B1, castlings_B4, half_moves_B1], 1)
    return torch.cat([pieces_BKHV, rest_BC[:, :, None, None].expand(-1, -1, 8, 8)], 1)


def move_places() -> np.ndarray:
    """int64[2, 65536]: where a move of white or of black is among the 73 * 64 logits; -1 marks
    what is no move.

    AlphaZero's planes (Silver et al. 2018): 8 directions by 7 steps, 8 knight's moves, 3 smaller
    promotions by 3 files; a queen's promotion counts as the pawn's step. Moves are from | to << 6 |
    promotion << 12, queen 4.
    """
    moves = np.arange(65536)
    start, end, promotion = moves & 63, moves >> 6 & 63, moves >> 12
    table = np.full((2, 65536), -1, np.int64)
    for black, flip in ((0, 0), (1, 56)):
        rank, file = (start ^ flip) >> 3, start & 7
        up, right = ((end ^ flip) >> 3) - rank, (end & 7) - file
        steps = np.maximum(abs(up), abs(right))
        straight = (steps > 0) & ((up == 0) | (right == 0) | (abs(up) == abs(right)))
        direction = np.array([0, 1, 2, 3, -1, 4, 5, 6, 7])[(np.sign(up) + 1) * 3 + np.sign(right) + 1]
        knight = (abs(up) + abs(right) == 3) & (up != 0) & (right != 0)
        jump = (abs(up) - 1) * 4 + (up > 0) * 2 + (right > 0)
        smaller = (promotion > 0) & (promotion < 4) & (abs(right) < 2)
        plane = np.where(knight, 56 + jump, direction * 7 + steps - 1)
        plane = np.where(smaller, 64 + (promotion - 1) * 3 + right + 1, plane)
        table[black] = np.where(straight | knight, plane * 64 + rank * 8 + file, -1)
    return table


class TinyNet:
    """Called with leaves it answers priors and values.

    Each thread takes at most 128 rows at a time, which stay in its cache, and runs torch's
    operators on its own core; torch's own threads would meet at each of the twenty operators.
    `net_s` adds up the threads' seconds in the net, `encoding_s` those around it: planes, indices,
    softmax.
    """

    def __init__(self, threads: int) -> None:
        self.weights = {name: torch.from_numpy(value) for name, value in weights().items()}
        self.places = torch.from_numpy(move_places()).flatten()
        self.threads = threads
        self.map = ThreadPoolExecutor(threads, "net").map if threads > 1 else map
        self.net_s = self.encoding_s = 0.0

    def __call__(self, leaves: Leaves) -> Evaluation:
        num_rows, most = len(leaves.num_moves_B), max(1, int(leaves.num_moves_B.max()))
        answer = Evaluation(np.empty((num_rows, most), np.float32), np.empty(num_rows, np.float32))
        each = min(MOST_ROWS, -(-num_rows // self.threads))
        parts = [slice(first, first + each) for first in range(0, num_rows, each)]
        for part_s, net_s in self.map(partial(self.fill, leaves, answer), parts):
            self.net_s += net_s
            self.encoding_s += part_s - net_s
        return answer

    @torch.inference_mode()
    def fill(self, leaves: Leaves, answer: Evaluation, rows: slice) -> tuple[float, float]:
        """Answer some rows; returns the seconds it took, and those of the net alone."""
        started_s = time.perf_counter()
        most = answer.priors_BM.shape[1]
        states_BW = torch.from_numpy(leaves.states_BW[rows].view(np.int64))
        moves_BM = torch.from_numpy(leaves.moves_BM[rows, :most].astype(np.int64))
        empty_BM = torch.arange(most) >= torch.from_numpy(leaves.num_moves_B[rows])[:, None]
        places_BM = self.places[moves_BM + (states_BW[:, SIDE : SIDE + 1] << 16)].masked_fill_(empty_BM, 0)
        x_BCHV = planes(states_BW)
        before_net = time.perf_counter()
        logits_BA, value_B = self.forward(x_BCHV)
        after_net = time.perf_counter()
        priors_BM = logits_BA.gather(1, places_BM).masked_fill_(empty_BM, -1e9).softmax(1)
        answer.priors_BM[rows], answer.value_B[rows] = priors_BM.numpy(), value_B.numpy()
        return time.perf_counter() - started_s, after_net - before_net

    def forward(self, x_BCHV: Tensor) -> tuple[Tensor, Tensor]:
        """Planes to logits [B, 73 * 64] and values [B]."""
        x_BCHV = F.relu_(F.conv2d(x_BCHV, self.weights["conv1"], padding=1))
        x_BCHV = F.relu_(F.conv2d(x_BCHV, self.weights["conv2"], padding=1))
        logits_BPS = self.weights["policy"] @ x_BCHV.flatten(2)
        return logits_BPS.flatten(1), torch.tanh(x_BCHV.flatten(1) @ self.weights["value"])
