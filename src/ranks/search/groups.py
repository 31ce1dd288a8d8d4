"""Games whose leaves make one batch: how their trees grow by a tick, and how their leaves are evaluated.

Legend: B rows of a batch, W words of a state, M most moves of a state.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ranks.errors import UserError
from ranks.search.arena import NONE
from ranks.search.evaluation import Evaluation, Evaluator, Leaves
from ranks.search.game import Game
from ranks.search.result import SearchTimes

LEAST_PIECE = 256
"""Games that a thread is given at least: handing over takes 0.1 ms, a tick of so many trees about as long."""
LEAST_GROUP = 64
"""Games of a group at least, where there are to be two."""


def no_leaves(game: Game, rows: int) -> Leaves:
    return Leaves(
        np.zeros((rows, len(game.initial)), np.uint64),
        np.zeros((rows, game.max_moves), np.uint16),
        np.zeros(rows, np.int32),
    )


def no_evaluation() -> Evaluation:
    return Evaluation(np.zeros((1, 1), np.float32), np.zeros(1, np.float32))


@dataclass
class Group:
    """The games of the slots first_slot to end_slot - 1."""

    advance: Callable[..., int]
    """The kernel grow.advance, with the rules and the trees of its search."""
    first_slot: int
    end_slot: int
    leaves_per_game: int
    leaves: Leaves
    evaluation: Evaluation = field(default_factory=no_evaluation)
    waiting: bool = False
    """Its leaves have not been evaluated."""

    def pieces(self, threads: int) -> list[tuple[int, int]]:
        """First slot and end of what each thread is given."""
        count = self.end_slot - self.first_slot
        pieces = max(1, min(threads, count // LEAST_PIECE))
        return list(itertools.pairwise(self.first_slot + count * i // pieces for i in range(pieces + 1)))

    def grow(self, first_slot: int, end_slot: int) -> float:
        """One tick of some of the slots: back their evaluations up, select new leaves; returns the seconds it took."""
        started = time.perf_counter()
        first_row = (first_slot - self.first_slot) * self.leaves_per_game
        bad = self.advance(first_slot, end_slot, first_row, *self.leaves, *self.evaluation)
        if bad != NONE:
            priors_M = self.evaluation.priors_BM[bad, : self.leaves.num_moves_B[bad]]
            raise UserError(
                f"priors and value of leaf {bad} in a batch of {len(self.leaves.num_moves_B)}",
                f"priors from {priors_M.min()} to {priors_M.max()} with sum {priors_M.sum()}, "
                f"value {self.evaluation.value_B[bad]}",
                "return probabilities of the legal moves alone, and a value from -1 to 1",
            )
        return time.perf_counter() - started

    def evaluate(self, evaluator: Evaluator, times: SearchTimes) -> None:
        """Have the leaves evaluated, if there are any."""
        if not self.waiting:
            return
        started = time.perf_counter()
        num_moves_B = self.leaves.num_moves_B
        rows, most_moves, num_leaves = len(num_moves_B), int(num_moves_B.max()), int(np.count_nonzero(num_moves_B))
        priors, value = evaluator(self.leaves)
        priors_BM, value_B = np.require(priors, np.float32, ("C", "W")), np.require(value, np.float32, ("C", "W"))
        if priors_BM.ndim != 2 or len(priors_BM) != rows or value_B.shape != (rows,):
            raise UserError(
                f"the evaluation of {rows} rows",
                f"priors of shape {priors_BM.shape} and values of shape {value_B.shape}",
                f"return shapes ({rows}, moves) and ({rows},)",
            )
        if priors_BM.shape[1] < most_moves:
            raise UserError(f"priors of up to {most_moves} moves", f"{priors_BM.shape[1]} columns", "return them all")
        self.evaluation = Evaluation(priors_BM, value_B)
        self.waiting = False
        times.evaluation_s += time.perf_counter() - started
        times.num_batches += 1
        times.num_rows += rows
        times.num_leaves += num_leaves
