"""Start the ranks of one machine, watch them, restart all of them when one is lost, pass stop signals on.

    start all -> watch -> all ended with 0         -> 0
                       -> stopped by a signal      -> 130 / 143, after the ranks have stopped
                       -> a rank raised            -> the others are killed; 1, 2 (bad input) or 3 (gave up)
                       -> a rank was killed        -> the others are killed; start all again, while there is progress

A torchrun script (`restart_always`) is started again after any failure, at most `max_restarts` times. Two starts that
fail at once with the same error end it earlier.

One loop in the main thread sleeps until a signal, output or the end of a rank (SIGCHLD) wakes it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ranks.launch.failure import EXIT_CODES, Failure, explain_exit, signal_name
from ranks.launch.logs import LogFolder
from ranks.launch.orphan_reaper import OrphanReaper, become_subreaper
from ranks.launch.output import Show
from ranks.launch.private_folder import private_folder
from ranks.launch.process import RankProcess
from ranks.launch.signals import SignalPipe
from ranks.launch.start import starter

TICK_S = 1.0
"""How often to look after the log folder and held-back output."""
CAUSE_S = 2.0
"""How long to wait for the cause after a rank lost a connection."""
UNSAVED_S = 10.0
"""How long the other ranks may run on after a signal ended one that had not saved: a save needs all ranks."""
LONE_STOP_S = 5.0
"""After one rank was stopped by a signal that the launcher did not send, the others get the signal this much later."""
START_S = 60.0
"""A failure within this time of a start counts as a failure at the start."""


@dataclass(frozen=True)
class LaunchConfig:
    """What to run: `argv`, as one process per entry of `devices`."""

    argv: tuple[str, ...]
    devices: tuple[str, ...]
    env: Mapping[str, str]
    """The environment variables that all ranks share; those of one rank and of the rendezvous are added."""
    rendezvous: Callable[[int, Path], AbstractContextManager[Mapping[str, str]]]
    """(attempt, private folder) -> the variables by which the ranks of this attempt meet, valid while entered."""
    own_env: tuple[Mapping[str, str], ...] = ()
    """Variables of one rank each that take precedence; empty without any."""
    logs: LogFolder | None = None
    shown: frozenset[int] = frozenset({0})
    """Ranks whose output goes through `show`."""
    pass_fds: tuple[int, ...] = ()
    max_restarts: int = 3
    """Restarts in a row without progress."""
    restart_always: bool = False
    """Start again after any failure. For scripts whose progress and kinds of failure are unknown."""
    resume_line: Callable[[], str] | None = None
    """A line that says from where the same command resumes; shown after a failure that ends the run."""


@dataclass
class Attempt:
    """The ranks of one start and their failures."""

    ranks: list[RankProcess]
    number: int
    started_s: float
    peer_since_s: float | None = None
    failures: dict[int, Failure] = field(default_factory=lambda: dict[int, Failure]())

    @property
    def running(self) -> list[RankProcess]:
        return [rank for rank in self.ranks if rank.code is None]


class Supervisor:
    """Runs the ranks to their end. `run()` returns the exit code, and no process is left then. Main thread only.

    `say` prints one line. `show` gets the output of the ranks. `progress` returns a number that grows with each saved
    checkpoint. `record` gets a dict for each failure and restart.
    """

    def __init__(
        self,
        config: LaunchConfig,
        *,
        say: Callable[[str], None],
        show: Show,
        progress: Callable[[], int] = lambda: 0,
        record: Callable[[dict[str, Any]], None] = lambda fact: None,
    ) -> None:
        self.config, self.say, self.show, self.progress, self.record = config, say, show, progress, record
        self.stop_signal = 0
        """The signal by which the run is being stopped: SIGTERM or SIGINT, 0 for none."""
        self.kill_now = False
        self.started_ns = time.monotonic_ns()
        self.ticked_s = time.monotonic()

    def run(self) -> int:
        become_subreaper()
        with contextlib.ExitStack() as stack:
            self.signals = stack.enter_context(SignalPipe())
            self.reaper = stack.enter_context(OrphanReaper())
            self.private = stack.enter_context(private_folder())
            self.reaper.add_folder(self.private)
            if self.config.logs is not None:
                self.reaper.add_folder(self.config.logs.staging)
                stack.callback(self.config.logs.close)
            self.selector = stack.enter_context(selectors.DefaultSelector())
            self.selector.register(self.signals.reader, selectors.EVENT_READ)
            self.start = stack.enter_context(starter(self.config.argv, self.config.env, self.config.pass_fds))
            return self._attempts()

    def _attempts(self) -> int:
        number, without_progress, best = 0, 0, self._progress()
        previous: Failure | None = None
        """The failure of the previous attempt, if it failed at the start."""
        while True:
            result = self._attempt(number)
            if isinstance(result, int):
                return result
            self._record(
                "failed", attempt=number, rank=result.rank, kind=result.kind, type=result.type, where=result.where
            )
            restarts = self.config.restart_always or result.kind in ("signal", "peer")
            if self.stop_signal or not restarts:
                self._explain(result)
                self._say_where_to_resume(result)
                return EXIT_CODES.get(result.kind, 1)
            now = self._progress()
            without_progress = 1 if now > best else without_progress + 1
            best = max(best, now)
            self._explain(result)
            if not self.config.max_restarts:
                self._say_where_to_resume(result)
                return 1
            reason = self._reason_to_give_up(result, previous, without_progress)
            if reason:
                self.say(f"gave up: {reason}")
                self._say_where_to_resume(result)
                self._record("gave_up", attempts=number + 1)
                return EXIT_CODES["gave_up"]
            previous = result if result.at_start else None
            number += 1
            self.say(f"starting all {len(self.config.devices)} ranks again (attempt {number + 1})")
            self._record("restarted", attempt=number, after=result.kind, rank=result.rank)

    def _reason_to_give_up(self, failure: Failure, previous: Failure | None, without_progress: int) -> str:
        """Why not to start again; empty to start again."""
        if without_progress > self.config.max_restarts:
            saved = "" if self.config.restart_always else " without progress"  # a script's progress is unknown
            return f"{without_progress} starts in a row failed{saved}"
        if self.config.restart_always and previous is not None and failure.at_start and failure.same_cause(previous):
            return "2 starts in a row failed at once with the same error"
        return ""

    def _attempt(self, number: int) -> int | Failure:
        """Start all ranks and watch them to their end: an exit code, or the failure that ended the attempt."""
        result: int | Failure | None = None
        with self.config.rendezvous(number, self.private) as store_variables:
            attempt = Attempt([], number, time.monotonic())
            try:
                for rank in range(len(self.config.devices)):
                    attempt.ranks.append(self._start(rank, number, store_variables))
                while result is None:
                    self._wait()
                    self._forward_signals(attempt)
                    result = self._result(attempt)
                if isinstance(result, Failure):
                    result = replace(result, at_start=time.monotonic() - attempt.started_s < START_S)
                return result
            finally:
                for process in attempt.ranks:
                    process.kill()
                for process in attempt.ranks:
                    for output in process.outputs:
                        with contextlib.suppress(KeyError):
                            self.selector.unregister(output.pipe)
                    process.end(failed=isinstance(result, Failure))
                    self.reaper.remove_group(process.pid)

    def _start(self, rank: int, number: int, store_variables: Mapping[str, str]) -> RankProcess:
        world_size = str(len(self.config.devices))
        error_file = self.private / f"error-{number}-{rank}.json"
        env = {
            **self.config.env,
            **store_variables,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": world_size,
            "LOCAL_WORLD_SIZE": world_size,
            "RANKS_DEVICE": self.config.devices[rank],
            "RANKS_ATTEMPT": str(number),
            "RANKS_STARTED_NS": str(self.started_ns),
            "RANKS_ERROR_FILE": str(error_file),
            "RANKS_PARENT": str(os.getpid()),
            **(self.config.own_env[rank] if self.config.own_env else {}),
        }
        process = RankProcess(
            rank,
            self.start,
            env,
            error_file=error_file,
            log=self.config.logs.of_rank(rank) if self.config.logs is not None else None,
            show=self.show if rank in self.config.shown else None,
        )
        self.reaper.add_group(process.pid)
        for output in process.outputs:
            self.selector.register(output.pipe, selectors.EVENT_READ, output)
        return process

    def _wait(self) -> None:
        """Sleep until a signal, output or the end of a rank, at most a tick; read the output of the ranks."""
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
            if self.config.logs is not None:
                self.config.logs.move_to_run()

    def _forward_signals(self, attempt: Attempt) -> None:
        for signum in self.signals.read():
            if self.stop_signal:
                if signum == signal.SIGINT:
                    self.kill_now = True
            else:
                again = "; press Ctrl-C again to kill them" if signum == signal.SIGINT else ""
                self.say(f"{signal_name(signum)}: passed on to the ranks, waiting for them to stop{again}")
                self._stop(attempt, signal.SIGINT if signum == signal.SIGINT else signal.SIGTERM)

    def _stop(self, attempt: Attempt, signum: int) -> None:
        self.stop_signal = signum
        for process in attempt.running:
            process.send(signum)

    def _result(self, attempt: Attempt) -> int | Failure | None:
        """The exit code or the failure of an attempt; None while the ranks run."""
        now_s = time.monotonic()
        for process in attempt.ranks:
            if process.poll() and process.rank not in attempt.failures and not self._ended_well(process):
                failure = explain_exit(process.rank, process.code or 0, process.error_file, process.tail())
                attempt.failures[process.rank] = failure
        if self.kill_now:
            self.say("killed; the saved checkpoints are kept")
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
        return self._clean_exit(attempt, stopped, now_s)

    def _clean_exit(self, attempt: Attempt, stopped: list[RankProcess], now_s: float) -> int | None:
        """The exit code once all ranks have ended without a failure; None before.

        Where one rank was stopped by a signal, the others get the same signal. They are not waited for if a rank ended
        without saving, because a save needs all ranks.
        """
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
        """The signal that stopped a rank, after a save (exit code 128 + n) or without one (-n); 0 for another end."""
        if self.config.restart_always and not self.stop_signal:
            return 0
        code = process.code or 0
        return next((int(s) for s in (signal.SIGTERM, signal.SIGINT) if code in (128 + s, -s)), 0)

    def _explain(self, failure: Failure) -> None:
        """Print the cause of a failure once. The traceback is short where a log holds the full one."""
        logs = self.config.logs
        logged = logs is not None and logs.move_to_run()
        for line in failure.lines(full=not logged):
            self.say(line)
        if logs is not None and logged and failure.kind != "user_error":
            self.say(f"  log: {logs.of_rank(failure.rank)}")

    def _say_where_to_resume(self, failure: Failure) -> None:
        if self.config.resume_line is not None and failure.kind != "user_error":
            with contextlib.suppress(OSError):
                self.say(self.config.resume_line())

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
