"""The metrics of a run as series over iterations, games and hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranks.engine.files.jsonl import number

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """Values in the rows that have them, all arrays of one length."""

    iterations: Floats
    games: Floats
    """All games that had ended by then."""
    hours: Floats
    """Of training, all sessions together."""
    values: Floats
    """One column for each name that was asked for."""

    def __len__(self) -> int:
        return len(self.iterations)


class MetricRows:
    """The rows of metrics.jsonl."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = [row for row in rows if number(row, "iteration") is not None]
        games = np.array([number(row, "rollout/games") or 0.0 for row in self.rows])
        self._axes = np.stack(
            [
                np.array([float(row["iteration"]) for row in self.rows]),
                games.cumsum(),
                np.array([(number(row, "time_s") or 0.0) / 3600 for row in self.rows]),
            ]
        )

    def __len__(self) -> int:
        return len(self.rows)

    def series(self, *names: str) -> Series:
        """The rows that have a finite number under each of these names."""
        found = [[number(row, name) for name in names] for row in self.rows]
        has = [index for index, values in enumerate(found) if None not in values]
        values = np.array([found[index] for index in has], np.float64).reshape(len(has), len(names))
        iterations, games, hours = self._axes[:, has]
        return Series(iterations, games, hours, values)

    def names(self, prefix: str) -> list[str]:
        """The metrics with this prefix that any row has, in the order of the rows."""
        return list(dict.fromkeys(name for row in self.rows for name in row if name.startswith(prefix)))

    def newest(self, name: str) -> float | None:
        """The last value of a metric."""
        return next((value for row in reversed(self.rows) if (value := number(row, name)) is not None), None)

    @property
    def games(self) -> int:
        """All games that have ended."""
        return int(self._axes[1][-1])

    @property
    def hours(self) -> float:
        """Of training."""
        return float(self._axes[2][-1])
