"""Plays the games of a match, spread over the ranks by their numbers.

In a round the opponents move in all games in which it is their turn, then the net in all games that are not
over. So the net has one batch with a leaf of each running game.

Legend: P games of one batch.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from torch import nn

from ranks.chess.core.rules import CHESS
from ranks.chess.core.words import CLOCKS_WORD
from ranks.engine.distributed.world import World
from ranks.engine.update.evaluate import eval_mode
from ranks.search.evaluation import BoolArray, Evaluator, Int64Array
from ranks.search.trees import tree_bytes
from ranks.selfplay import Encoding
from ranks.selfplay.checks.memory import check_memory
from ranks.selfplay.evaluation.rounds import games_of_batches, play_rounds, rows_of
from ranks.selfplay.net.net_evaluator import NetEvaluator
from ranks.workloads.chess_spiking.matches.plan import BEST, EvaluationPlan, MatchConfig
from ranks.workloads.chess_spiking.matches.sides import FixedSide, MatchSide, NetSide


class GameResult(NamedTuple):
    """How a game ended."""

    game: int
    outcome: int
    """For the net: 1 won, 0 drawn, -1 lost."""
    repetition: bool
    """Drawn by a third repetition."""
    truncated: bool
    """Drawn because it had the most plies."""
    plies: int
    """The opening's included."""


class GameBatch:
    """Games that are searched together: under --exact those of a shard, else those of a rank."""

    def __init__(
        self,
        plan: EvaluationPlan,
        games: range,
        evaluator: Evaluator,
        best: Evaluator | None,
        match: MatchConfig,
    ) -> None:
        self.game_P = np.arange(games.start, games.stop)
        self.net = NetSide(evaluator, match, [plan.opening(game) for game in games])
        self.max_plies = match.max_plies
        self.opponents: list[tuple[Int64Array, MatchSide]] = []
        """Each with its games, as indices of this batch."""
        for word in plan.opponents:
            mine_P = np.flatnonzero([plan.opponent(game) == word for game in games])
            if len(mine_P):
                self.opponents.append((mine_P, _opponent(plan, word, self.game_P[mine_P].tolist(), best, match)))

    def is_running(self) -> BoolArray:
        """Which games are not over."""
        return np.isnan(self.net.search.outcome()) & (self._ply_P < self.max_plies)

    def play_round(self) -> None:
        """A move of each opponent whose turn it is, and a move of the net, in all running games."""
        for mine_P, side in self.opponents:
            inner_Q = np.flatnonzero((self.is_running() & ~self._is_net_to_move())[mine_P])
            if len(inner_Q):
                moves_Q = side.choose(inner_Q)
                side.push(inner_Q, moves_Q)
                self.net.push(mine_P[inner_Q], moves_Q)
        ours_P = self.is_running() & self._is_net_to_move()
        if ours_P.any():
            games = np.flatnonzero(ours_P)
            move_P = np.zeros(len(self.game_P), np.uint16)
            move_P[games] = self.net.choose(games)
            self.net.push(games, move_P[games])
            for mine_P, side in self.opponents:
                inner_Q = np.flatnonzero(ours_P[mine_P])
                side.push(inner_Q, move_P[mine_P[inner_Q]])

    def results(self) -> list[GameResult]:
        """Of all games, which are over."""
        outcome_P = self.net.search.outcome()
        truncated_P = np.isnan(outcome_P)
        repeated_P = (self.net.search.states()[:, CLOCKS_WORD] >> np.uint64(32)) >= 2
        repetition_P = repeated_P & (outcome_P == 0)
        for_net_P = np.nan_to_num(np.where(self._is_net_to_move(), outcome_P, -outcome_P)).astype(np.int64)
        columns = (self.game_P, for_net_P, repetition_P, truncated_P, self._ply_P)
        return [GameResult(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    @property
    def _ply_P(self) -> Int64Array:
        return self.net.search.trees.slots_G["ply"].astype(np.int64)

    def _is_net_to_move(self) -> BoolArray:
        """White is to move at even plies, and the net has white in even games."""
        return self._ply_P % 2 == self.game_P % 2


def _opponent(
    plan: EvaluationPlan, word: str, games: list[int], best: Evaluator | None, match: MatchConfig
) -> MatchSide:
    openings = [plan.opening(game) for game in games]
    if word == BEST:
        assert best is not None
        return NetSide(best, match, openings)
    return FixedSide(word, [plan.player_seed(game) for game in games], openings)


def check_trees_of(plan: EvaluationPlan, match: MatchConfig, world: World) -> None:
    """Raises UserError where the trees of a match do not fit into the memory. Every rank calls it."""
    batches = games_of_batches(plan.games, world)
    for ids in batches:
        tree_bytes(CHESS, match.search, len(ids))  # their nodes and edges have numbers of 31 bits
    searched = [word for ids in batches for word in map(plan.opponent, ids)]
    trees = len(searched) + searched.count(BEST)  # the best net has a search too
    check_memory(CHESS, trees, rows_of(trees), match.search, world, "games of a match")


def play_games(
    plan: EvaluationPlan,
    net: nn.Module,
    best: nn.Module | None,
    encoding: Encoding,
    match: MatchConfig,
    world: World,
) -> list[GameResult]:
    """The results of all games in the order of their numbers, on every rank.

    With --exact the games of each shard are searched together, so the results are the same on any number
    of ranks. Every rank calls it. Raises Stopped inside a long iteration if a stop was requested; UserError where the
    trees do not fit into the memory.
    """
    second = eval_mode(best, world) if best is not None else nullcontext()
    with world.session.timed("evaluation"), eval_mode(net, world), second:
        evaluator = NetEvaluator(net, CHESS, encoding, world.device)
        of_best = NetEvaluator(best, CHESS, encoding, world.device) if best is not None else None
        check_trees_of(plan, match, world)
        batches = [GameBatch(plan, ids, evaluator, of_best, match) for ids in games_of_batches(plan.games, world)]
        play_rounds(batches, "matches", world)
        mine = [result for batch in batches for result in batch.results()]
        every = [result for results in world.comm.gather_objects(mine) for result in results]
    world.check_stop()
    return sorted(every)
