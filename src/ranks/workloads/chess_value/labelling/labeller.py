"""What all kinds of labels have in common.

Legend: N positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ranks.workloads.chess_value.labels.label import NO_RESULT, NO_SCORE, Labelled
from ranks.workloads.chess_value.players.net_player import OpenPlayer
from ranks.workloads.chess_value.positions.sourced import SourcedPositions


class LabelledPart(NamedTuple):
    """Some positions of a cycle with their labels."""

    train: Labelled
    validation: Labelled
    cached: int = 0
    """Positions whose labels were computed before."""
    computed: int = 0
    """Positions that were searched."""
    seconds: float = 0.0
    """How long that took, on the slowest host. Labels may be computed while an earlier part trains."""

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

    def label(self, found: SourcedPositions, parts: int, open_player: OpenPlayer) -> Iterator[LabelledPart]:
        """The positions in their order, cut into `parts`. Every rank calls it and gets the same.

        `open_player`: of the present net."""
        ...

    def close(self) -> None:
        """End all engines."""
        ...


def cut(found: SourcedPositions, parts: int) -> Iterator[SourcedPositions]:
    """Parts of almost equal size, in order; empty ones are left out."""
    for index in np.array_split(np.arange(found.num_positions), parts):
        if len(index):
            yield found.take(index)


def unscored(found: SourcedPositions) -> NDArray[np.intp]:
    """The indices of positions whose source gives no score."""
    return np.flatnonzero(found.cp_N == NO_SCORE)


def labelled(found: SourcedPositions, cp_M: NDArray[np.int16]) -> LabelledPart:
    """The part of these positions. cp: int16[M], the scores of those that `unscored` names."""
    cp_N = found.cp_N.copy()
    cp_N[unscored(found)] = cp_M
    scored = SourcedPositions(found.boards_N13, cp_N, found.result_N, found.source_N, found.validates_N)
    return LabelledPart(*scored.split())


class OutcomeLabels:
    """What the sources say: the results of games, the scores of files. Positions without both are left out."""

    identity = None

    def label(self, found: SourcedPositions, parts: int, open_player: OpenPlayer) -> Iterator[LabelledPart]:
        """See `Labeller`."""
        known = found.take((found.result_N != NO_RESULT) | (found.cp_N != NO_SCORE))
        for part in cut(known, parts):
            yield LabelledPart(*part.split())

    def close(self) -> None:
        """Nothing is open."""
