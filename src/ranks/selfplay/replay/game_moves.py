"""The games of one part of the replay window: what is needed to replay them. The positions that
are learned from are in part.py. About 7 bytes a move and 16 a game.

Legend: N games, T moves of all games, one game after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranks.selfplay.games import Games

FOLDER = "replay"
"""The parts are in kept/replay/."""
Ending: TypeAlias = Literal["rules", "most plies", "resigned"]
ENDINGS: tuple[Ending, ...] = ("rules", "most plies", "resigned")


@dataclass(frozen=True)
class PlayedGame:
    """One finished game, as the replay window holds it."""

    slot: int
    number: int
    """Of the game in its slot, from 0."""
    iteration: int
    """In which it ended, counted from 1 as in metrics.jsonl."""
    moves: tuple[int, ...]
    weights: tuple[int, ...]
    """The weights that chose each move, as finished iterations: 0 is the untrained net."""
    values: tuple[float | None, ...]
    """The root's value after each move's search, for the side that moved; None where the search was not full."""
    outcome: int
    """For the player who moves first: 1 won, 0 drawn, -1 lost."""
    ending: Ending
    """By the rules, as a draw with the most plies, or because the side that moved last gave up."""

    @property
    def result(self) -> Literal["1-0", "0-1", "1/2-1/2"]:
        """As in PGN; 1-0: the player who moves first has won."""
        return "1-0" if self.outcome > 0 else "0-1" if self.outcome < 0 else "1/2-1/2"

    @property
    def weights_text(self) -> str:
        """The first and the last weights as 11-12, or as 12 where they did not change during the game."""
        first, last = self.weights[0], self.weights[-1]
        return str(last) if first == last else f"{first}-{last}"


@dataclass(frozen=True)
class GameMoves:
    """The games that ended in one iteration, as arrays of a kept file. Parts that an older version wrote lack them."""

    game_N: NDArray[np.int64]
    """Ids: slot * 2**32 + number in the slot."""
    plies_N: NDArray[np.int32]
    result_N: NDArray[np.int8]
    """For the player who moves first: 1 won, 0 drawn, -1 lost."""
    ending_N: NDArray[np.uint8]
    """The index in ENDINGS."""
    move_T: NDArray[np.uint16]
    iteration_T: NDArray[np.int32]
    """The iteration, from 0, whose weights chose the move."""
    is_position_T: NDArray[np.bool_]
    """Whether the search was full: these moves, in order, are the positions of the part."""

    @classmethod
    def of(cls, games: Games) -> GameMoves:
        """All games of an iteration."""
        records = games.records
        return cls(
            games.game_N,
            games.plies_N,
            games.outcome_N,
            np.select([games.truncated_N, games.resigned_N], [1, 2], 0).astype(np.uint8),
            records.move_P,
            records.iteration_P,
            records.full_P,
        )

    @classmethod
    def opened(cls, arrays: Mapping[str, NDArray[Any]]) -> GameMoves | None:
        """The games in the arrays of a part's file; None where an older version wrote it."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: arrays[name] for name in names}) if arrays.keys() >= {*names} else None

    def games(self, iteration: int, value_P: NDArray[np.float32]) -> Iterator[PlayedGame]:
        """Each game, by id. `iteration`: of the part, from 0; `value_P`: of the part."""
        end_N = np.cumsum(self.plies_N)
        value_T = np.full(len(self.move_T), np.nan)
        value_T[self.is_position_T] = value_P
        for n, end in enumerate(end_N.tolist()):
            line = slice(end - int(self.plies_N[n]), end)
            yield PlayedGame(
                slot=int(self.game_N[n] // 2**32),
                number=int(self.game_N[n] % 2**32),
                iteration=iteration + 1,
                moves=tuple(self.move_T[line].tolist()),
                weights=tuple(self.iteration_T[line].tolist()),
                values=tuple(None if value != value else value for value in value_T[line].tolist()),
                outcome=int(self.result_N[n]),
                ending=ENDINGS[self.ending_N[n]],
            )
