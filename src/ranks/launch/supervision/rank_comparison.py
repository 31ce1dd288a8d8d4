"""Compares the ranks of one attempt with each other: by their own times, and by what they use."""

from __future__ import annotations

from collections.abc import Mapping

from ranks.engine.liveness.beats import Beat
from ranks.launch.supervision.notice import Notice
from ranks.launch.supervision.stragglers import Stragglers
from ranks.launch.supervision.uneven import UnevenGpus
from ranks.launch.telemetry.sampler import Telemetry
from ranks.launch.telemetry.usage import hint


class RankComparison:
    """Follows the rows and the samples of an attempt."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._stragglers = Stragglers(lambda rank: hint(rank, telemetry.latest))
        self._uneven = UnevenGpus()

    def look(self, rows: Mapping[int, Beat], now_s: float) -> list[Notice]:
        """What is new. `rows`: of the running ranks. Call it about once a second."""
        found = self._stragglers.look(rows, now_s)
        telemetry, stragglers = self._telemetry, self._stragglers
        uneven = self._uneven.look(
            telemetry.samples, telemetry.latest, rows, stragglers.newest, stragglers.named.keys()
        )
        return [*found, *([uneven] if uneven is not None else [])]
