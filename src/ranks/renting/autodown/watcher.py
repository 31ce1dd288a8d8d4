"""The loop of the watcher: look at the run, stop it where a limit is reached, end the machine where nothing is left to
do on it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from ranks.engine.runs.folder import RunFolder
from ranks.renting.autodown.decision import Rules, Seen, decide
from ranks.renting.autodown.ending import Alarm, end_machine
from ranks.renting.autodown.paid_time import PaidTime
from ranks.renting.autodown.providers import EndableMachine
from ranks.renting.autodown.run_state import read_state

POLL_S = 5.0


@dataclass
class Watcher:
    """Watches one run on one machine. `paid`: for how long the machine has been paid. `now_s`: a clock that nobody
    sets; silence, stops and the time without a run are measured with it."""

    folder: RunFolder
    rules: Rules
    machine: EndableMachine
    alarm: Alarm
    paid: PaidTime
    poll_s: float = POLL_S
    now_s: Callable[[], float] = time.monotonic
    _stopping_since: float | None = field(default=None, init=False)
    _down_since: float | None = field(default=None, init=False)
    _started: bool = field(default=False, init=False)
    _sign: float | None = field(default=None, init=False)
    _sign_since: float = field(default=0.0, init=False)
    _unkept: bool = field(default=False, init=False)

    def watch(self) -> NoReturn:
        """Until the machine has ended, and this process with it."""
        while True:
            self._keep_time()
            seen = self._look()
            decision = decide(seen, self.rules)
            if decision.end_machine:
                end_machine(self.machine, decision.end_machine, self.alarm)
            if decision.stop_run:
                self._stop(decision.stop_run)
            time.sleep(self.poll_s)

    def _keep_time(self) -> None:
        """Write the time for a watcher that is started again. The watch goes on where that fails."""
        try:
            self.paid.keep()
        except OSError as error:
            if not self._unkept:
                self.alarm.say(
                    f"the time so far is not kept: {error}; a watcher that is started again counts too little"
                )
            self._unkept = True

    def _look(self) -> Seen:
        run, now_s = read_state(self.folder), self.now_s()
        self._started = self._started or run.alive or self.paid.is_new(run.last_sign)
        if run.last_sign != self._sign:
            self._sign, self._sign_since = run.last_sign, now_s
        if run.alive:
            self._down_since = None
        elif self._down_since is None:
            self._down_since = now_s
            self._stopping_since = None
        down_s = 0.0 if self._down_since is None else now_s - self._down_since
        stopping_s = None if self._stopping_since is None else now_s - self._stopping_since
        return Seen(run, self._started, self.paid.elapsed_s(), now_s - self._sign_since, down_s, stopping_s)

    def _stop(self, reason: str) -> None:
        """Ask the run to save and end; kill it where it does not."""
        holder, say = self.folder.holder(), self.alarm.say
        first = self._stopping_since is None
        if first:
            self._stopping_since = self.now_s()
            say(f"stopping the run: {reason}")
        if holder is None or not self.folder.is_held_by(holder):
            if first:
                who = "the process that trains is not known"
                if holder is not None:
                    who = f"process {holder.pid} on {holder.host}, which started the run, is not found here"
                say(f"{who}: it gets no signal, and the machine is ended with it at the limit")
            return
        late = not first and self.now_s() - (self._stopping_since or 0.0) >= self.rules.save_s
        if first or late:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(holder.pid, signal.SIGKILL if late else signal.SIGTERM)


def line_writer(show: Callable[[str], None]) -> Callable[[str], None]:
    """Adds the time to each line."""
    return lambda text: show(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC  {text}")
