"""One start of all ranks: what ended it, from the ends of its ranks, their hangs, and the stops that were asked for."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ranks.engine.liveness.phases import GRACE_FACTOR
from ranks.launch.failures.explain import explain_exit
from ranks.launch.failures.failure import Failure
from ranks.launch.failures.out_of_memory import OomKills
from ranks.launch.processes.process import RankProcess
from ranks.launch.supervision.config import LaunchConfig
from ranks.launch.supervision.watchdog import Watchdog

CAUSE_S = 2.0
"""How long to wait for the cause after a rank lost a connection."""
UNSAVED_S = 10.0
"""How long the other ranks may run on after a signal ended one that had not saved: a save needs all ranks."""
LONE_STOP_S = 5.0
"""After one rank was stopped by a signal that the launcher did not send, the others get the signal this much later."""
LOOK_S = 1.0
"""How often to look for hangs."""


@dataclass
class StopRequest:
    """The stop that was asked for, kept over attempts. `signum`: SIGTERM or SIGINT, 0 for none."""

    signum: int = 0
    asked_s: float = 0.0
    progress: int = 0
    """The newest checkpoint then."""
    kill_now: bool = False


@dataclass(frozen=True)
class End:
    """An attempt that ended without a failure. `unsaved`: ranks were ended that could not save."""

    code: int
    unsaved: bool = False


@dataclass
class Attempt:
    """The ranks of one start."""

    config: LaunchConfig
    number: int
    watchdog: Watchdog
    stop: StopRequest
    report: Callable[[Failure], None]
    """Called with a hang that is reported only."""
    ranks: list[RankProcess] = field(default_factory=list[RankProcess])
    failures: dict[int, Failure] = field(default_factory=lambda: dict[int, Failure]())
    started_s: float = field(default_factory=time.monotonic)
    oom_kills: OomKills = field(default_factory=OomKills)
    _peer_since_s: float | None = None
    _looked_s: float = 0.0

    @property
    def running(self) -> list[RankProcess]:
        return [rank for rank in self.ranks if rank.code is None]

    def ask_to_stop(self, signum: int) -> None:
        """Pass a stop on to the ranks."""
        self.stop.signum, self.stop.asked_s = signum, time.monotonic()
        for process in self.running:
            process.send(signum)

    def pause(self, until_continued: Callable[[], None]) -> None:
        """Stop the ranks and their children while `until_continued` stops this process. No limit counts that time."""
        paused, began_s = self.running, time.monotonic()
        for process in paused:
            process.send_group(signal.SIGSTOP)
        until_continued()
        for process in paused:
            process.send_group(signal.SIGCONT)
        self.stop.asked_s += time.monotonic() - began_s
        self.watchdog.restart_clocks()

    def result(self) -> End | Failure | None:
        """How the attempt ended; None while the ranks run."""
        now_s = time.monotonic()
        for process in self.ranks:
            if process.poll() and process.rank not in self.failures and not self._ended_well(process):
                self.failures[process.rank] = explain_exit(
                    process.rank,
                    process.code or 0,
                    process.error_file,
                    process.tail(),
                    memory_ran_out=self.oom_kills.describe(),
                )
        if self.stop.kill_now:
            return End(128 + signal.SIGINT)
        stopped = [p for p in self.ranks if p.code is not None and self._stopped_by(p)]
        causes = [f for f in self.failures.values() if f.kind != "peer"]
        if causes:
            return min(causes, key=lambda f: (f.kind != "signal", f.time_s))
        if self.failures and not stopped:
            self._peer_since_s = self._peer_since_s or now_s
            if self.running and now_s - self._peer_since_s < CAUSE_S:
                return None
            return self._left_early() or min(self.failures.values(), key=lambda f: f.time_s)
        return self._clean_exit(stopped, now_s) or self._hang(now_s)

    def reported(self, rank: int) -> str | None:
        """The traceback in a rank's output that the report of a failed attempt shows, as in `Output.close`.

        Nothing where the rank exited or a signal ended it: a traceback in its output is then of a handled exception. A
        rank that was killed because another one failed may have begun to print that it lost the other.
        """
        failure = self.failures.get(rank)
        if failure is not None and failure.kind in ("exit", "signal"):
            return None
        return failure.traceback if failure is not None else ""

    def _clean_exit(self, stopped: list[RankProcess], now_s: float) -> End | None:
        """The end once all ranks have ended without a failure; None before.

        Where one rank was stopped by a signal, the others get the same signal. They are not waited for if a rank ended
        without saving, because a save needs all ranks.
        """
        if stopped and self.running:
            since_s = now_s - min(p.ended_s for p in stopped)
            if not self.stop.signum and since_s > LONE_STOP_S:
                self.ask_to_stop(self._stopped_by(stopped[0]))
            unsaved = any((p.code or 0) < 0 for p in stopped) or bool(self.failures)
            if self.stop.signum and unsaved and since_s > LONE_STOP_S + UNSAVED_S:
                return End(128 + self.stop.signum)
        if self.running:
            return None
        return End(128 + (self.stop.signum or self._stopped_by(stopped[0])) if stopped else 0)

    def _left_early(self) -> Failure | None:
        """The rank that ended with exit code 0 while the ranks that lost it still worked."""
        lost = [rank for rank in self.failures if self.watchdog.works(rank)]
        left = [process for process in self.ranks if process.code == 0]
        if not lost or not left:
            return None
        first = min(left, key=lambda p: p.ended_s)
        message = f"ended early with exit code 0 while rank {lost[0]} still worked: ranks must end together"
        return Failure(first.rank, "left", "exit", message, time_s=time.time())

    def _hang(self, now_s: float) -> End | Failure | None:
        """A hang, or a stop that ranks without progress delay for too long."""
        if now_s - self._looked_s < LOOK_S or not self.running:
            return None
        self._looked_s = now_s
        found = self.watchdog.look({p.rank: p.pid for p in self.running}, now_s)
        if self.stop.signum and (found is not None or self._stop_is_late(now_s)):
            if found is not None:
                self.report(found)
            return End(128 + self.stop.signum, unsaved=True)
        if found is not None and found.kind == "hang" and self.config.hangs.on_hang == "report":
            self.report(found)
            return None
        return found

    def _stop_is_late(self, now_s: float) -> bool:
        running = [p.rank for p in self.running]
        silence_s = min(now_s - self.stop.asked_s, self.watchdog.quiet_s(running))
        grace_s = max(self.config.hangs.stop_grace_s, GRACE_FACTOR * self.watchdog.slowest_s(running))
        return silence_s > grace_s

    def _ended_well(self, process: RankProcess) -> bool:
        return process.code == 0 or bool(self._stopped_by(process))

    def _stopped_by(self, process: RankProcess) -> int:
        """The signal that stopped a rank, after a save (exit code 128 + n) or without one (-n); 0 for another end."""
        if self.config.foreign and not self.stop.signum:
            return 0
        code = process.code or 0
        return next((int(s) for s in (signal.SIGTERM, signal.SIGINT) if code in (128 + s, -s)), 0)
