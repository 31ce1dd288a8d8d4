"""For how long a machine has been paid. The wall clock does not count: a machine may start with a wrong one, which is
set later and jumps by hours."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ranks.engine.files.jsonl import number
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object

KEEP_S = 60.0
"""How often the time is written."""


def boot_clock_s() -> float:
    """Seconds since this machine was started; where the system counts them, those in which it was suspended too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def boot_id() -> str:
    """Another text after each start of the machine; empty where the system has none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


@dataclass
class PaidTime:
    """Counts from the first watch of a rented machine. A watcher that is started again counts on, from the file `path`.

    `machine`: the rental. `began`: the wall clock at the first watch. `first_sign`: the newest time of the run's files
    then.
    """

    path: Path
    machine: str
    began: float
    first_sign: float
    clock: Callable[[], float] = boot_clock_s
    boot: str = field(default_factory=boot_id)
    _before_s: float = field(default=0.0, init=False)
    _since_s: float = field(default=0.0, init=False)
    _kept_at_s: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        self._since_s = self.clock()
        with suppress(DamagedFile):
            found = read_object(self.path)
            began, first_sign = number(found, "began"), number(found, "first_sign")
            elapsed_s, clock_s = number(found, "elapsed_s"), number(found, "clock_s")
            if found.get("machine") != self.machine or elapsed_s is None or clock_s is None:
                return  # another machine that sees the same folder begins again
            if began is not None and first_sign is not None:
                self.began, self.first_sign = began, first_sign
            self._before_s = max(0.0, elapsed_s)
            if self.boot and found.get("boot") == self.boot and clock_s <= self._since_s:
                self._since_s = clock_s  # else the machine has started again, and how long that took is not known

    def elapsed_s(self) -> float:
        """Since the watch began."""
        return self._before_s + self.clock() - self._since_s

    def is_new(self, sign: float) -> bool:
        """Whether the run has written since the watch began. `sign`: the newest time of its files now."""
        return sign != self.first_sign and sign > self.began

    def keep(self) -> None:
        """Write the time once a minute. Raises OSError."""
        now_s = self.clock()
        if now_s - self._kept_at_s < KEEP_S:
            return
        self._kept_at_s = now_s
        kept = {"machine": self.machine, "began": self.began, "first_sign": self.first_sign}
        kept |= {"elapsed_s": self._before_s + now_s - self._since_s, "boot": self.boot, "clock_s": now_s}
        temporary = self.path.with_name(f"{self.path.name}.tmp-{os.getpid()}")
        temporary.write_text(json.dumps(kept))
        os.replace(temporary, self.path)
