"""The games that ended in one iteration, from all ranks.

Legend: N games, P positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranks.selfplay.records import SHARE_ONE, Records

OPENING_PLIES = 8
"""The first moves of a game, by which openings are counted."""
NO_KIND = -1


@dataclass(frozen=True)
class EndedGame:
    """How a game ended."""

    game: int
    plies: int
    outcome: int
    """For the player who moves first."""
    truncated: bool
    resigned: bool
    draw_kind: int
    """The index in `Game.draw_kinds` of a draw by the rules, else NO_KIND."""


@dataclass(frozen=True)
class Games:
    """Finished games, ordered by id; every rank holds the same ones."""

    iteration: int
    """The one in which they ended."""
    game_N: NDArray[np.int64]
    """Ids: slot * 2**32 + number in the slot."""
    plies_N: NDArray[np.int32]
    outcome_N: NDArray[np.int8]
    """For the player who moves first: 1 won, 0 drawn, -1 lost."""
    truncated_N: NDArray[np.bool_]
    """Whether the game ended as a draw because it had the most plies."""
    resigned_N: NDArray[np.bool_]
    """Whether the side that moved last gave up."""
    draw_kind_N: NDArray[np.int8]
    """The index in `draw_kinds` of a draw by the rules; -1 for other games."""
    draw_kinds: tuple[str, ...]
    """`Game.draw_kinds`."""
    records: Records
    """All moves of all games, ordered by game and ply."""

    def __len__(self) -> int:
        return len(self.game_N)

    def outcome_P(self) -> NDArray[np.int8]:
        """The outcome of each position's game, for the side to move there."""
        outcome_P = np.repeat(self.outcome_N, self.plies_N)
        return np.where(self.records.ply_P % 2 == 0, outcome_P, -outcome_P).astype(np.int8)

    def moves(self, index: int) -> list[int]:
        """The moves of a game, by its index."""
        end = int(self.plies_N[: index + 1].sum())
        return self.records.move_P[end - int(self.plies_N[index]) : end].tolist()

    def results(self) -> dict[str, float]:
        """Metrics that depend on the moves alone: the number of games and positions, mean length, shares of
        results for the player who moves first and of the kinds of draws, distinct openings."""
        count = max(len(self), 1)
        kinds = {
            f"drawn/{name.replace(' ', '_')}": float((self.draw_kind_N == kind).sum()) / count
            for kind, name in enumerate(self.draw_kinds)
        }
        return {
            "games": float(len(self)),
            "positions": float(len(self.records)),
            "mean_length": float(self.plies_N.sum()) / count,
            "first_player_won": float((self.outcome_N > 0).sum()) / count,
            "drawn": float((self.outcome_N == 0).sum()) / count,
            "second_player_won": float((self.outcome_N < 0).sum()) / count,
            "resigned": float(self.resigned_N.sum()) / count,
            "truncated": float(self.truncated_N.sum()) / count,
            **kinds,
            "distinct_openings": float(self.distinct_openings()),
        }

    def distinct_openings(self) -> int:
        """How many different lines of OPENING_PLIES first moves the games have; a shorter game counts whole."""
        records = self.records
        in_opening_P = records.ply_P < OPENING_PLIES
        of_N = np.searchsorted(self.game_N, records.game_P[in_opening_P])
        line_NT = np.full((len(self), OPENING_PLIES), -1, np.int32)
        line_NT[of_N, records.ply_P[in_opening_P]] = records.move_P[in_opening_P]
        return len(np.unique(line_NT, axis=0))

    def search_statistics(self) -> dict[str, float]:
        """Means over the positions with a full search: the entropy of the policy target, and
        KL(target || net's policy), both in nats. With puct the net's policy has the root's noise mixed in."""
        records = self.records
        full_P = records.full_P
        if not full_P.any():
            return {}
        share_E = records.share_E.astype(np.float64) / SHARE_ONE
        term_E = -share_E * np.log(np.where(share_E > 0, share_E, 1.0))
        sums = np.concatenate([np.zeros(1), term_E.cumsum()])
        end_P = records.num_moves_P.cumsum(dtype=np.int64)
        entropy_P = sums[end_P] - sums[end_P - records.num_moves_P]
        return {
            "target_entropy": float(entropy_P[full_P].mean()),
            "policy_kl": float(records.kl_P[full_P].mean(dtype=np.float64)),
        }

    def false_resignations(self, resign_value: float, is_checked_N: NDArray[np.bool_]) -> dict[str, float]:
        """Of the games that were checked, in which nobody may resign, and in which a side would have resigned: the
        share that this side did not lose. Games that were cut have no result. Empty where there is none."""
        records = self.records
        is_checked_P = np.repeat(is_checked_N & (self.truncated_N == 0), self.plies_N)
        rows = np.flatnonzero(is_checked_P & records.full_P & (records.value_P <= -resign_value))
        _, first = np.unique(records.game_P[rows], return_index=True)
        if not len(first):
            return {}
        return {"false_resignation": float((self.outcome_P()[rows[first]] > -1).mean())}


def ended_arrays(ended: Sequence[EndedGame]) -> dict[str, NDArray[np.int64]]:
    """The ended games as arrays, ordered by id."""
    ordered = sorted(ended, key=lambda game: game.game)
    columns = {
        "game_N": [game.game for game in ordered],
        "plies_N": [game.plies for game in ordered],
        "outcome_N": [game.outcome for game in ordered],
        "truncated_N": [int(game.truncated) for game in ordered],
        "resigned_N": [int(game.resigned) for game in ordered],
        "draw_kind_N": [game.draw_kind for game in ordered],
    }
    return {name: np.array(column, np.int64) for name, column in columns.items()}
