"""Kill runs with SIGKILL: a rank, a process that loads its data, the launcher, or all processes; at random times,
inside saves, and between a kept file and the save that names it."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ranks.prove.baseline import BaselineRun
from ranks.prove.crashes.freeze import freeze_in_save, freeze_when
from ranks.prove.kept import fate_of, unnamed_files
from ranks.prove.processes import ProofError
from ranks.prove.train_command import LIMIT_S, TrainCommand

Target = Literal["rank", "helper", "launcher", "all"]
TARGETS: tuple[Target, ...] = ("rank", "rank", "launcher", "all")
WITH_HELPERS: tuple[Target, ...] = ("rank", "helper", "helper", "launcher", "all")
"""helper: a process that a rank has started, such as a worker that loads its data or a decoder."""
Moment = Literal["any", "save", "kept file"]
"""When a kill comes: at a random time, inside a save, or when a kept file is written that no checkpoint names yet."""
LAST_KILL = 0.9
"""The last kill of a run comes before this share of its iterations."""


@dataclass(frozen=True)
class Kill:
    """One SIGKILL.

    `at_s`: seconds since the start of the run. `finished`: iterations finished then. `redone`: how many of them were
    done again. `recovery_s`: from the kill to the first new iteration; None if the next kill came earlier. `gone_s`:
    until all processes of a killed launcher had ended; None if some did not. `kept`: the kept files that no checkpoint
    named at the kill, and what became of them: found equal, written again, deleted, or unknown (the next kill came
    earlier).
    """

    target: Target
    inside_save: bool
    at_s: float
    finished: int
    redone: int | None
    recovery_s: float | None
    gone_s: float | None
    kept: dict[str, str]


class KilledRun:
    """One run that is killed several times and restarted until it is complete."""

    def __init__(self, run: TrainCommand, baseline: BaselineRun, rng: random.Random) -> None:
        self.run, self.baseline, self.rng = run, baseline, rng
        self.kills: list[Kill] = []
        self.started_s = time.monotonic()
        self.sessions = 0
        """Sessions before the newest kill."""
        self.frozen: int | None = None
        """The process that is frozen until the kill has been sent."""
        self.tree = run.start()

    def complete(self, moments: Sequence[Moment]) -> list[Kill]:
        """Kill and restart the run, then let it end. `moments`: what each kill must hit.

        Fewer kills are returned if the run ended before a kill could hit. Raises ProofError where the run fails.
        """
        num_kills = len(moments)
        spread_s = self.baseline.seconds / num_kills
        next_s = time.monotonic() + self.rng.uniform(0, spread_s)
        for index in range(num_kills):
            limit = int(self.baseline.iterations * LAST_KILL * (index + 1) / num_kills)
            if not self._wait_for_moment(next_s, limit, moments[index]):
                break
            killed = self._kill()
            pause_s = self.rng.uniform(0, spread_s)
            if index + 1 < num_kills and moments[index + 1] == "any":  # the next kill may come during this recovery
                next_s = time.monotonic() + pause_s
                self.kills.append(self._recover(*killed, within_s=pause_s))
            else:
                self.kills.append(self._recover(*killed, within_s=LIMIT_S))
                next_s = time.monotonic() + pause_s
        code = self.tree.wait(LIMIT_S)
        if code != 0:
            raise ProofError(f"{self.run.name} ended with exit code {code} after its kills:\n{self.tree.tail()}")
        return self.kills

    def _wait_for_moment(self, when_s: float, limit: int, moment: Moment) -> bool:
        """Wait until the next kill is due, and then for what it must hit. False if the run ended first."""
        run = self.run
        if moment != "any" and not self.tree.until(lambda: len(run.sessions) > self.sessions, LIMIT_S):
            return False
        if not self.tree.until(lambda: time.monotonic() >= when_s or run.num_rows >= limit, LIMIT_S):
            return False
        if moment == "any":
            return True
        if moment == "save":
            self.frozen = freeze_in_save(run, self.tree, self.rng, self.baseline.save_s)
        else:
            within_s = self.baseline.iteration_s / 4
            self.frozen = freeze_when(lambda: bool(unnamed_files(run)), self.tree, self.rng, within_s)
        return self.frozen is not None

    def _kill(self) -> tuple[Target, bool, float, int, dict[str, tuple[int, int]]]:
        """Kill a random target; (target, whether inside a save, when, finished iterations, unnamed kept files)."""
        members, ranks = self.tree.members(), self.tree.ranks()
        helpers = self.tree.helpers(ranks)
        target = self.rng.choice(WITH_HELPERS if helpers else TARGETS) if ranks else "all"
        victims = {
            "rank": [self.rng.choice(ranks or members)],
            "helper": [self.rng.choice(helpers or members)],
            "launcher": [self.tree.launcher],
            "all": members,
        }
        finished = self.run.num_rows
        self.sessions = len(self.run.sessions)
        saving, unnamed = self.run.saving, unnamed_files(self.run)
        self.tree.send(signal.SIGKILL, victims[target])
        if self.frozen is not None:
            self.tree.send(signal.SIGCONT, [self.frozen])
            self.frozen = None
        return target, saving, time.monotonic(), finished, unnamed

    def _recover(
        self,
        target: Target,
        saving: bool,
        killed_s: float,
        finished: int,
        unnamed: dict[str, tuple[int, int]],
        within_s: float,
    ) -> Kill:
        """Restart the command if its launcher was killed, and wait for the first new iteration."""
        gone_s: float | None = None
        if target in ("launcher", "all"):
            gone_s = self.tree.wait_gone()
            self.tree.kill()
            self.tree = self.run.start()
        run, limit_s = self.run, time.monotonic() + within_s
        restarted, new_rows_s = [False], list[float]()

        def done_waiting() -> bool:
            is_new = run.num_rows > finished
            if is_new and not new_rows_s:
                new_rows_s.append(time.monotonic())
            restarted[0] = is_new and len(run.sessions) > self.sessions
            return restarted[0] or time.monotonic() > limit_s

        ended, recovery_s = not self.tree.until(done_waiting, LIMIT_S), None
        if restarted[0] or ended:  # a run that no longer needs the helper ends without a restart
            first_s = time.monotonic() if restarted[0] or not new_rows_s else new_rows_s[0]
            recovery_s = first_s - killed_s
        sessions = run.sessions
        redone = max(0, finished - int(sessions[-1]["iteration"])) if len(sessions) > self.sessions else None
        kept = fate_of(run, unnamed) if recovery_s is not None else dict.fromkeys(unnamed, "unknown")
        return Kill(target, saving, killed_s - self.started_s, finished, redone, recovery_s, gone_s, kept)
