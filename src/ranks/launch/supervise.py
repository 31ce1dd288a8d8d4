"""Start the ranks of one machine, watch them, start all of them again when one is lost, pass a stop on to them.

    start all -> watch -> all ended 0              -> 0
                       -> stopped by a signal      -> 130 / 143, after the ranks have stopped
                       -> a rank raised            -> the others are killed; 1, 2 (bad input) or 3 (gave up)
                       -> a rank was killed        -> the others are killed; start all again, while there is progress

A script that knows nothing of us (`restart_always`) is started again after any failure, so many times.

One loop in the main thread sleeps until a signal, output or the end of a rank (SIGCHLD) wakes it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranks.launch.failure import EXIT_CODES, Failure, of_ended, signal_name
from ranks.launch.logs import LogFolder
from ranks.launch.output import Show
from ranks.launch.process import RankProcess
from ranks.launch.signals import SignalPipe
from ranks.launch.sweeper import Sweeper, become_subreaper

TICK_S = 1.0
"""Chores between events: the log folder, output held back."""
CAUSE_S = 2.0
"""How long a lost connection waits for the failure that caused it."""
UNSAVED_S = 10.0
"""How long the others may go on after a signal ended a rank that could not save: nothing can be saved together then."""
LONE_STOP_S = 5.0
"""When one rank ended by a signal that the launcher did not send, the others get it after this time."""


@dataclass(frozen=True)
class Job:
    """What to run, one process per entry of `devices`."""

    argv: tuple[str, ...]
    devices: tuple[str, ...]
    env: Mapping[str, str]
    """The environment of every rank, complete but for what tells the ranks apart and for the rendezvous."""
    rendezvous: Callable[[int, Path], AbstractContextManager[Mapping[str, str]]]
    """(attempt, private folder) -> variables by which the ranks of this attempt meet, valid while it is entered."""
    logs: LogFolder | None = None
    shown: frozenset[int] = frozenset({0})
    """Ranks whose output goes through `show`."""
    pass_fds: tuple[int, ...] = ()
    max_restarts: int = 3
    """Restarts in a row without progress."""
    restart_always: bool = False
    """Start again after any failure, as for a script that says nothing about its failures."""


@dataclass
class Attempt:
    """The ranks of one start and what is known of their end."""

    ranks: list[RankProcess]
    number: int
    peer_since_s: float | None = None
    failures: dict[int, Failure] = field(default_factory=lambda: dict[int, Failure]())

    @property
    def running(self) -> list[RankProcess]:
        return [rank for rank in self.ranks if rank.code is None]


class Supervisor:
    """`run()` returns the exit code; nothing that it started is left then. Main thread only.

    `say` prints one line, `show` passes output of the ranks on, `progress` is any number that grows when work was
    kept (the newest checkpoint), `record` gets a fact of each failure and restart.
    """

    def __init__(
        self,
        job: Job,
        *,
        say: Callable[[str], None],
        show: Show,
        progress: Callable[[], int] = lambda: 0,
        record: Callable[[dict[str, Any]], None] = lambda fact: None,
    ) -> None:
        self.job, self.say, self.show, self.progress, self.record = job, say, show, progress, record
        self.stop_signal = 0
        """The signal by which the run is being stopped: SIGTERM or SIGINT, 0 for none."""
        self.kill_now = False
        self.started_ns = time.monotonic_ns()
        self.ticked_s = time.monotonic()

    def run(self) -> int:
        become_subreaper()
        with contextlib.ExitStack() as stack:
            self.signals = stack.enter_context(SignalPipe())
            self.sweeper = stack.enter_context(Sweeper())
            self.private = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ranks-")))
            self.sweeper.tell(f"d {self.private}")
            if self.job.logs is not None:
                self.sweeper.tell(f"d {self.job.logs.staged}")
                stack.callback(self.job.logs.close)
            self.selector = stack.enter_context(selectors.DefaultSelector())
            self.selector.register(self.signals.reader, selectors.EVENT_READ)
            return self._attempts()

    def _attempts(self) -> int:
        number, without_progress, best = 0, 0, self._progress()
        while True:
            result = self._attempt(number)
            if isinstance(result, int):
                return result
            self._record(
                "failed", attempt=number, rank=result.rank, kind=result.kind, type=result.type, where=result.where
            )
            restarts = self.job.restart_always or result.kind in ("signal", "peer")
            if self.stop_signal or not restarts:
                self._explain(result)
                return EXIT_CODES.get(result.kind, 1)
            now = self._progress()
            without_progress = 1 if now > best else without_progress + 1
            best = max(best, now)
            self._explain(result)
            if not self.job.max_restarts:
                return 1
            if without_progress > self.job.max_restarts:
                saved = "" if self.job.restart_always else " without progress"  # a script's progress is unknown
                self.say(f"gave up: {without_progress} starts in a row failed{saved}")
                self._record("gave_up", attempts=number + 1)
                return EXIT_CODES["gave_up"]
            number += 1
            self.say(f"starting all {len(self.job.devices)} ranks again (attempt {number + 1})")
            self._record("restarted", attempt=number, after=result.kind, rank=result.rank)

    def _attempt(self, number: int) -> int | Failure:
        """One start of all ranks up to its end: an exit code, or the failure that ended it."""
        result: int | Failure | None = None
        with self.job.rendezvous(number, self.private) as meeting:
            attempt = Attempt([], number)
            try:
                for rank in range(len(self.job.devices)):
                    attempt.ranks.append(self._start(rank, number, meeting))
                while result is None:
                    self._wait()
                    self._pass_signals_on(attempt)
                    result = self._judge(attempt)
                return result
            finally:
                for process in attempt.ranks:
                    process.kill()
                for process in attempt.ranks:
                    for output in process.outputs:
                        with contextlib.suppress(KeyError):
                            self.selector.unregister(output.pipe)
                    process.end(failed=isinstance(result, Failure))
                    self.sweeper.tell(f"-{process.pid}")

    def _start(self, rank: int, number: int, meeting: Mapping[str, str]) -> RankProcess:
        world_size = str(len(self.job.devices))
        error_file = self.private / f"error-{number}-{rank}.json"
        env = {
            **self.job.env,
            **meeting,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": world_size,
            "LOCAL_WORLD_SIZE": world_size,
            "RANKS_DEVICE": self.job.devices[rank],
            "RANKS_ATTEMPT": str(number),
            "RANKS_STARTED_NS": str(self.started_ns),
            "RANKS_ERROR_FILE": str(error_file),
            "RANKS_PARENT": str(os.getpid()),
        }
        process = RankProcess(
            rank,
            self.job.argv,
            env,
            error_file=error_file,
            log=self.job.logs.of_rank(rank) if self.job.logs is not None else None,
            show=self.show if rank in self.job.shown else None,
            pass_fds=self.job.pass_fds,
        )
        self.sweeper.tell(f"+{process.pid}")
        for output in process.outputs:
            self.selector.register(output.pipe, selectors.EVENT_READ, output)
        return process

    def _wait(self) -> None:
        """Sleep until something happens, at most a tick; read what the ranks printed."""
        events = self.selector.select(TICK_S)
        now_s = time.monotonic()
        for key, _ in events:
            if key.data is not None and not key.data.pump(now_s):
                self.selector.unregister(key.fileobj)
        if now_s - self.ticked_s >= TICK_S:
            self.ticked_s = now_s
            for key in self.selector.get_map().values():
                if key.data is not None:
                    key.data.tick(now_s)
            if self.job.logs is not None:
                self.job.logs.settle()

    def _pass_signals_on(self, attempt: Attempt) -> None:
        for signum in self.signals.read():
            if self.stop_signal:
                if signum == signal.SIGINT:
                    self.kill_now = True
            else:
                again = "; Ctrl-C again ends them at once" if signum == signal.SIGINT else ""
                self.say(f"{signal_name(signum)}: passed on to the ranks, waiting for them to stop{again}")
                self._stop(attempt, signal.SIGINT if signum == signal.SIGINT else signal.SIGTERM)

    def _stop(self, attempt: Attempt, signum: int) -> None:
        self.stop_signal = signum
        for process in attempt.running:
            process.send(signum)

    def _judge(self, attempt: Attempt) -> int | Failure | None:
        """None while there is something to wait for."""
        now_s = time.monotonic()
        for process in attempt.ranks:
            if process.poll() and process.rank not in attempt.failures and not self._ended_well(process):
                failure = of_ended(process.rank, process.code or 0, process.error_file, process.tail())
                attempt.failures[process.rank] = failure
        if self.kill_now:
            self.say("killed; what was saved before is kept")
            return 128 + signal.SIGINT
        stopped = [p for p in attempt.ranks if p.code is not None and self._stopped_by(p)]
        causes = [f for f in attempt.failures.values() if f.kind != "peer"]
        if causes:
            return min(causes, key=lambda f: (f.kind != "signal", f.time_s))
        if attempt.failures and not stopped:
            attempt.peer_since_s = attempt.peer_since_s or now_s
            if attempt.running and now_s - attempt.peer_since_s < CAUSE_S:
                return None
            return min(attempt.failures.values(), key=lambda f: f.time_s)
        return self._ending(attempt, stopped, now_s)

    def _ending(self, attempt: Attempt, stopped: list[RankProcess], now_s: float) -> int | None:
        """The exit code where all ranks ended without a failure of their own; hurry those that wait in vain."""
        if stopped and attempt.running:
            since_s = now_s - min(p.ended_s for p in stopped)
            if not self.stop_signal and since_s > LONE_STOP_S:
                self._stop(attempt, self._stopped_by(stopped[0]))
            unsaved = any((p.code or 0) < 0 for p in stopped) or bool(attempt.failures)
            if self.stop_signal and unsaved and since_s > LONE_STOP_S + UNSAVED_S:
                return 128 + self.stop_signal
        if attempt.running:
            return None
        return 128 + (self.stop_signal or self._stopped_by(stopped[0])) if stopped else 0

    def _ended_well(self, process: RankProcess) -> bool:
        return process.code == 0 or bool(self._stopped_by(process))

    def _stopped_by(self, process: RankProcess) -> int:
        """The signal that a rank was stopped by, whether it could save (128 + n) or not yet (-n); 0 if it was not."""
        if self.job.restart_always and not self.stop_signal:
            return 0
        code = process.code or 0
        return next((int(s) for s in (signal.SIGTERM, signal.SIGINT) if code in (128 + s, -s)), 0)

    def _explain(self, failure: Failure) -> None:
        """The cause, once; the full traceback stands in the log where there is one to keep."""
        logs = self.job.logs
        logged = logs is not None and logs.settle()
        for line in failure.lines(full=not logged):
            self.say(line)
        if logs is not None and logged and failure.kind != "user_error":
            self.say(f"  log: {logs.of_rank(failure.rank)}")

    def _progress(self) -> int:
        try:
            return self.progress()
        except OSError:
            return 0

    def _record(self, event: str, **facts: Any) -> None:
        try:
            self.record({"event": event, "time_s": time.time(), **facts})
        except OSError as problem:
            self.say(f"could not record '{event}': {problem}")
