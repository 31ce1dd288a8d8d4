"""A net as evaluator of the tree search of a player."""

from __future__ import annotations

import numpy as np
import torch

from ranks.search.evaluation import Evaluation, Leaves
from ranks.selfplay import Positions, expected_outcome, policy_and_value
from ranks.workloads.chess_spiking.building import Net
from ranks.workloads.chess_spiking.config import NetConfig
from ranks.workloads.chess_spiking.encoding import encoding_of


class NetEvaluator:
    """Packed positions in, priors of the legal moves and values out (`ranks.search.Evaluator`)."""

    def __init__(self, model: Net, net: NetConfig, seed: int = 0) -> None:
        """`model` is used in evaluation mode, on the device of its weights."""
        self.model, self.encoding = model.eval(), encoding_of(net, seed)

    def __call__(self, leaves: Leaves) -> Evaluation:
        positions = positions_of(leaves, next(self.model.parameters()).device)
        with torch.inference_mode():
            logits_BM, wdl_B3 = policy_and_value(self.model, self.encoding, positions)
            priors_BM = logits_BM.float().softmax(1)
            return Evaluation(priors_BM.cpu().numpy(), expected_outcome(wdl_B3.float()).cpu().numpy())


def positions_of(leaves: Leaves, device: torch.device) -> Positions:
    """The positions of a batch of the search, with as many columns as the longest list of moves."""
    most = max(int(leaves.num_moves_B.max()), 1)
    states_BW = torch.from_numpy(leaves.states_BW.view(np.int64))
    moves_BM = torch.from_numpy(leaves.moves_BM[:, :most].astype(np.int16))
    num_moves_B = torch.from_numpy(leaves.num_moves_B)
    return Positions(states_BW.to(device), moves_BM.to(device).long() & 0xFFFF, num_moves_B.to(device).long())
