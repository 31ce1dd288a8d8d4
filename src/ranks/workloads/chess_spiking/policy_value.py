"""From packed positions to the net's policy over legal moves and its value.

Legend: B positions, W words of a position, M most legal moves of a position in the batch, 3 = win,
draw, loss for the side to move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ranks.search.evaluation import Evaluation, Leaves
from ranks.workloads.chess_spiking.building import Net
from ranks.workloads.chess_spiking.config import NetConfig
from ranks.workloads.chess_spiking.losses import expected_outcome
from ranks.workloads.chess_spiking.moves import legal_logits
from ranks.workloads.chess_spiking.net.coding import rate_code
from ranks.workloads.chess_spiking.planes import KEY, black_to_move, input_planes, origin_planes


@dataclass(frozen=True)
class Positions:
    """Packed positions with their legal moves, on the device of the net."""

    states_BW: Tensor
    """int64: the bits of the chess core's 13 words."""
    moves_BM: Tensor
    """int64: from | to << 6 | promotion << 12; anything behind the moves of a position."""
    num_moves_B: Tensor
    """int64."""

    @classmethod
    def of(cls, leaves: Leaves, device: torch.device) -> Positions:
        """The positions of a batch of the search. Copies 104 bytes and two for each move to the device."""
        most = max(int(leaves.num_moves_B.max()), 1)
        states_BW = torch.from_numpy(leaves.states_BW.view(np.int64))
        moves_BM = torch.from_numpy(leaves.moves_BM[:, :most].astype(np.int16))
        num_moves_B = torch.from_numpy(leaves.num_moves_B)
        return cls(states_BW.to(device), moves_BM.to(device).long() & 0x7FFF, num_moves_B.to(device).long())


def net_inputs(net: NetConfig, positions: Positions, seed: int, dtype: torch.dtype) -> Tensor:
    """The planes of positions, or with rate coding their spike trains.

    Spikes are a function of the seed and the position's Zobrist key."""
    if net.kind == "origin":
        planes = origin_planes(positions.states_BW, positions.moves_BM, positions.num_moves_B, dtype)
    else:
        planes = input_planes(positions.states_BW, dtype)
    return rate_code(planes, positions.states_BW[:, KEY], seed, net.steps) if net.coding == "rate" else planes


def policy_and_value(model: Net, net: NetConfig, positions: Positions, seed: int) -> tuple[Tensor, Tensor]:
    """Logits of the legal moves [B, M], -inf behind them, and of win, draw and loss [B, 3]."""
    dtype = next(model.parameters()).dtype
    logits_BA, wdl_B3 = model(net_inputs(net, positions, seed, dtype))
    black_B = black_to_move(positions.states_BW)
    seen_B = torch.zeros_like(black_B) if net.kind == "origin" else black_B
    return legal_logits(logits_BA, positions.moves_BM, positions.num_moves_B, seen_B), wdl_B3


class NetEvaluator:
    """A net as evaluator of the search (`ranks.search.Evaluator`): packed positions in, priors and values out."""

    def __init__(self, model: Net, net: NetConfig, seed: int = 0) -> None:
        """`model` is used in evaluation mode, on the device of its weights."""
        self.model, self.net, self.seed = model.eval(), net, seed

    def __call__(self, leaves: Leaves) -> Evaluation:
        device = next(self.model.parameters()).device
        with torch.inference_mode():
            logits_BM, wdl_B3 = policy_and_value(self.model, self.net, Positions.of(leaves, device), self.seed)
            priors_BM = logits_BM.float().softmax(1)
            value_B = expected_outcome(wdl_B3.float())
            return Evaluation(priors_BM.cpu().numpy(), value_B.cpu().numpy())
