"""Many games searched at once: trees grow on the CPU while the evaluator works on the leaves of others.

    turn        0          1          2          3                    two groups of games
    threads   trees A    trees B    trees A    trees B                kernels without the GIL, >= 64 games a piece
    caller               net A      net B      net A                  one batch a turn, always of the same size

Legend: G slots, P some of them, M most moves of a state, B rows of a batch.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from ranks.errors import UserError
from ranks.search.arena import NONE, UNEVALUATED, allocate, rules_of, sizes_of
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Doubles, Evaluation, Evaluator, Flags, Leaves, Longs, Moves, Words
from ranks.search.game import LOOK, PLAY, FirstClass, Game
from ranks.search.grow import advance
from ranks.search.gumbel import considered_visits
from ranks.search.result import SearchResult, SearchTimes
from ranks.search.roots import begin, play_moves, read_roots, set_root

LEAST_PIECE = 64
"""Games that a thread is given at least: below this, handing over costs more than the trees."""


@dataclass
class Group:
    """Games whose leaves make one batch."""

    first_slot: int
    end_slot: int
    leaves: Leaves
    evaluation: Evaluation
    waiting: bool = False
    """Its leaves have not been evaluated."""


class Search:
    """Searches `num_games` games at once; each has a slot.

        search = Search(CONNECT_FOUR, SearchConfig(simulations=100), num_games=256)
        for slot in range(256):
            search.set_root(slot, game_id=slot)
        result = search.run(evaluator)
        search.play(result.chosen_P)

    A game's tree depends only on the seed, its id, its moves and its evaluations: not on its slot, on the other games,
    on `threads` or on `groups`. Slots that are not set, and games that are over, take no part.

    `threads` work on trees; the evaluator runs in the caller's. `groups` is 1 or 2; by default 2 from 128 games on.
    With two, trees of one group grow while the other is evaluated; with one, batches are twice as large, which is
    better where the evaluator uses the very cores that the trees would. A batch always has batch_size =
    ceil(num_games / groups) * leaves_per_game rows.
    """

    def __init__(
        self, game: Game, config: SearchConfig, num_games: int, threads: int = 1, groups: int | None = None
    ) -> None:
        if num_games < 1 or threads < 1 or groups not in (None, 1, 2):
            raise UserError(
                f"num_games = {num_games}, threads = {threads}, groups = {groups}",
                "less than one game or thread, or groups other than 1 and 2",
                "give at least one game and one thread, and 1 or 2 groups",
            )
        self.game, self.config, self.num_games = game, config, num_games
        self._play, self._look = FirstClass(game.play, PLAY), FirstClass(game.look, LOOK)
        self.times = SearchTimes()
        self.sizes, self.rules = sizes_of(game, config), rules_of(config)
        self.arena = allocate(game, config, self.sizes, num_games)
        num_groups = min(num_games, (2 if num_games >= 2 * LEAST_PIECE else 1) if groups is None else groups)
        self.batch_size = -(-num_games // num_groups) * config.leaves_per_game
        bounds = [num_games * i // num_groups for i in range(num_groups + 1)]
        self._groups = [self._make_group(first, end) for first, end in itertools.pairwise(bounds)]
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "trees") if threads > 1 or num_groups > 1 else None
        self._jobs: list[Future[float]] = []
        self._searching_G: Flags = np.zeros(num_games, np.bool_)

    def set_root(self, slot: int, game_id: int, moves: Sequence[int] = (), start: Words | None = None) -> None:
        """Put a game into a slot: `start` (the game's initial state if None) and the moves played from it.

        `game_id` and the number of moves are the key of the root's noise. Positions before `start` are not known to the
        repetition rule. Raises UserError for a move that is not legal; the slot is then empty.
        """
        state_W = self.game.initial if start is None else np.ascontiguousarray(start, np.uint64)
        moves_T = np.array(moves, np.uint16)
        illegal = set_root(self._play, self._look, self.arena, self.sizes, slot, np.uint64(game_id), state_W, moves_T)
        self._searching_G[slot] = False
        if illegal != NONE:
            raise UserError(
                f"{len(moves_T)} moves of {self.game.name}",
                f"move number {illegal} (from 0), {moves_T[illegal]}, is not legal there",
                "give legal moves",
            )

    def clear(self, slot: int) -> None:
        """Empty a slot."""
        self.arena.nodes_N["num_edges"][slot * self.sizes.nodes_per_game] = 0
        self.arena.nodes_N["num_ready"][slot * self.sizes.nodes_per_game] = UNEVALUATED
        self.arena.slots_G["budget"][slot] = 0
        self.arena.pending_GL[slot] = NONE
        self._searching_G[slot] = False

    def begin(self, slots: Sequence[int] | Longs | None = None, simulations: int | Longs | None = None) -> None:
        """Give slots (all if None) the simulations of their next search: one number or one each, at most the config's.

        The evaluation of a root that has none is not counted. Nothing runs until `ticks` or `run`.
        """
        slots_P = self._idle(slots)
        asked = self.config.simulations if simulations is None else simulations
        budget_P = np.broadcast_to(np.asarray(asked, np.int64), slots_P.shape)
        if len(slots_P) and not 0 <= budget_P.min() <= budget_P.max() <= self.config.simulations:
            raise UserError(
                f"{budget_P.min()} to {budget_P.max()} simulations",
                f"the search was made for at most {self.config.simulations}",
                "ask for less, or make the search with a larger SearchConfig.simulations",
            )
        root_P = slots_P * self.sizes.nodes_per_game
        if self.config.count_reused:
            kept_P = np.where(
                self.arena.nodes_N["num_ready"][root_P] == UNEVALUATED,
                0,
                self.arena.slots_G["root_visits"][slots_P] - 1,
            )
            budget_P = np.maximum(budget_P - kept_P, 0)
        if self.config.root == "gumbel":
            considered_P = np.minimum(self.arena.nodes_N["num_edges"][root_P], self.config.num_considered)
            for considered, budget in {*zip(considered_P.tolist(), budget_P.tolist(), strict=True)}:
                rows = slots_P[(considered_P == considered) & (budget_P == budget)]
                self.arena.schedule_GS[rows, :budget] = considered_visits(considered, budget)
        begin(self.arena, self.sizes, self.rules, slots_P, budget_P.copy())
        self._searching_G[slots_P] = self.arena.slots_G["budget"][slots_P] > 0

    def ticks(self, evaluator: Evaluator) -> Iterator[Longs]:
        """Search until every budget is used up; yields after each tick the slots whose search ended in it, if any.

        Between two ticks the caller may read any slot, and may play and begin again those that were yielded: their
        games go on without waiting for others. Leaving the loop early is fine (a deadline, a stop): the leaves under
        way are evaluated and backed up, and another `ticks` goes on where this one ended.
        """
        opened = time.perf_counter()
        for group in self._groups:
            if group.waiting:
                self._evaluate(group, evaluator)
        try:
            self._start(self._groups[0])
            for group, following in itertools.cycle(zip(self._groups, self._groups[::-1], strict=True)):
                yield self._collect(group)
                if not (self.arena.slots_G["budget"].any() or (self.arena.pending_GL != NONE).any()):
                    return
                if following is not group:
                    self._start(following)
                self._evaluate(group, evaluator)
                if following is group:
                    self._start(group)
        except GeneratorExit:
            self._settle(evaluator)
            raise
        finally:
            wait(self._jobs)
            self._jobs = []
            self.times.wall_s += time.perf_counter() - opened

    def run(
        self,
        evaluator: Evaluator,
        simulations: int | Longs | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> SearchResult:
        """Search all slots, from `begin` to `result`; `should_stop` is asked once a tick."""
        self.begin(simulations=simulations)
        for _ in self.ticks(evaluator):
            if should_stop is not None and should_stop():
                break
        return self.result()

    def result(self, slots: Sequence[int] | Longs | None = None) -> SearchResult:
        """What the last searches of these slots (all if None) found; the arrays are new."""
        slots_P = self._slots(slots)
        shape_PM = (len(slots_P), self.game.max_moves)
        num_moves_P, moves_PM = np.zeros(len(slots_P), np.int32), np.zeros(shape_PM, np.uint16)
        visits_PM, priors_PM = np.zeros(shape_PM, np.int32), np.zeros(shape_PM, np.float32)
        q_PM, policy_PM = np.zeros(shape_PM), np.zeros(shape_PM)
        value_P, chosen_P = np.zeros(len(slots_P)), np.zeros(len(slots_P), np.uint16)
        read_roots(
            self.arena,
            self.sizes,
            self.rules,
            slots_P,
            moves_PM,
            num_moves_P,
            visits_PM,
            priors_PM,
            q_PM,
            policy_PM,
            value_P,
            chosen_P,
        )
        return SearchResult(
            slots_P,
            num_moves_P,
            moves_PM,
            visits_PM,
            priors_PM,
            q_PM,
            policy_PM,
            value_P,
            chosen_P,
            self.arena.slots_G["made"][slots_P],
            self.arena.slots_G["full"][slots_P],
        )

    def play(self, moves: Sequence[int] | Moves, slots: Sequence[int] | Longs | None = None) -> None:
        """Make one move in each of these slots (all if None). Raises UserError for a move that is not legal."""
        slots_P = self._idle(slots)
        moves_P = np.array(moves, np.uint16)
        if moves_P.shape != slots_P.shape:
            raise UserError(f"{len(moves_P)} moves", f"{len(slots_P)} slots", "give one move for each slot")
        illegal = play_moves(self._play, self._look, self.arena, self.sizes, self.rules, slots_P, moves_P)
        if illegal != NONE:
            raise UserError(
                f"move {moves_P[illegal]} in slot {slots_P[illegal]}",
                f"not a legal move of {self.game.name} there; the slots before it have moved",
                "play a move that the result lists",
            )

    def outcome(self, slots: Sequence[int] | Longs | None = None) -> Doubles:
        """For each slot (all if None) how its game ended for the side to move, -1, 0 or 1; NaN while it goes on."""
        num_edges_P = self.arena.nodes_N["num_edges"][self._slots(slots) * self.sizes.nodes_per_game]
        return np.where(num_edges_P < 0, -2.0 - num_edges_P, np.nan)

    def state(self, slot: int) -> Words:
        """The position at the root of a slot: a copy, W words."""
        return self.arena.states_NW[slot * self.sizes.nodes_per_game].copy()

    def legal_moves(self, slot: int) -> Moves:
        """The moves at the root of a slot: a copy; none if the game is over or the slot empty."""
        root = slot * self.sizes.nodes_per_game
        first = self.arena.nodes_N["first_edge"][root]
        return self.arena.move_E[first : first + max(0, self.arena.nodes_N["num_edges"][root])].copy()

    def principal_variation(self, slot: int, move: int | None = None) -> list[int]:
        """The most visited moves from the root on, or from the root's `move` on: what the search expects."""
        line: list[int] = []
        node = slot * self.sizes.nodes_per_game
        while self.arena.nodes_N["num_ready"][node] > 0:
            edges = slice(
                self.arena.nodes_N["first_edge"][node],
                self.arena.nodes_N["first_edge"][node] + self.arena.nodes_N["num_ready"][node],
            )
            visits = self.arena.edges_E["visits"][edges]
            if move is not None and not line:
                visits = np.where(self.arena.move_E[edges] == move, visits, 0)
            best = int(visits.argmax())
            if visits[best] == 0:
                break
            line.append(int(self.arena.move_E[edges][best]))
            node = self.arena.edges_E["child"][edges][best]
        return line

    def _slots(self, slots: Sequence[int] | Longs | None) -> Longs:
        return np.arange(self.num_games) if slots is None else np.array(slots, np.int64)

    def _idle(self, slots: Sequence[int] | Longs | None) -> Longs:
        slots_P = self._slots(slots)
        busy_P = (self.arena.pending_GL[slots_P] != NONE).any(axis=1)
        if busy_P.any():
            raise UserError(
                f"a change of slot {slots_P[busy_P][0]}",
                "it has leaves out for evaluation",
                "change slots that `ticks` has yielded, leave the loop first, or set the root anew",
            )
        return slots_P

    def _make_group(self, first_slot: int, end_slot: int) -> Group:
        rows, most = self.batch_size, self.game.max_moves
        states_BW = np.zeros((rows, len(self.game.initial)), np.uint64)
        leaves = Leaves(states_BW, np.zeros((rows, most), np.uint16), np.zeros(rows, np.int32))
        return Group(first_slot, end_slot, leaves, Evaluation(np.zeros((1, 1), np.float32), np.zeros(1, np.float32)))

    def _start(self, group: Group) -> None:
        """Begin one tick of a group's trees, in pieces; without threads it is over on return.

        Should the tick fail, its leaves are evaluated again when the search goes on.
        """
        group.waiting = True
        count = group.end_slot - group.first_slot
        pieces = max(1, min(self._threads, count // LEAST_PIECE))
        bounds = itertools.pairwise(group.first_slot + count * i // pieces for i in range(pieces + 1))
        if self._pool is None:
            self.times.tree_s += self._grow(group, group.first_slot, group.end_slot)
        else:
            self._jobs = [self._pool.submit(self._grow, group, first, end) for first, end in bounds]

    def _collect(self, group: Group) -> Longs:
        """Wait until the tick of a group is over; the slots whose search ended with it."""
        started = time.perf_counter()
        self.times.tree_s += sum(job.result() for job in self._jobs)
        self._jobs = []
        self.times.waiting_s += time.perf_counter() - started
        group.waiting = bool(group.leaves.num_moves_B.any())
        slots = slice(group.first_slot, group.end_slot)
        idle_P = (self.arena.slots_G["budget"][slots] == 0) & (self.arena.pending_GL[slots] == NONE).all(axis=1)
        ended_P = group.first_slot + np.flatnonzero(idle_P & self._searching_G[slots])
        self._searching_G[ended_P] = False
        return ended_P

    def _evaluate(self, group: Group, evaluator: Evaluator) -> None:
        """Have the leaves of a group evaluated, if there are any."""
        if not group.waiting:
            return
        started = time.perf_counter()
        priors, value = evaluator(group.leaves)
        priors_BM, value_B = np.require(priors, np.float32, ("C", "W")), np.require(value, np.float32, ("C", "W"))
        num_moves_B = group.leaves.num_moves_B
        if priors_BM.ndim != 2 or len(priors_BM) != len(num_moves_B) or value_B.shape != num_moves_B.shape:
            raise UserError(
                f"the evaluation of {self.batch_size} rows",
                f"priors of shape {priors_BM.shape} and values of shape {value_B.shape}",
                f"return shapes ({self.batch_size}, moves) and ({self.batch_size},)",
            )
        if priors_BM.shape[1] < num_moves_B.max():
            raise UserError(
                f"priors of up to {num_moves_B.max()} moves", f"{priors_BM.shape[1]} columns", "return them all"
            )
        group.evaluation = Evaluation(priors_BM, value_B)
        group.waiting = False
        self.times.evaluation_s += time.perf_counter() - started
        self.times.num_batches += 1
        self.times.num_rows += self.batch_size
        self.times.num_leaves += int(np.count_nonzero(num_moves_B))

    def _settle(self, evaluator: Evaluator) -> None:
        """Evaluate and back up the leaves that are under way, without selecting more."""
        budget_G = self.arena.slots_G["budget"].copy()
        self.arena.slots_G["budget"].fill(0)
        for group in self._groups:
            self._evaluate(group, evaluator)
            self._grow(group, group.first_slot, group.end_slot)
        self.arena.slots_G["budget"][:] = budget_G

    def _grow(self, group: Group, first_slot: int, end_slot: int) -> float:
        """One tick of some slots of a group; returns the seconds it took."""
        started = time.perf_counter()
        first_row = (first_slot - group.first_slot) * self.config.leaves_per_game
        bad = advance(
            self._play,
            self._look,
            self.arena,
            self.sizes,
            self.rules,
            first_slot,
            end_slot,
            first_row,
            *group.leaves,
            *group.evaluation,
        )
        if bad != NONE:
            priors_M = group.evaluation.priors_BM[bad, : group.leaves.num_moves_B[bad]]
            raise UserError(
                f"priors and value of leaf {bad} in a batch of {self.batch_size}",
                f"priors from {priors_M.min()} to {priors_M.max()} with sum {priors_M.sum()}, "
                f"value {group.evaluation.value_B[bad]}",
                "return probabilities of the legal moves alone, and a value from -1 to 1",
            )
        return time.perf_counter() - started
