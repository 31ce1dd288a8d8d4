"""Which games are searched when, and on which threads.

    turn        0          1          2          3                    two groups of games
    threads   trees A    trees B    trees A    trees B                kernels without the GIL
    caller               net A      net B      net A                  one batch a turn, always of the same size

The games form one or two groups. In each turn the threads step the trees of one group (`GameGroup.simulate`), while the
caller's thread evaluates the leaves of the other group in one batch (`GameGroup.evaluate`). With one group the two take
turns. A group is cut into one range of slots for each thread.

Legend: B rows of a batch, G slots, L leaves of one game, P some of the slots.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np

from ranks.errors import UserError
from ranks.search.evaluation import BoolArray, Evaluation, Evaluator, Int64Array, Leaves
from ranks.search.game import Game
from ranks.search.trees import NONE, UNEVALUATED, Trees

MIN_GAMES_PER_THREAD = 256
"""Starting a thread's work takes 0.1 ms, and a step of this many trees about as long."""
MIN_GAMES_PER_GROUP = 64
"""By default there are two groups where each has at least this many games."""


@dataclass
class SearchTimes:
    """Where the time went, in seconds, since the search was created or `times` was replaced."""

    tree_s: float = 0.0
    """In kernels, summed over threads."""
    evaluation_s: float = 0.0
    waiting_s: float = 0.0
    """The caller's thread waited for trees."""
    wall_s: float = 0.0
    num_batches: int = 0
    num_leaves: int = 0
    num_rows: int = 0
    """num_leaves / num_rows is how full the batches were."""


def empty_leaves(game: Game, rows: int) -> Leaves:
    """A batch without a leaf."""
    return Leaves(
        np.zeros((rows, len(game.initial)), np.uint64),
        np.zeros((rows, game.max_moves), np.uint16),
        np.zeros(rows, np.int32),
    )


def empty_evaluation() -> Evaluation:
    """An evaluation of which no row is read."""
    return Evaluation(np.zeros((1, 1), np.float32), np.zeros(1, np.float32))


