"""Many games searched at once: trees grow on the CPU while the evaluator works on the leaves of others.

    turn        0          1          2          3                    two groups of games
    threads   trees A    trees B    trees A    trees B                kernels without the GIL, >= 256 games a piece
    caller               net A      net B      net A                  one batch a turn, always of the same size

Legend: G slots, P some of them, T moves of a game, W words of a state.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np

from ranks.errors import UserError
from ranks.search.arena import NONE, UNEVALUATED, allocate, rules_of, sizes_of
from ranks.search.arguments import budgets_of, game_id_of, moves_of, slot_of, slots_of, state_of
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Doubles, Evaluator, Flags, Longs, Moves, Words
from ranks.search.game import LOOK, PLAY, FirstClass, Game
from ranks.search.groups import LEAST_GROUP, Group, no_leaves
from ranks.search.grow import advance
from ranks.search.gumbel import considered_visits
from ranks.search.result import SearchResult, SearchTimes, principal_variation, read_result
from ranks.search.roots import begin, play_moves, set_root


class Search:
    """Searches `num_games` games at once; each has a slot.

        search = Search(CONNECT_FOUR, SearchConfig(simulations=100), num_games=256)
        for slot in range(256):
            search.set_root(slot, game_id=slot)
        result = search.run(evaluator)
        search.play(result.chosen_P)

    A game's tree depends only on the seed, its id, its moves and its evaluations: not on its slot, on the other games,
    on `threads` or on `groups`. Slots that are not set, and games that are over, take no part. A slot that the search
    has not, and any number that cannot be what it stands for, is answered by UserError, and nothing is changed.

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
        num_groups = min(num_games, (2 if num_games >= 2 * LEAST_GROUP else 1) if groups is None else groups)
        self.batch_size = -(-num_games // num_groups) * config.leaves_per_game
        bounds = [num_games * i // num_groups for i in range(num_groups + 1)]
        tick = functools.partial(advance, self._play, self._look, self.arena, self.sizes, self.rules)
        self._groups = [
            Group(tick, first, end, config.leaves_per_game, no_leaves(game, self.batch_size))
            for first, end in itertools.pairwise(bounds)
        ]
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "trees") if threads > 1 or num_groups > 1 else None
        self._jobs: list[Future[float]] = []
        self._searching_G: Flags = np.zeros(num_games, np.bool_)

    def set_root(self, slot: int, game_id: int, moves: Sequence[int] | Moves = (), start: Words | None = None) -> None:
        """Put a game into a slot: `start` (the game's initial state if None) and the moves played from it.

        `start` has shape (W,) or (1, W), and is trusted to be a state of the game. `game_id`, 64 bits, and the number
        of moves are the key of the root's noise. Positions before `start` are not known to the repetition rule. Raises
        UserError for a move that is not legal; the slot is then empty.
        """
        slot, key = slot_of(slot, self.num_games), game_id_of(game_id)
        state_W, moves_T = state_of(start, self.game), moves_of(moves)
        illegal = set_root(self._play, self._look, self.arena, self.sizes, slot, key, state_W, moves_T)
        self._searching_G[slot] = False
        if illegal != NONE:
            raise UserError(
                f"{len(moves_T)} moves of {self.game.name}",
                f"move number {illegal} (from 0), {moves_T[illegal]}, is not legal there",
                "give legal moves",
            )

    def clear(self, slot: int) -> None:
        """Empty a slot."""
        root = self._root(slot)
        self.arena.nodes_N["num_edges"][root] = 0
        self.arena.nodes_N["num_ready"][root] = UNEVALUATED
        self.arena.slots_G["budget"][slot] = 0
        self.arena.pending_GL[slot] = NONE
        self._searching_G[slot] = False

    def begin(self, slots: Sequence[int] | Longs | None = None, simulations: int | Longs | None = None) -> None:
        """Give slots (all if None) the simulations of their next search: one number or one each, at most the config's.

        The evaluation of a root that has none is not counted. Nothing runs until `ticks` or `run`.
        """
        slots_P = self._idle(slots)
        most = self.config.simulations
        budget_P = budgets_of(most if simulations is None else simulations, len(slots_P), most)
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
        begin(self.arena, self.sizes, self.rules, slots_P, budget_P)
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
                group.evaluate(evaluator, self.times)
        try:
            self._start(self._groups[0])
            for group, following in itertools.cycle(zip(self._groups, self._groups[::-1], strict=True)):
                yield self._collect(group)
                if not (self.arena.slots_G["budget"].any() or (self.arena.pending_GL != NONE).any()):
                    return
                if following is not group:
                    self._start(following)
                group.evaluate(evaluator, self.times)
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
        return read_result(self.arena, self.sizes, self.rules, self._slots(slots))

    def play(self, moves: Sequence[int] | Longs | Moves, slots: Sequence[int] | Longs | None = None) -> None:
        """Make one move in each of these slots (all if None). Raises UserError for a move that is not legal."""
        slots_P, moves_P = self._idle(slots), moves_of(moves)
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
        return self.arena.states_NW[self._root(slot)].copy()

    def legal_moves(self, slot: int) -> Moves:
        """The moves at the root of a slot: a copy; none if the game is over or the slot empty."""
        root = self._root(slot)
        first = self.arena.nodes_N["first_edge"][root]
        return self.arena.move_E[first : first + max(0, self.arena.nodes_N["num_edges"][root])].copy()

    def principal_variation(self, slot: int, move: int | None = None) -> list[int]:
        """The most visited moves from the root on, or from the root's `move` on: what the search expects."""
        return principal_variation(self.arena, self.sizes, slot_of(slot, self.num_games), move)

    def _slots(self, slots: Sequence[int] | Longs | None) -> Longs:
        return slots_of(slots, self.num_games)

    def _root(self, slot: int) -> int:
        return slot_of(slot, self.num_games) * self.sizes.nodes_per_game

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

    def _start(self, group: Group) -> None:
        """Begin one tick of a group's trees, in pieces; without threads it is over on return.

        Should the tick fail, its leaves are evaluated again when the search goes on.
        """
        group.waiting = True
        if self._pool is None:
            self.times.tree_s += group.grow(group.first_slot, group.end_slot)
        else:
            self._jobs = [self._pool.submit(group.grow, *piece) for piece in group.pieces(self._threads)]

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

    def _settle(self, evaluator: Evaluator) -> None:
        """Evaluate and back up the leaves that are under way, without selecting more."""
        budget_G = self.arena.slots_G["budget"].copy()
        self.arena.slots_G["budget"].fill(0)
        for group in self._groups:
            group.evaluate(evaluator, self.times)
            group.grow(group.first_slot, group.end_slot)
        self.arena.slots_G["budget"][:] = budget_G
