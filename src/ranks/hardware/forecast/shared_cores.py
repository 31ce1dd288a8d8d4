"""What the cores of a CPU machine do to its ranks, from `hardware/links/cores_probe.py`.

Ranks on cores of their own still share caches, memory and the processor's power, so all are slower than one alone. And
a core of a virtual machine becomes slow and fast again, each for itself, as other machines use the same processor: at
each collective the ranks wait for the slowest core, and a run is not as fast as the seconds that were recorded.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Z90 = 1.645
"""Nine of ten cases lie within so many standard deviations (normal distribution)."""


@dataclass(frozen=True)
class SharedCores:
    """The cores of a machine. By default they are equally fast at any time."""

    slower: float = 1.0
    """The time of equal work on two cores at once, relative to one core: its mean over both."""
    spread: float = 0.0
    """Standard deviation of two cores' times for equal work at the same time, relative to their mean."""
    drift: float = 0.0
    """Standard deviation of the times of equal work from one half second to another, relative to their mean."""

    def __post_init__(self) -> None:
        numbers = (self.slower, self.spread, self.drift)
        if not all(0 <= number < math.inf for number in numbers) or self.slower < 1:
            raise ValueError("slower is 1 or more, spread and drift are 0 or more")

    @classmethod
    def of(cls, files: Sequence[Path]) -> SharedCores:
        """From the files of some measurements. Raises OSError, KeyError, TypeError or ValueError."""
        found = [json.loads(path.read_text(encoding="utf-8")) for path in files]
        alone_s = [statistics.fmean(map(float, round_s)) for each in found for round_s in each["alone_s"]]
        pieces_s = [tuple(map(float, piece_s)) for each in found for piece_s in each["together_s"]]
        alone_mean_s = statistics.fmean(alone_s)
        if not pieces_s:
            return cls(drift=statistics.stdev(alone_s) / alone_mean_s)
        together_s = [statistics.fmean(piece_s) for piece_s in pieces_s]
        together_mean_s = statistics.fmean(together_s)
        relative = [math.sqrt(statistics.variance(p)) / statistics.fmean(p) for p in pieces_s]
        per_round = len(together_s) // len(alone_s)
        periods = [s / alone_mean_s for s in alone_s]
        periods += [
            statistics.fmean(together_s[i : i + per_round]) / together_mean_s
            for i in range(0, len(together_s), per_round)
        ]
        return cls(
            max(1.0, together_mean_s / alone_mean_s),
            math.sqrt(statistics.fmean(r * r for r in relative)),
            statistics.stdev(periods),
        )

    def slower_with(self, num_ranks: int) -> float:
        """How much slower the work of a rank is than it was alone. More than two ranks were not measured: as two."""
        return 1.0 if num_ranks == 1 else self.slower

    @property
    def uncertainty(self) -> float:
        """By which share a run is faster or slower than what was recorded, in nine cases of ten. A guess: a machine
        changes from minute to minute as much as from one half second to another."""
        return Z90 * self.drift


EQUAL_CORES = SharedCores()
"""Of a machine with GPUs, and where nothing was measured."""
