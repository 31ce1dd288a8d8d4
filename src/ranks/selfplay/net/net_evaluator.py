"""A net as the evaluator of a tree search: for players and matches, whose games end one after the other.

Legend: B rows of a search's batch, L of them with a leaf.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ranks.errors import UserError
from ranks.search.evaluation import Evaluation, Leaves
from ranks.search.game import Game
from ranks.selfplay.net.batch_evaluator import BatchEvaluator, BatchMemory
from ranks.selfplay.net.encoding import Encoding, check_move_indices
from ranks.selfplay.times import PlayTimes


class NetEvaluator:
    """Packed positions in, priors of the legal moves and values out (`ranks.search.Evaluator`).

    The net sees the rows with a leaf alone, in their order, padded to a power of two. So what it says of a
    position depends on the leaves of its batch at most by rounding, and a batch of the same leaves has the
    same bits in any process. The net must be in evaluation mode.
    """

    def __init__(self, net: Any, game: Game, encoding: Encoding, device: torch.device, when: str = "in a game") -> None:
        """`when`: for the UserError where the net returns no numbers; a move without a logit is named."""
        self.net, self.game, self.encoding, self.device, self.when = net, game, encoding, device, when
        self._evaluator = BatchEvaluator(encoding, device, PlayTimes())
        self._memories: dict[int, BatchMemory] = {}

    def __call__(self, leaves: Leaves) -> Evaluation:
        rows_L = np.flatnonzero(leaves.num_moves_B)
        count = len(rows_L)
        evaluation = Evaluation(
            np.zeros(leaves.moves_BM.shape, np.float32), np.zeros(len(leaves.num_moves_B), np.float32)
        )
        if count:
            memory = self._memory(1 << (count - 1).bit_length())
            for into, array in zip(memory.leaves, leaves, strict=True):
                into[:count], into[count:] = array[rows_L], 0
            with torch.no_grad():
                self._evaluator.launch(self.net, memory)
                self._evaluator.wait(memory)
            try:
                memory.check_numbers(self.when)
            except UserError:
                check_move_indices(self.game, self.net, self.encoding, memory.leaves, self.device)
                raise
            for found, into in zip(memory.evaluation, evaluation, strict=True):
                into[rows_L] = found[:count]
        return evaluation

    def _memory(self, rows: int) -> BatchMemory:
        if rows not in self._memories:
            self._memories[rows] = BatchMemory(self.game, rows, self.device)
        return self._memories[rows]