@dataclass
class GameGroup:
    """The games of the slots first_slot to end_slot - 1, whose leaves make one batch."""

    step: functools.partial[int]
    """The kernel `simulate.step`, with the rules and the trees of its search as first arguments."""
    trees: Trees
    first_slot: int
    end_slot: int
    leaves_per_game: int
    leaves: Leaves
    evaluation: Evaluation = field(default_factory=empty_evaluation)
    needs_evaluation: bool = False
    """Its leaves have not been evaluated."""

    @functools.cached_property
    def slots_P(self) -> Int64Array:
        """All slots of the group."""
        return np.arange(self.first_slot, self.end_slot)

    def idle(self) -> Int64Array:
        """The slots with no simulation left to do and no leaf out for evaluation."""
        slots = slice(self.first_slot, self.end_slot)
        slots_P, pending_PL = self.trees.slots_G[slots], self.trees.pending_GL[slots]
        is_wanted_P = (slots_P["simulations_left"] > 0) | (slots_P["evaluate_root"] != 0)
        return self.first_slot + np.flatnonzero(~is_wanted_P & (pending_PL == NONE).all(axis=1))

    def ranges(self, threads: int, min_games: int) -> list[Int64Array]:
        """The slots of each thread's part: at least `min_games` games, unless there is only one part."""
        parts = max(1, min(threads, len(self.slots_P) // min_games))
        return np.array_split(self.slots_P, parts)

    def simulate(self, slots_P: Int64Array, parts: int = 1) -> float:
        """One step of some of the slots: expand and back up their evaluations, select new leaves. Returns seconds.

        Several `parts` are stepped at once, by Numba's threads; one thread at a time may call it so."""
        started = time.perf_counter()
        batch = (self.first_slot, *self.leaves, *self.evaluation)
        if parts > 1:
            from ranks.search.parallel_step import step_in_parallel  # compiles another kernel

            invalid = step_in_parallel(self.step, parts, slots_P, *batch)
        else:
            invalid = self.step(slots_P, *batch)
        if invalid != NONE and not self.leaves.num_moves_B[invalid]:
            do = "return the number of legal moves, or LOST, DRAWN or WON"
            raise UserError(f"the legal moves of leaf {invalid}", "legal_moves returned 0", do)
        if invalid != NONE:
            priors_M = self.evaluation.priors_BM[invalid, : self.leaves.num_moves_B[invalid]]
            raise UserError(
                f"priors and value of leaf {invalid} in a batch of {len(self.leaves.num_moves_B)}",
                f"priors from {priors_M.min()} to {priors_M.max()} with sum {priors_M.sum()}, "
                f"value {self.evaluation.value_B[invalid]}",
                "return probabilities of the legal moves alone, and a value from -1 to 1",
            )
        return time.perf_counter() - started

    def evaluate(self, evaluator: Evaluator, times: SearchTimes) -> None:
        """Call the evaluator on the leaves, if there are any."""
        if not self.needs_evaluation:
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
        self.needs_evaluation = False
        times.evaluation_s += time.perf_counter() - started
        times.num_batches += 1
        times.num_rows += rows
        times.num_leaves += num_leaves


class Scheduler:
    """Runs the steps of all groups until no simulation is left."""

    def __init__(
        self, step: functools.partial[int], game: Game, trees: Trees, threads: int, groups: int | None, min_games: int
    ) -> None:
        """`groups` is 1, 2, or None for the default; a thread gets at least `min_games` games."""
        num_games, leaves_per_game = trees.pending_GL.shape
        default = 2 if num_games >= 2 * MIN_GAMES_PER_GROUP else 1
        num_groups = min(num_games, default if groups is None else groups)
        self.batch_size = -(-num_games // num_groups) * leaves_per_game
        bounds = [num_games * i // num_groups for i in range(num_groups + 1)]
        self._groups = [
            GameGroup(step, trees, first, end, leaves_per_game, empty_leaves(game, self.batch_size))
            for first, end in itertools.pairwise(bounds)
        ]
        self._trees, self._threads, self._min_games = trees, threads, min_games
        self._pool = ThreadPoolExecutor(threads, "trees") if threads > 1 or num_groups > 1 else None
        self._futures: Sequence[Future[float]] = ()
        self.times = SearchTimes()
        self.searching_G: BoolArray = np.zeros(num_games, np.bool_)
        """The slots whose search has begun and has not been reported as ended."""

    def steps(self, evaluator: Evaluator) -> Iterator[Int64Array]:
        """Step until every simulation is done; yields after each step the slots whose search ended in it.

        When the caller leaves the loop early, the pending leaves are evaluated and backed up.
        """
        started = time.perf_counter()
        # Leaves that are left over from an evaluator that raised.
        for group in self._groups:
            group.evaluate(evaluator, self.times)
        try:
            self._start(self._groups[0])
            for group, following in itertools.cycle(zip(self._groups, self._groups[::-1], strict=True)):
                yield self._collect(group)
                slots_G = self._trees.slots_G
                is_wanted = slots_G["simulations_left"].any() or slots_G["evaluate_root"].any()
                if not (is_wanted or (self._trees.pending_GL != NONE).any()):
                    return
                # With two groups, the trees of the other one are stepped during this evaluation.
                if following is not group:
                    self._start(following)
                group.evaluate(evaluator, self.times)
                if following is group:
                    self._start(group)
        except GeneratorExit:
            self._finish_pending_leaves(evaluator)
            raise
        finally:
            wait(self._futures)
            self._futures = ()
            self.times.wall_s += time.perf_counter() - started

    def _start(self, group: GameGroup) -> None:
        """Start one step of a group's trees on the threads; without threads it is complete on return.

        If the step fails, its leaves are evaluated again when the search resumes.
        """
        group.needs_evaluation = True
        if self._pool is None:
            self.times.tree_s += group.simulate(group.slots_P)
        else:
            ranges = group.ranges(self._threads, self._min_games)
            self._futures = [self._pool.submit(group.simulate, slots_P) for slots_P in ranges]

    def _collect(self, group: GameGroup) -> Int64Array:
        """Wait for the step of a group; return the slots whose search ended with it."""
        started = time.perf_counter()
        self.times.tree_s += sum(future.result() for future in self._futures)
        self._futures = ()
        self.times.waiting_s += time.perf_counter() - started
        group.needs_evaluation = bool(group.leaves.num_moves_B.any())
        idle_P = group.idle()
        ended_P = idle_P[self.searching_G[idle_P]]
        self.searching_G[ended_P] = False
        return ended_P

    def _finish_pending_leaves(self, evaluator: Evaluator) -> None:
        """Evaluate and back up the leaves that are out for evaluation, without selecting more."""
        slots_G, nodes_N = self._trees.slots_G, self._trees.nodes_N
        simulations_left_G, evaluate_root_G = slots_G["simulations_left"].copy(), slots_G["evaluate_root"].copy()
        slots_G["simulations_left"], slots_G["evaluate_root"] = 0, 0
        for group in self._groups:
            group.evaluate(evaluator, self.times)
            group.simulate(group.slots_P)
        is_evaluated_G = nodes_N["num_initialized"][:: len(nodes_N) // len(slots_G)] != UNEVALUATED
        slots_G["simulations_left"] = simulations_left_G
        slots_G["evaluate_root"] = np.where(is_evaluated_G, 0, evaluate_root_G)
