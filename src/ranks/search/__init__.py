"""Tree search over many games at once, for any game that gives its rules as jitted functions.

256 games of Connect Four, each with 64 simulations of Gumbel search; every leaf gets uniform priors and the value 0:

>>> from ranks.search import CONNECT_FOUR, Search, SearchConfig, uniform_evaluator
>>> search = Search(CONNECT_FOUR, SearchConfig(simulations=64, root="gumbel"), num_games=256)
>>> for slot in range(256):
...     search.set_root(slot, game_id=slot)
>>> result = search.run(uniform_evaluator)
>>> result.policy_PM.shape                       # the policy target of each game: 7 columns to play
(256, 7)
>>> search.play(result.chosen_P)

A network takes the place of `uniform_evaluator`: any function from `Leaves` to `Evaluation`. The names below are
imported when they are first used, so that `import ranks.search` does not load Numba. Files inside the package import
each other's modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranks.search.config import SearchConfig as SearchConfig
    from ranks.search.evaluation import Evaluation as Evaluation
    from ranks.search.evaluation import Evaluator as Evaluator
    from ranks.search.evaluation import Leaves as Leaves
    from ranks.search.evaluation import uniform_evaluator as uniform_evaluator
    from ranks.search.game import DRAWN as DRAWN
    from ranks.search.game import LEGAL_MOVES as LEGAL_MOVES
    from ranks.search.game import LOST as LOST
    from ranks.search.game import PLAY as PLAY
    from ranks.search.game import WON as WON
    from ranks.search.game import Game as Game
    from ranks.search.game import outcome_of as outcome_of
    from ranks.search.games.connect_four import CONNECT_FOUR as CONNECT_FOUR
    from ranks.search.games.tictactoe import TICTACTOE as TICTACTOE
    from ranks.search.gumbel import considered_visits as considered_visits
    from ranks.search.result import SearchResult as SearchResult
    from ranks.search.scheduler import SearchTimes as SearchTimes
    from ranks.search.search import Search as Search

HOMES = {
    "ranks.search.config": ("SearchConfig",),
    "ranks.search.evaluation": ("Evaluation", "Evaluator", "Leaves", "uniform_evaluator"),
    "ranks.search.game": ("DRAWN", "LEGAL_MOVES", "LOST", "PLAY", "WON", "Game", "outcome_of"),
    "ranks.search.games.connect_four": ("CONNECT_FOUR",),
    "ranks.search.games.tictactoe": ("TICTACTOE",),
    "ranks.search.gumbel": ("considered_visits",),
    "ranks.search.result": ("SearchResult",),
    "ranks.search.scheduler": ("SearchTimes",),
    "ranks.search.search": ("Search",),
}
PUBLIC = {name: home for home, names in HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'ranks.search' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*PUBLIC]
