"""The phases of a rank, and how long each may take without a sign of progress."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

SLOWEST_FACTOR = 5.0
"""A limit is never below this many times the longest silence that the run itself has had in the phase (as in NVIDIA's
nvidia-resiliency-ext)."""

FIRST_FACTOR = 2.0
"""The limit of a training step is never below this many times the longest silence of the first iteration, which does
the same work."""

GRACE_FACTOR = 2.0
"""A stop waits at least this many times the longest silence that the run itself has had in the phase."""


class Phase(IntEnum):
    """What a rank works on."""

    START = 0
    """Imports, data, model, meeting the other ranks, until `Run.open`."""
    LOAD = 1
    """`Run.open`: the first checkpoint is written or the newest one loaded, until the first iteration."""
    FIRST_ITERATION = 2
    """The first iteration of a session, which compiles kernels and allocates memory."""
    TRAIN = 3
    EVALUATE = 4
    SAVE = 5
    FINISH = 6
    """`Run.finish`: the last save and the export, and what the program does after it."""
    LEFT = 7
    """The rank has left the others in good order and may end."""
    WAITING_FOR_DATA = 8
    """Workers of background loading have not yet gathered the next batch. The rank itself gives up when a worker
    hangs."""

    @property
    def words(self) -> str:
        """Its name in a sentence."""
        return self.name.lower().replace("_", " ")


ALLOWANCE: Mapping[Phase, float] = {
    Phase.START: 12.0,
    Phase.LOAD: 6.0,
    Phase.FIRST_ITERATION: 6.0,
    Phase.TRAIN: 1.0,
    Phase.EVALUATE: 6.0,
    Phase.SAVE: 6.0,
    Phase.FINISH: 6.0,
    Phase.LEFT: 6.0,
    Phase.WAITING_FOR_DATA: 2.0,
}
"""The limit of a phase as a multiple of `--hang-timeout`."""

MOST = max(ALLOWANCE.values())
"""No limit grows above this multiple of `--hang-timeout`, however slow the run was before. A start has it at once."""


def limit_s(phase: Phase, hang_timeout_s: float, slowest_s: float, first_s: float = 0.0) -> float:
    """Seconds without progress after which a rank in this phase counts as hanging.

    `slowest_s`: the longest silence of any rank in this phase so far. `first_s`: in the first iteration.
    """
    measured_s = max(SLOWEST_FACTOR * slowest_s, FIRST_FACTOR * first_s if phase == Phase.TRAIN else 0.0)
    return max(ALLOWANCE[phase] * hang_timeout_s, min(measured_s, MOST * hang_timeout_s))
