"""The loop of the watcher: look at the run, stop it where a limit is reached, end the machine where nothing is left to
do on it."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.engine.runs.folder import RunFolder
from ranks.renting.autodown.decision import Rules, Seen, decide
from ranks.renting.autodown.ending import Alarm, end_machine
from ranks.renting.autodown.providers import EndableMachine
from ranks.renting.autodown.run_state import read_state

POLL_S = 5.0


@dataclass
class Watcher:
    """Watches one run on one machine. `began`: Unix time from which the machine is paid."""

    folder: RunFolder
    rules: Rules
    machine: EndableMachine
    alarm: Alarm
    began: float
    poll_s: float = POLL_S
    _stopping_since: float | None = field(default=None, init=False)
    _down_since: float | None = field(default=None, init=False)
    _started: bool = field(default=False, init=False)

    def watch(self) -> NoReturn:
        """Until the machine has ended, and this process with it."""
        while True:
            seen = self._look()
            decision = decide(seen, self.rules)
            if decision.end_machine:
                end_machine(self.machine, decision.end_machine, self.alarm)
            if decision.stop_run:
                self._stop(decision.stop_run)
            time.sleep(self.poll_s)

    def _look(self) -> Seen:
        run, now = read_state(self.folder), time.time()
        self._started = self._started or run.alive or run.last_sign > self.began
        if run.alive:
            self._down_since = None
        elif self._down_since is None:
            self._down_since = now
            self._stopping_since = None
        down_s = 0.0 if self._down_since is None else now - self._down_since
        silent_s = max(0.0, now - max(run.last_sign, self.began))
        return Seen(run, self._started, now - self.began, silent_s, down_s)

    def _stop(self, reason: str) -> None:
        """Ask the run to save and end; kill it where it does not."""
        holder, say = self.folder.holder(), self.alarm.say
        first = self._stopping_since is None
        if first:
            self._stopping_since = time.time()
            say(f"stopping the run: {reason}")
        if holder is None:
            if first:
                say("the process that trains is not known: the machine is ended with it at the limit")
            return
        late = time.time() - (self._stopping_since or 0.0) >= self.rules.save_s
        if first or late:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(holder.pid, signal.SIGKILL if late else signal.SIGTERM)


def began_at(path: Path, machine: str, now: float) -> float:
    """When the watch of this machine began: a watcher that is started again counts on. Another machine that sees the
    same folder begins again."""
    with suppress(DamagedFile, OSError):
        found = read_object(path)
        began = found.get("began")
        if found.get("machine") == machine and isinstance(began, int | float) and math.isfinite(began) and began <= now:
            return float(began)
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    temporary.write_text(json.dumps({"machine": machine, "began": now}))
    os.replace(temporary, path)
    return now


def line_writer(show: Callable[[str], None]) -> Callable[[str], None]:
    """Adds the time to each line."""
    return lambda text: show(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC  {text}")
