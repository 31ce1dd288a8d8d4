"""The games of one rank: slots that start a new game as soon as one ends.

    tick      evaluations of the net ─► trees: back up, select ─► searches that ended: choose, record, play ─► leaves

Each slot takes one step a tick, so a slot's clock is the number of its own evaluations. What a slot
does depends on its own history, the weights and the seed, and on nothing else: not on the other
slots, the number of ranks, the size of batches (but for rounding) or threads.

Most searches take the same number of ticks, so slots that begin together end together, and a device
waits while all their moves are recorded. Staggered slots begin their first search of an iteration in
PHASES different ticks: then few moves are recorded in a tick, in less time than a batch takes.

Legend: G slots of this rank, P some of them, M most legal moves of a position.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from ranks.search.evaluation import Float64Array, Int64Array
from ranks.search.game import Game
from ranks.search.result import SearchResult
from ranks.search.scheduler import GameGroup
from ranks.search.search import Search
from ranks.selfplay.checks.rules import draw_kind_of
from ranks.selfplay.checks.trees import check_trees
from ranks.selfplay.config import SelfPlayConfig
from ranks.selfplay.games import NO_KIND, EndedGame
from ranks.selfplay.random import FULL_SEARCH, MOVE, OPENING, RESIGNATION, sample, uniform
from ranks.selfplay.records import SHARE_ONE, Records, game_id
from ranks.selfplay.search_settings import search_config
from ranks.selfplay.times import PlayTimes

MIN_SLOTS_PER_THREAD = 16
"""A thread steps at least this many trees. (A step of 1,024 trees on 16 cores takes 0.5 ms with 16 threads, 3.4 ms
with one.)"""

PHASES = 8
"""With more, fewer moves are recorded at a time, each at a higher cost: numpy's calls take 1 ms."""


