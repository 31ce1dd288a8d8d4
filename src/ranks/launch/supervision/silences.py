"""How long a rank may show no progress before it is named, learnt from the run itself, phase by phase."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ranks.engine.liveness.beats import Beat
from ranks.engine.liveness.phases import FIRST_FACTOR, Phase

LEAST_S = 15.0
P99_FACTOR = 3.0
"""A rank is named after max(LEAST_S, P99_FACTOR times the 99th percentile of the silences in its phase)."""
REGULAR_FACTOR = 1.5
"""And never before this many times a silence that the phase has had twice: a slow step among thousands of quick ones
is not in the percentile, and it is legal if it comes back."""
LONG_S = 2.0
"""Shorter silences are only counted: three times as much is below LEAST_S."""
MOST_KEPT = 2000
KNOWN = 20
"""So many silences are a history of training, or of waiting for data."""
EACH_ITEM = (Phase.TRAIN, Phase.WAITING_FOR_DATA)
"""Phases that a rank enters again and again."""
ONCE = (Phase.EVALUATE, Phase.SAVE)
"""Phases that have a history once a rank has been through them."""

UNKNOWN_S: Mapping[Phase, float] = {
    Phase.START: 300.0,
    Phase.LOAD: 90.0,
    Phase.FIRST_ITERATION: 300.0,
    Phase.TRAIN: LEAST_S,
    Phase.EVALUATE: 90.0,
    Phase.SAVE: 90.0,
    Phase.FINISH: 90.0,
    Phase.LEFT: 90.0,
    Phase.WAITING_FOR_DATA: 90.0,
}
"""The limit of a phase that the run has not yet been through: data are prepared, kernels compiled."""


@dataclass
class PhaseHistory:
    """The silences of one phase. `count`: all of them; `long_s`: those above LONG_S."""

    count: int = 0
    passed: bool = False
    """Whether a rank has been through the phase."""
    long_s: list[float] = field(default_factory=list[float])

    def add(self, beats: int, silence_s: float) -> None:
        """`beats` signs of progress, of which one ended a silence of `silence_s`."""
        self.count += beats
        if silence_s >= LONG_S:
            self.long_s.append(silence_s)
            self.long_s.sort(reverse=True)
        if len(self.long_s) > MOST_KEPT:  # half as many, spread alike
            self.long_s, self.count = self.long_s[::2], self.count // 2

    @property
    def p99_s(self) -> float:
        """The 99th percentile of all silences; 0 where it is below LONG_S."""
        above = self.count - math.ceil(0.99 * self.count)
        return self.long_s[above] if above < len(self.long_s) else 0.0

    @property
    def regular_s(self) -> float:
        """The longest silence that came twice; 0 where none did."""
        return self.long_s[1] if len(self.long_s) > 1 else 0.0


class SilenceHistory:
    """The silences of all ranks of a run that ended with progress, over all its attempts."""

    def __init__(self) -> None:
        self._phases: defaultdict[Phase, PhaseHistory] = defaultdict(PhaseHistory)

    def add(self, phase: Phase, beats: int, silence_s: float) -> None:
        """A rank that was in this phase made progress."""
        self._phases[phase].add(beats, silence_s)

    def passed(self, row: Beat) -> None:
        """Notice the phases that a rank has been through; the rank says it, also where no look saw it there."""
        for phase in ONCE:
            if row.phase != phase and row.slowest_s(phase) > 0:
                self._phases[phase].passed = True

    def limit_s(self, phase: Phase) -> float:
        """Seconds without progress after which a rank in this phase is named."""
        history = self._phases[phase]
        least_s = LEAST_S if self._knows(phase) else UNKNOWN_S[phase]
        if phase == Phase.TRAIN and not self._knows(phase):  # the first iteration does the same work
            first_s = self._phases[Phase.FIRST_ITERATION].long_s
            least_s = max(least_s, FIRST_FACTOR * max(first_s, default=0.0))
        return max(least_s, P99_FACTOR * history.p99_s, REGULAR_FACTOR * history.regular_s)

    def _knows(self, phase: Phase) -> bool:
        history = self._phases[phase]
        return (phase in ONCE and history.passed) or (phase in EACH_ITEM and history.count >= KNOWN)
