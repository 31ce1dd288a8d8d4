"""What all kinds of labels have in common.

Legend: N positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ranks.workloads.chess_value.games.positions import Found
from ranks.workloads.chess_value.labels.label import NO_RESULT, NO_SCORE, Labelled
from ranks.workloads.chess_value.players.net_player import OpenPlayer


class LabelledPart(NamedTuple):
    """Some positions of a cycle with their labels."""

    train: Labelled
    validation: Labelled
    cached: int
    """Positions whose labels were computed before."""

    @property
    def positions(self) -> int:
        """For training and validation together."""
        return len(self.train.boards_N13) + len(self.validation.boards_N13)


class Labeller(Protocol):
    """Gives positions their labels."""

    @property
    def identity(self) -> str | None:
        """What labels depend on besides the settings of the run: the engine's name and version."""
        ...

    def label(self, found: Found, parts: int, open_player: OpenPlayer) -> Iterator[LabelledPart]:
        """The positions in their order, cut into `parts`. Every rank calls it and gets the same.

        `open_player`: of the present net."""
        ...

    def close(self) -> None:
        """End all engines."""
        ...


def cut(found: Found, parts: int) -> Iterator[Found]:
    """Parts of almost equal size, in order; empty ones are left out."""
    for index in np.array_split(np.arange(found.count), parts):
        if len(index):
            yield found.take(index)


def labelled(found: Found, cp_N: NDArray[np.int16], cached: int) -> LabelledPart:
    """Split positions with their scores into those that train and those that validate."""

    def where(mask_N: NDArray[np.bool_]) -> Labelled:
        return Labelled(found.boards_N13[mask_N], cp_N[mask_N], found.result_N[mask_N], found.source_N[mask_N])

    return LabelledPart(where(~found.validates_N), where(found.validates_N), cached)


class OutcomeLabels:
    """The results of the games alone. Positions without one are left out."""

    identity = None

    def label(self, found: Found, parts: int, open_player: OpenPlayer) -> Iterator[LabelledPart]:
        """See `Labeller`."""
        with_result = found.take(np.flatnonzero(found.result_N != NO_RESULT))
        for part in cut(with_result, parts):
            yield labelled(part, np.full(part.count, NO_SCORE, np.int16), cached=0)

    def close(self) -> None:
        """Nothing is open."""
