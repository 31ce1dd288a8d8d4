"""Which games a match plays: opponents, openings and colours, as a function of a game's number."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from ranks.chess.match.net_rating import BEST, LADDER
from ranks.chess.match.openings import Opening, seeded_openings
from ranks.errors import UserError
from ranks.search.config import SearchConfig
from ranks.selfplay.config import SelfPlayConfig
from ranks.selfplay.search_settings import match_search

RUNGS: Mapping[str, float] = {word: LADDER[word] for word in ("random", "greedy", "minimax:2", "alphabeta:1")}
"""The fixed players with their Elo."""
TRAINING_SEED, EVALUATION_SEED = 16, 17
"""Of openings and random moves. `ranks evaluate` has others than training, where matches choose the best weights."""


@dataclass(frozen=True)
class MatchConfig:
    """How a match is played."""

    games: int
    """With all opponents together."""
    simulations: int
    """Of each move of the net; 0: the likeliest move, without search."""
    max_plies: int
    """A longer game is drawn."""
    search: SearchConfig
    """Of the net, without noise."""

    @classmethod
    def of(cls, games: int, simulations: int, max_plies: int, trained_with: SelfPlayConfig) -> MatchConfig:
        """A match of a net with the search of its training."""
        return cls(games, simulations, max_plies, match_search(trained_with, simulations))


@dataclass(frozen=True)
class EvaluationPlan:
    """Games 2p and 2p + 1 are a pair: one opening, first with white, then with black. The pairs go round the
    opponents, so that each has the same openings."""

    games: int
    """An even number."""
    opponents: tuple[str, ...]
    openings: tuple[Opening, ...]
    seed: int

    @classmethod
    def make(cls, games: int, seed: int, *, best: bool) -> EvaluationPlan:
        """`games` with all opponents together; an odd number plays one more. `best`: there are best weights to
        meet. Raises UserError where `games` is below 1."""
        if games < 1:
            raise UserError(f"{games} games of a match", "a match plays at least one pair", "give 2 or more")
        rungs = [*RUNGS]
        opponents = (*rungs[:2], *([BEST] if best else []), *rungs[2:])
        pairs = -(-games // 2)
        return cls(2 * pairs, opponents, openings(seed, -(-pairs // len(opponents))), seed)

    @property
    def without_games(self) -> tuple[str, ...]:
        """The opponents that the games do not suffice for."""
        return self.opponents[self.games // 2 :]

    def opponent(self, game: int) -> str:
        """Whom the net meets."""
        return self.opponents[game // 2 % len(self.opponents)]

    def opening(self, game: int) -> Opening:
        """How the game begins."""
        return self.openings[game // 2 // len(self.opponents)]

    def player_seed(self, game: int) -> int:
        """Of a fixed player's random choices."""
        return self.seed * 1_000_003 + game


@functools.lru_cache(maxsize=4)
def openings(seed: int, count: int) -> tuple[Opening, ...]:
    """The first lines of `seeded_openings`."""
    return tuple(itertools.islice(seeded_openings(seed), count))
