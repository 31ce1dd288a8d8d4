"""How well a net plays against random moves: the first thing to know of a game of one's own.

Legend: P some of the games of this rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranks.engine.distributed.world import World
from ranks.engine.update.evaluate import eval_mode
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluation, Leaves
from ranks.search.game import Game
from ranks.search.search import Search
from ranks.selfplay.encoding import Encoding
from ranks.selfplay.evaluator import BatchEvaluator, BatchMemory
from ranks.selfplay.random import MOVE, uniform
from ranks.selfplay.times import PlayTimes

OTHER_SEED = 1_000_003
"""Added to the run's seed: the random moves of an evaluation have nothing to do with training."""


def score_against_random(
    net: Any, game: Game, encoding: Encoding, games: int, simulations: int, world: World, max_plies: int = 512
) -> dict[str, float]:
    """The net with `simulations` of Gumbel search without noise against uniformly random moves.

    It begins in every second game. Returns `score` (won 1, drawn 1/2, lost 0; a game of `max_plies`
    counts as drawn), and the shares won, drawn and lost. Every rank calls it.
    """
    ids = world.items(games)
    config = SearchConfig(simulations=simulations, root="gumbel", gumbel_scale=0.0, reuse=False)
    outcomes = list[float]()
    with world.session.timed("evaluation"), eval_mode(net, world):
        if len(ids):
            outcomes = _outcomes(net, game, encoding, ids, Search(game, config, len(ids), groups=1), world, max_plies)
        every = np.array([outcome for of in world.comm.gather_objects(outcomes) for outcome in of])
    world.check_stop()
    won, drawn = float((every > 0).mean()), float((every == 0).mean())
    return {"score": won + drawn / 2, "won": won, "drawn": drawn, "lost": 1 - won - drawn}


def _outcomes(
    net: Any, game: Game, encoding: Encoding, ids: range, search: Search, world: World, max_plies: int
) -> list[float]:
    """For the net, by game."""
    memory = BatchMemory(game, search.batch_size, world.device)
    evaluator = BatchEvaluator(encoding, world.device, PlayTimes())

    def evaluate(leaves: Leaves) -> Evaluation:
        for into, array in zip(memory.leaves, leaves, strict=True):
            into[:] = array
        evaluator.launch(net, memory)
        evaluator.wait(memory)
        return memory.evaluation

    game_P = np.arange(ids.start, ids.stop)
    for slot, number in enumerate(ids):
        search.set_root(slot, number)
    for ply in range(max_plies):
        world.beat()
        running_P = np.isnan(search.outcome())
        if not running_P.any():
            break
        is_net_P = (game_P + ply) % 2 == 0
        searching_P = np.flatnonzero(running_P & is_net_P)
        if len(searching_P):
            search.begin(searching_P)
            for _ in search.steps(evaluate):
                pass
            search.play(search.result(searching_P).chosen_P, searching_P)
        random_P = np.flatnonzero(running_P & ~is_net_P)
        chosen_P = uniform(world.seed + OTHER_SEED, game_P[random_P], np.full(len(random_P), ply), MOVE)
        for slot, chosen in zip(random_P.tolist(), chosen_P.tolist(), strict=True):
            legal = search.legal_moves(slot)
            search.play([int(legal[int(chosen * len(legal))])], [slot])
    plies_P = search.trees.slots_G["ply"]
    to_move_P = np.where((game_P + plies_P) % 2 == 0, 1.0, -1.0)
    return np.nan_to_num(search.outcome() * to_move_P).tolist()
