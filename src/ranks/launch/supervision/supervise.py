"""Start the ranks of one machine, watch them, restart all of them when one is lost, pass stop signals on.

    start all -> watch -> all ended with 0         -> 0
                       -> stopped by a signal      -> 130 / 143, after the ranks have stopped
                       -> a rank raised            -> the others are killed; 1, 2 (bad input) or 3 (gave up)
                       -> a rank was killed        -> the others are killed; start all again, while there is progress
                       -> a rank hangs             -> all are killed; the same

A torchrun script (`foreign`) is started again after any failure, at most `max_restarts` times. Two starts that
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
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranks.engine.liveness.beats import BeatsFile
from ranks.engine.liveness.heartbeat import BEATS_VARIABLE
from ranks.engine.liveness.stacks import STACKS_VARIABLE
from ranks.errors import UserError
from ranks.launch.env_vars import place_of_rank
from ranks.launch.failures.explain import signal_name
from ranks.launch.failures.failure import EXIT_CODES, Failure
from ranks.launch.output import Show
from ranks.launch.private_folder import private_folder
from ranks.launch.processes.orphan_reaper import OrphanReaper, subreaper
from ranks.launch.processes.process import ENDED_S, RankProcess
from ranks.launch.processes.start import Starter
from ranks.launch.signals import SignalPipe
from ranks.launch.supervision.attempt import Attempt, End, StopRequest
from ranks.launch.supervision.config import LaunchConfig
from ranks.launch.supervision.notice import Notice
from ranks.launch.supervision.rank_comparison import RankComparison
from ranks.launch.supervision.restarts import Restarts
from ranks.launch.supervision.silences import SilenceHistory
from ranks.launch.supervision.watchdog import Watchdog
from ranks.launch.telemetry.sampler import Telemetry

READY_S = 0.1
"""How often to look for a stop before the first rank can be started."""
TICK_S = 1.0
"""How often to look after the log folder and held-back output."""
NO_HANG = "  if it was only slow: call world.beat() in long work of your own, or give a longer --hang-timeout"
MOST_NOTICES = 200
"""Of slow ranks, in one launch. They change nothing, so the rest is left out."""
START_S = 60.0
"""A failure within this time of a start counts as a failure at the start."""


class Supervisor:
    """Runs the ranks to their end. `run()` returns the exit code, and no process is left then. Main thread only.

    `say` prints one line. `show` gets the output of the ranks. `progress` returns a number that grows with each saved
    checkpoint. `record` gets a dict for each failure, hang and restart.
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
        self.alone = len(config.devices) == 1 and not config.foreign
        """There is one rank. Its exceptions are shown as Python shows them."""
        self.stop = StopRequest()
        self.last_line = ""
        """What to print after everything else: that a stop ended without a save, and where the run resumes."""
        self.history, self.notices = SilenceHistory(), 0
        self.unrecorded = False
        """An event could not be recorded."""
        self.started_ns = time.monotonic_ns()
        self.ticked_s = time.monotonic()

    def run(self) -> int:
        with contextlib.ExitStack() as stack:
            stack.enter_context(subreaper())
            self.signals = stack.enter_context(SignalPipe())
            self.reaper = stack.enter_context(OrphanReaper())
            self.private = stack.enter_context(private_folder())
            self.reaper.add_folder(self.private)
            if self.config.logs is not None:
                self.reaper.add_folder(self.config.logs.staging)
                stack.callback(self.config.logs.close)
            self.selector = stack.enter_context(selectors.DefaultSelector())
            self.selector.register(self.signals.reader, selectors.EVENT_READ)
            self.telemetry = stack.enter_context(Telemetry(self.config.run_dir, self.config.gpus, self.say))
            starter = Starter(self.config.argv, self.config.env, self.config.pass_fds, self.config.stdin)
            self.start = stack.enter_context(contextlib.closing(starter))
            return self._attempts()

    def _attempts(self) -> int:
        number, before = 0, self._progress()
        restarts = Restarts(self.config.max_restarts, before, foreign=self.config.foreign)
        while True:
            result = self._attempt(number)
            if isinstance(result, End):
                self._say_end(result)
                return result.code
            self._record_failure("failed", result, number)
            self._explain(result)
            if self.stop.signum or not restarts.allows(result):
                self._say_where_to_resume(result)
                return self._exit_code(result)
            if not self.config.max_restarts:
                self._say_where_to_resume(result)
                return 1
            before = self._progress()
            reason = restarts.reason_to_give_up(result, before)
            if reason:
                self.say(f"gave up: {reason}")
                self._say_where_to_resume(result)
                self._record("gave_up", attempts=number + 1)
                return EXIT_CODES["gave_up"]
            number += 1
            who = "the rank" if self.alone else f"all {len(self.config.devices)} ranks"
            self.say(f"starting {who} again (attempt {number + 1})")
            self._record("restarted", attempt=number, after=result.kind, rank=result.rank)

    def _attempt(self, number: int) -> End | Failure:
        """Start all ranks and watch them to their end."""
        result: End | Failure | None = None
        size = len(self.config.devices)
        with self.config.rendezvous(number, self.private) as store_variables:
            beats = BeatsFile(self._beats_path(number), size, create=True)
            stacks = {rank: self._stack_path(number, rank) for rank in range(size)}
            watchdog = Watchdog(
                beats,
                stacks,
                self.config.hangs.timeout_s,
                foreign=self.config.foreign,
                notice=self._notice,
                history=self.history,
                compare=RankComparison(self.telemetry).look,
            )
            attempt = Attempt(self.config, number, watchdog, self.stop, lambda hang: self._report_hang(hang, number))
            try:
                while not self.start.ready(READY_S):
                    self._forward_signals(attempt)
                    if self.stop.signum:
                        return End(128 + self.stop.signum)
                for rank in range(size):
                    attempt.ranks.append(self._start(rank, number, store_variables))
                self.telemetry.follow({process.rank: process.pid for process in attempt.ranks}, beats)
                while result is None:
                    self._wait()
                    self._forward_signals(attempt)
                    result = attempt.result()
                if isinstance(result, Failure):
                    result = replace(result, at_start=time.monotonic() - attempt.started_s < START_S)
                return result
            finally:
                for process in attempt.ranks:
                    process.kill()
                deadline_s = time.monotonic() + ENDED_S
                for process in attempt.ranks:
                    for output in process.outputs:
                        with contextlib.suppress(KeyError):
                            self.selector.unregister(output.pipe)
                    reported = attempt.reported(process.rank) if isinstance(result, Failure) else None
                    if process.end(reported=reported, deadline_s=deadline_s):
                        self.reaper.remove_group(process.pid)
                    else:
                        self.say(
                            f"rank {process.rank} (process {process.pid}) was killed but has not ended: it waits in "
                            "the kernel, for a disk or a driver that does not answer, and keeps its memory until then"
                        )

    def _beats_path(self, number: int) -> Path:
        return self.private / f"beats-{number}"

    def _stack_path(self, number: int, rank: int) -> Path:
        return self.private / f"stack-{number}-{rank}"

    def _start(self, rank: int, number: int, store_variables: Mapping[str, str]) -> RankProcess:
        error_file = self.private / f"error-{number}-{rank}.json"
        env = {
            **self.config.env,
            **store_variables,
            **place_of_rank(rank, self.config.devices),
            "RANKS_ATTEMPT": str(number),
            "RANKS_STARTED_NS": str(self.started_ns),
            "RANKS_ERROR_FILE": str(error_file),
            "RANKS_PARENT": str(os.getpid()),
            BEATS_VARIABLE: str(self._beats_path(number)),
            STACKS_VARIABLE: str(self._stack_path(number, rank)),
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
            if signum == signal.SIGTSTP:
                attempt.pause(self.signals.pause)
            elif self.stop.signum:
                if signum == signal.SIGINT:
                    self.stop.kill_now = True
            else:
                them, whom = ("the rank", "it") if self.alone else ("the ranks", "them")
                again = f"; press Ctrl-C again to kill {whom}" if signum == signal.SIGINT else ""
                self.say(f"{signal_name(signum)}: passed on to {them}, waiting for {whom} to stop{again}")
                self.stop.progress = self._progress()
                attempt.ask_to_stop(signal.SIGINT if signum == signal.SIGINT else signal.SIGTERM)

    def _notice(self, notice: Notice) -> None:
        """Say that a rank is slow or unlike the others, or is no longer."""
        self.notices += 1
        if self.notices > MOST_NOTICES:
            return
        self.say(notice.text)
        self._record(notice.event, **notice.record)

    def _report_hang(self, hang: Failure, number: int) -> None:
        """Say which rank hangs, without a restart."""
        self._record_failure("hangs", hang, number)
        self._explain(hang)

    def _say_end(self, end: End) -> None:
        """Say that ranks were ended by force."""
        if self.stop.kill_now:
            self.say("killed; the saved checkpoints are kept")
        elif end.unsaved:
            iteration = self._progress()
            saved = "after" if iteration > self.stop.progress else "without"
            where = f"resumes at {iteration}" if iteration >= 0 else "starts from the beginning"
            resume = f"; {where}" if self.config.resume_line is not None else ""
            self.last_line = f"stopped {saved} a save{resume}"

    def _explain(self, failure: Failure) -> None:
        """Print the cause of a failure once. The traceback is short where a log of several ranks holds the full one."""
        logs = self.config.logs
        logged = logs is not None and logs.move_to_run()
        for line in failure.lines(full=not logged, alone=self.alone):
            self.say(line)
        if failure.kind == "hang":
            self.say(NO_HANG)
        shown = self._exited(failure) or (self.alone and failure.kind in ("user", "gave_up"))
        if logs is not None and logged and not shown and failure.kind != "user_error":
            self.say(f"  log: {logs.of_rank(failure.rank)}")

    def _exit_code(self, failure: Failure) -> int:
        if self._exited(failure):
            return failure.exit_code or 1
        return EXIT_CODES.get(failure.kind, 1)

    def _exited(self, failure: Failure) -> bool:
        """Whether the only rank has called `sys.exit`. Then nothing is said: Python has printed the message."""
        return self.alone and failure.exit_code is not None

    def _say_where_to_resume(self, failure: Failure) -> None:
        if self.config.resume_line is not None and failure.kind != "user_error" and not self._exited(failure):
            with contextlib.suppress(OSError):
                self.say(self.config.resume_line())

    def _progress(self) -> int:
        try:
            return self.progress()
        except OSError:
            return 0

    def _record_failure(self, event: str, failure: Failure, number: int) -> None:
        self._record(
            event, attempt=number, rank=failure.rank, kind=failure.kind, type=failure.type, where=failure.where
        )

    def _record(self, event: str, **facts: Any) -> None:
        """Record an event. Where that fails, say why once, and go on."""
        try:
            self.record({"event": event, "time_s": time.time(), **facts})
        except (OSError, UserError) as problem:
            if not self.unrecorded:
                reason = problem.found if isinstance(problem, UserError) else problem
                self.say(f"could not record '{event}': {reason}; later events may be missing too")
            self.unrecorded = True
