"""What the nets see of a position, as the encoding of self-play."""

from __future__ import annotations

import torch
from torch import Tensor

from ranks.chess.core.words import KEY_WORD
from ranks.selfplay import Encoding, Positions
from ranks.workloads.chess_spiking.config import NetConfig
from ranks.workloads.chess_spiking.moves import move_indices
from ranks.workloads.chess_spiking.net.coding import rate_code
from ranks.workloads.chess_spiking.planes import black_to_move, input_planes, origin_planes


def encoding_of(net: NetConfig, seed: int) -> Encoding:
    """Planes and move indices for a net; with rate coding spike trains, a function of the seed and the
    position's Zobrist key. The control has one step, and gets the planes themselves."""
    is_rate_coded = net.coding == "rate" and net.neuron == "lif"

    def planes(positions: Positions) -> Tensor:
        dtype = torch.float32
        if net.kind == "origin":
            found = origin_planes(positions.states_BW, positions.moves_BM, positions.num_moves_B, dtype)
        else:
            found = input_planes(positions.states_BW, dtype)
        return rate_code(found, positions.states_BW[:, KEY_WORD], seed, net.steps) if is_rate_coded else found

    def indices(positions: Positions) -> Tensor:
        black_B = black_to_move(positions.states_BW)
        return move_indices(positions.moves_BM, torch.zeros_like(black_B) if net.kind == "origin" else black_B)

    return Encoding(planes, indices)
