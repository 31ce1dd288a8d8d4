"""Self-play: a net learns a game of two players from its own games, on any number of ranks.

    encoding = Encoding(planes)                       # what the net sees of a position
    selfplay = SelfPlay(game, encoding, slots, games_per_iteration, SelfPlayConfig(), world)
    window = ReplayWindow(game, ReplayConfig(), world)
    loss = partial(alphazero_loss, encoding=encoding)
    for iteration in run.iterations(iterations, long=True):
        games = selfplay.play(net, iteration)
        window.add(games)
        for batch in window.batches(global_batch):
            run.log(learner.step(loss, batch))
        run.log(games.results(), prefix="rollout")
        run.log(selfplay.statistics(), prefix="selfplay")

`ranks new my_game --shape self-play` writes a complete file. A game is a `ranks.search.Game`. The
names below are imported when they are first used, so `import ranks.selfplay` imports neither torch
nor Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranks.selfplay.config import ReplayConfig as ReplayConfig
    from ranks.selfplay.config import SelfPlayConfig as SelfPlayConfig
    from ranks.selfplay.evaluation.against_random import score_against_random as score_against_random
    from ranks.selfplay.games import Games as Games
    from ranks.selfplay.losses import Targets as Targets
    from ranks.selfplay.losses import alphazero_loss as alphazero_loss
    from ranks.selfplay.losses import policy_entropy as policy_entropy
    from ranks.selfplay.losses import policy_loss as policy_loss
    from ranks.selfplay.losses import reinforce_loss as reinforce_loss
    from ranks.selfplay.losses import value_loss as value_loss
    from ranks.selfplay.net.encoding import Encoding as Encoding
    from ranks.selfplay.net.encoding import Positions as Positions
    from ranks.selfplay.net.encoding import expected_outcome as expected_outcome
    from ranks.selfplay.net.encoding import policy_and_value as policy_and_value
    from ranks.selfplay.replay.game_moves import PlayedGame as PlayedGame
    from ranks.selfplay.replay.window import ReplayWindow as ReplayWindow
    from ranks.selfplay.selfplay import SelfPlay as SelfPlay
    from ranks.selfplay.snapshots import Snapshots as Snapshots

HOMES = {
    "ranks.selfplay.config": ("ReplayConfig", "SelfPlayConfig"),
    "ranks.selfplay.net.encoding": ("Encoding", "Positions", "expected_outcome", "policy_and_value"),
    "ranks.selfplay.evaluation.against_random": ("score_against_random",),
    "ranks.selfplay.games": ("Games",),
    "ranks.selfplay.losses": (
        "Targets",
        "alphazero_loss",
        "policy_entropy",
        "policy_loss",
        "reinforce_loss",
        "value_loss",
    ),
    "ranks.selfplay.selfplay": ("SelfPlay",),
    "ranks.selfplay.snapshots": ("Snapshots",),
    "ranks.selfplay.replay.game_moves": ("PlayedGame",),
    "ranks.selfplay.replay.window": ("ReplayWindow",),
}
PUBLIC = {name: home for home, names in HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'ranks.selfplay' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*PUBLIC]
