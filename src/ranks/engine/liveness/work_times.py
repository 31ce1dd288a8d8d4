"""Where the host's time in training goes: own work, loading, sending, waiting for the other ranks.

The time is counted from one change of the account to the next. A change is a clock and three stores. It waits for
nothing, so these are the times of the host: on CUDA the host only queues work for the device. There the learner adds
the device's own times instead (`add`), which CUDA events measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from time import monotonic_ns


class Account(IntEnum):
    """What a rank's time goes to."""

    COMPUTE = 0
    """Its own work: passes, environments, games, and the user's own code in the loop."""
    DATA = 1
    """Loading the items of its batches."""
    SEND = 2
    """Starting the sum of the gradients, before the rank waits for its result."""
    WAIT = 3
    """Waiting in collectives, for the other ranks and for the link."""
    OTHER = 4
    """Other phases than training: evaluations, saves, the first iteration. Never compared between ranks."""


_COMPUTE, _OTHER = Account.COMPUTE.value, Account.OTHER.value


class WorkTimes:
    """The nanoseconds of each account since the process began."""

    __slots__ = ("_account", "_counts", "_host_counts", "_since_ns", "_trains", "total_ns")

    def __init__(self) -> None:
        self.total_ns = [0] * len(Account)
        self._account, self._since_ns = _OTHER, monotonic_ns()
        self._trains, self._host_counts, self._counts = False, True, False

    def switch(self, account: int) -> None:
        """From now on time goes to this account; outside of training, and where the device is timed, to OTHER."""
        now_ns = monotonic_ns()
        self.total_ns[self._account] += now_ns - self._since_ns
        self._since_ns = now_ns
        self._account = account if self._counts else _OTHER

    def train(self, trains: bool) -> None:
        """Whether the rank is in a training phase from now on."""
        self._trains, self._counts = trains, trains and self._host_counts
        self.switch(_COMPUTE)

    def count_host(self, counts: bool) -> None:
        """Whether the host's time counts from now on; it does not where the device's time is added later."""
        self._host_counts, self._counts = counts, counts and self._trains
        self.switch(_COMPUTE)

    def add(self, seconds: Mapping[Account, float]) -> None:
        """Add times of the device; they are dropped outside of training."""
        if self._trains:
            for account, time_s in seconds.items():
                self.total_ns[account] += int(1e9 * time_s)