class Slots:
    """All slots of one rank: their trees, games and the records of unfinished games."""

    def __init__(
        self, game: Game, ids: range, cfg: SelfPlayConfig, seed: int, threads: int, staggered: bool = False
    ) -> None:
        """`ids`: the slots' numbers among those of all ranks. `staggered`: see above."""
        self.game, self.ids, self.cfg, self.seed = game, ids, cfg, seed
        self.search = Search(game, search_config(cfg, seed), len(ids), groups=1)
        self.number_G: Int64Array = np.zeros(len(ids), np.int64)
        """Games that have ended in each slot: the number of the running one."""
        self.ply_G: Int64Array = np.zeros(len(ids), np.int64)
        self.full_G: NDArray[np.bool_] = np.ones(len(ids), np.bool_)
        """Whether the running search is a full one."""
        self.opening_G: NDArray[np.bool_] = np.zeros(len(ids), np.bool_)
        """Whether the next move is a random one of the opening, without search."""
        self.first_tick_G: Int64Array = np.zeros(len(ids), np.int64)
        """The tick in which each slot begins its first search of this iteration."""
        self.iteration = 0
        """The iteration that runs, from 0: that of the weights."""
        self.ended: list[EndedGame] = []
        """The games that ended in this iteration."""
        self.unfinished = Records.empty(len(game.initial))
        """The moves of running games, from the iterations before."""
        self.times = PlayTimes()
        self._new: list[Records] = []
        self._staggered, self._threads = staggered, threads
        if threads > 1:
            from ranks.search.parallel_step import start_threads  # compiles a kernel, or loads it

            start_threads(threads)

    def game_ids(self, slots_P: Int64Array) -> Int64Array:
        """The ids of the running games."""
        return game_id(self.ids.start + slots_P, self.number_G[slots_P])

    # An iteration -----------------------------------------------------------------------------------------------------

    def begin_iteration(self, iteration: int) -> None:
        """Empty all trees: the weights have changed. The searches begin in the first ticks."""
        self.iteration, self.ended, self._new = iteration, [], [self.unfinished]
        moves = self.moves_of_unfinished()
        everyone = np.arange(len(self.ids))
        for slot, game in zip(everyone.tolist(), self.game_ids(everyone).tolist(), strict=True):
            self.search.set_root(slot, game, moves[slot])
        if self._staggered and self.cfg.search != "none":
            ticks = self.cfg.simulations_at(iteration) + 1  # of a search, with the evaluation of its root
            self.first_tick_G = np.arange(self.ids.start, self.ids.stop) % PHASES * ticks // PHASES

    def end_iteration(self) -> Records:
        """The moves of the games that have ended, ordered; those of running games stay."""
        records = Records.cat(self._new)
        order_P = records.order()
        is_ended_P = np.isin(records.game_P[order_P], [game.game for game in self.ended])
        self.unfinished, self._new = records.select(order_P[~is_ended_P]), []
        return records.select(order_P[is_ended_P])

    def moves_of_unfinished(self) -> list[list[int]]:
        """The move list of each slot's running game."""
        moves = [list[int]() for _ in self.ids]
        slot_P = self.unfinished.game_P // 2**32 - self.ids.start
        for slot, move in zip(slot_P.tolist(), self.unfinished.move_P.tolist(), strict=True):
            moves[slot].append(move)
        return moves

    # A tick -----------------------------------------------------------------------------------------------------------

    def step(self, group: GameGroup, tick: int) -> None:
        """One tick of a group: back up its evaluations, play where a search has ended, select the next
        leaves. `tick`: ticks of this iteration that are complete."""
        started = time.perf_counter()
        self._simulate(group, group.slots_P)
        stepped = time.perf_counter()
        self.times.trees_s += stepped - started
        idle_P = group.idle()
        first_tick_P = self.first_tick_G[idle_P]
        ended_P, begins_P = idle_P[first_tick_P < tick], idle_P[first_tick_P <= tick]
        if len(ended_P):
            self._play(ended_P)
        if len(begins_P):
            self._begin(begins_P)
            self.times.records_s += time.perf_counter() - stepped
            # The new searches select their first leaf in the same tick, so that a batch is full.
            self.times.trees_s += self._simulate(group, begins_P)

    def _simulate(self, group: GameGroup, slots_P: Int64Array) -> float:
        """One step of these trees, by all threads. Returns seconds."""
        return group.simulate(slots_P, max(1, min(self._threads, len(slots_P) // MIN_SLOTS_PER_THREAD)))

    def _begin(self, slots_P: Int64Array) -> None:
        """Begin a search in these slots: a full one, a fast one, or none for a random move of the opening."""
        cfg, game_P, ply_P = self.cfg, self.game_ids(slots_P), self.ply_G[slots_P]
        most = 0 if cfg.search == "none" else cfg.simulations_at(self.iteration)
        simulations_P = np.full(len(slots_P), most)
        if cfg.full_searches < 1:
            full_P = uniform(self.seed, game_P, ply_P, FULL_SEARCH) < cfg.full_searches
            simulations_P[~full_P] = min(most, cfg.fast_simulations)
            self.full_G[slots_P] = full_P
        if cfg.opening_plies:
            length_P = np.floor(uniform(self.seed, game_P, 0 * ply_P, OPENING) * (cfg.opening_plies + 1))
            opening_P = ply_P < length_P
            simulations_P[opening_P] = 0
            self.opening_G[slots_P] = opening_P
        # A fast search is to find a strong move, not to explore (Wu 2019, section 3.1).
        self.search.begin(slots_P, simulations_P, noise=self.full_G[slots_P])

    def _play(self, slots_P: Int64Array) -> None:
        """Play a move in slots whose search has ended; start a new game where one has ended."""
        check_trees(self.game, self.search.trees, slots_P)
        result = self.search.result(slots_P)
        columns_P, target_PM = self._choose(result, slots_P)
        rows_P = np.arange(len(slots_P))
        move_P = result.moves_PM[rows_P, columns_P]
        value_P = self._root_value(result)
        self._new.append(self._record(result, slots_P, move_P, target_PM, value_P))
        resigns_P = self._resigns(slots_P, value_P)
        self.search.play(move_P, slots_P)
        check_trees(self.game, self.search.trees, slots_P)
        self.ply_G[slots_P] += 1
        self.times.plies += len(slots_P)
        self.times.simulations += int(result.simulations_P.sum())
        if self.cfg.search != "none":
            self.times.searches += int((~self.opening_G[slots_P]).sum())
        self.times.out_of_nodes += int(result.out_of_nodes_P.sum())
        outcome_P = self.search.outcome(slots_P)  # for the side to move at the end
        over_P = ~np.isnan(outcome_P)
        resigned_P = ~over_P & resigns_P
        truncated_P = ~over_P & ~resigned_P & (self.ply_G[slots_P] >= self.cfg.max_plies)
        outcome_P = np.where(resigned_P, 1.0, np.where(truncated_P, 0.0, outcome_P))
        for row in np.flatnonzero(over_P | resigned_P | truncated_P).tolist():
            self._end_game(int(slots_P[row]), outcome_P[row], bool(truncated_P[row]), bool(resigned_P[row]))

    def _root_value(self, result: SearchResult) -> Float64Array:
        """The value of the root for its side to move: the mean of all simulations, or with Gumbel search the value of
        the improved policy. Its simulations visit every considered move, so their mean is that of poor moves too."""
        if self.cfg.search != "gumbel":
            return result.value_P
        return (result.policy_PM * result.q_PM).sum(1)

    def _resigns(self, slots_P: Int64Array, value_P: Float64Array) -> NDArray[np.bool_]:
        """Whether the side to move gives up after this move."""
        cfg = self.cfg
        if cfg.resign_value is None:
            return np.zeros(len(slots_P), np.bool_)
        is_full_P = self.full_G[slots_P] & ~self.opening_G[slots_P]
        is_hopeless_P = (value_P.astype(np.float32) <= -cfg.resign_value) & is_full_P
        return is_hopeless_P & ~self.is_checked(self.game_ids(slots_P))

    def is_checked(self, game_P: Int64Array) -> NDArray[np.bool_]:
        """Whether a game is one of those in which nobody resigns, so that false resignations are seen."""
        return uniform(self.seed, game_P, 0 * game_P, RESIGNATION) < self.cfg.resign_check

    def _end_game(self, slot: int, outcome: float, truncated: bool, resigned: bool) -> None:
        """`outcome`: for the side to move at the end."""
        plies, number = int(self.ply_G[slot]), int(self.number_G[slot])
        first = int(outcome) if plies % 2 == 0 else -int(outcome)
        drawn_by_rules = outcome == 0 and not truncated
        kind = draw_kind_of(self.game, self.search.state(slot)) if drawn_by_rules else NO_KIND
        self.ended.append(EndedGame(game_id(self.ids.start + slot, number), plies, first, truncated, resigned, kind))
        self.number_G[slot] += 1
        self.ply_G[slot] = 0
        self.search.set_root(slot, game_id(self.ids.start + slot, number + 1))

    def _choose(self, result: SearchResult, slots_P: Int64Array) -> tuple[Int64Array, Float64Array]:
        """The column of each move that is played, and the policy targets."""
        cfg = self.cfg
        chosen_P = (result.moves_PM == result.chosen_P[:, None]).argmax(1)
        target_PM = result.policy_PM
        if cfg.search == "gumbel" and not cfg.opening_plies:
            return chosen_P, target_PM
        uniform_P = uniform(self.seed, self.game_ids(slots_P), self.ply_G[slots_P], MOVE)
        if cfg.search == "none":
            chosen_P = sample(result.priors_PM.astype(np.float64), uniform_P)
        elif cfg.search == "puct":
            most_P1 = np.maximum(result.visits_PM.max(1, keepdims=True), 1)
            weights_PM = (result.visits_PM / most_P1) ** (1 / cfg.temperature)
            early_P = (self.ply_G[slots_P] < cfg.temperature_plies) & (result.visits_PM.max(1) > 0)
            early_P &= self.full_G[slots_P]
            chosen_P = np.where(early_P, sample(weights_PM, uniform_P), chosen_P)
        opening_P = self.opening_G[slots_P]
        chosen_P = np.where(opening_P, (uniform_P * result.num_moves_P).astype(np.int64), chosen_P)
        if cfg.search == "none":
            target_PM = (np.arange(target_PM.shape[1]) == chosen_P[:, None]).astype(np.float64)
        return chosen_P, target_PM

    def _record(
        self,
        result: SearchResult,
        slots_P: Int64Array,
        move_P: NDArray[np.uint16],
        target_PM: Float64Array,
        value_P: Float64Array,
    ) -> Records:
        num_moves_P = result.num_moves_P
        is_move_PM = np.arange(target_PM.shape[1]) < num_moves_P[:, None]
        target_E, prior_E = target_PM[is_move_PM], result.priors_PM[is_move_PM]
        is_target_E = (target_E > 0) & (prior_E > 0)
        kl_E = target_E * np.log(np.divide(target_E, prior_E, where=is_target_E, out=np.ones_like(target_E)))
        first_P = num_moves_P.cumsum() - num_moves_P
        return Records(
            game_P=self.game_ids(slots_P),
            ply_P=self.ply_G[slots_P].astype(np.int32),
            iteration_P=np.full(len(slots_P), self.iteration, np.int32),
            state_PW=self.search.states(slots_P),
            move_P=move_P,
            full_P=self.full_G[slots_P] & ~self.opening_G[slots_P],
            value_P=value_P.astype(np.float32),
            kl_P=np.add.reduceat(kl_E, first_P).astype(np.float32),
            num_moves_P=num_moves_P.astype(np.uint16),
            legal_E=result.moves_PM[is_move_PM],
            share_E=np.rint(target_E * SHARE_ONE).astype(np.uint16),
        )

    # What a checkpoint holds ------------------------------------------------------------------------------------------

    def restore(self, number_G: Int64Array, records: Records) -> None:
        """Take over the running games: their numbers, and their records without positions, which are
        computed from the moves. Raises UserError where a move is not legal."""
        self.number_G[:] = number_G
        slot_P = records.game_P // 2**32 - self.ids.start
        self.ply_G[:] = np.bincount(slot_P, minlength=len(self.ids))
        for slot, game in enumerate(self.game_ids(np.arange(len(self.ids))).tolist()):
            self.search.set_root(slot, game)
        for ply in range(int(self.ply_G.max(initial=0))):
            rows_P = np.flatnonzero(records.ply_P == ply)
            records.state_PW[rows_P] = self.search.states(slot_P[rows_P])
            self.search.play(records.move_P[rows_P], slot_P[rows_P])
        self.unfinished = records
