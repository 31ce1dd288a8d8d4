"""What one rank asks of all ranks: to stop, to save, to end, or to repeat an update."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

NAMES = ("sigterm", "sigint", "save", "time_up", "retry")


@dataclass(frozen=True)
class Requests:
    """The requests of one rank, or of all ranks together."""

    sigterm: bool = False
    sigint: bool = False
    save: bool = False
    """A checkpoint is due by the clock."""
    time_up: bool = False
    """The run has reached --max-time."""
    retry: bool = False
    """Out of memory: repeat this update in smaller micro-batches."""

    def numbers(self) -> list[float]:
        """1.0 or 0.0 for each request, in the order of `NAMES`; sums over ranks are read back by
        `of`."""
        flags = (self.sigterm, self.sigint, self.save, self.time_up, self.retry)
        return [float(flag) for flag in flags]

    @classmethod
    def of(cls, numbers: list[float]) -> Requests:
        """From the sums over ranks: a request that any rank makes holds for all."""
        return cls(*(number > 0 for number in numbers)) if any(numbers) else NOTHING

    def and_also(self, new: Requests) -> Requests:
        """Both together, without the retry, which concerns one update only."""
        return Requests(
            self.sigterm or new.sigterm, self.sigint or new.sigint, self.save or new.save, self.time_up or new.time_up
        )

    def without_save(self) -> Requests:
        """After a checkpoint was written."""
        return replace(self, save=False)

    @property
    def stop_signal(self) -> int:
        """The number of the signal to stop for, 0 without one."""
        return int(signal.SIGTERM if self.sigterm else signal.SIGINT if self.sigint else 0)


NOTHING = Requests()
