"""Runs that are killed at random: in the middle of saves, and at any time, whole or one process of them."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from ranks.prove.processes import ProofError
from ranks.prove.trainings import LIMIT_S, Training

Target = Literal["rank", "launcher", "all"]
TARGETS: tuple[Target, ...] = ("rank", "rank", "launcher", "all")
DONE_SHARE = 0.9
"""The last kill of a run strikes before this share of its iterations."""


@dataclass(frozen=True)
class Straight:
    """An undisturbed run. Times in seconds: `opened_s` from the command to checkpoint 0, `iteration_s`,
    `evaluation_s` and `save_s` of one each; `seconds` of the whole command."""

    fingerprint: str
    iterations: int
    seconds: float
    opened_s: float
    iteration_s: float
    evaluation_s: float
    save_s: float


@dataclass(frozen=True)
class Kill:
    """One SIGKILL. `at_s` since the run was begun; `finished` iterations then; `redone` of them afterwards.

    `recovery_s`: from the kill to the first iteration that had not been finished before it; None where the next kill
    came first. `gone_s`: until all processes of a killed launcher were gone, None where they were not.
    """

    target: Target
    inside_save: bool
    at_s: float
    finished: int
    redone: int | None
    recovery_s: float | None
    gone_s: float | None


class KilledRun:
    """One run and the kills it goes through."""

    def __init__(self, run: Training, straight: Straight, chance: random.Random) -> None:
        self.run, self.straight, self.chance = run, straight, chance
        self.kills: list[Kill] = []
        self.begun_s = time.monotonic()
        self.sessions = 0
        self.known: tuple[list[int], list[int]] = ([], [])
        """All processes, and the ranks among them, as found when the newest kill was prepared."""
        self.tree = run.start()

    def go_through(self, num_kills: int, inside: Sequence[bool]) -> list[Kill]:
        """Kill, restart, and go on to the end. `inside`: for each kill whether it is aimed at a save, or at any time.

        Raises ProofError where the run does not end well.
        """
        spread_s = self.straight.seconds / num_kills
        next_s = time.monotonic() + self.chance.uniform(0, spread_s)
        for index in range(num_kills):
            limit = int(self.straight.iterations * DONE_SHARE * (index + 1) / num_kills)
            if not self._aim(next_s, limit, inside[index]):
                break
            struck = self._strike(inside[index])
            pause_s = self.chance.uniform(0, spread_s)
            if index + 1 < num_kills and not inside[index + 1]:  # the next one may strike while this one is mended
                next_s = time.monotonic() + pause_s
                self.kills.append(self._recover(*struck, within_s=pause_s))
            else:
                self.kills.append(self._recover(*struck, within_s=LIMIT_S))
                next_s = time.monotonic() + pause_s
        code = self.tree.wait(LIMIT_S)
        if code != 0:
            raise ProofError(f"{self.run.name} ended with exit code {code} after its kills:\n{self.tree.tail()}")
        return self.kills

    def _aim(self, when_s: float, limit: int, inside: bool) -> bool:
        """Wait for the moment; False where the run ended first."""
        run = self.run
        if inside:
            if not self.tree.until(lambda: len(run.sessions) > self.sessions, LIMIT_S):
                return False
            self.known = (self.tree.members(), self.tree.ranks())  # no time to look for them while a save lasts
        if not self.tree.until(lambda: time.monotonic() >= when_s or run.num_rows >= limit, LIMIT_S):
            return False
        if not inside:
            return True
        if not self.tree.until(lambda: run.saving, LIMIT_S, 0.0005):
            return False
        time.sleep(self.chance.uniform(0, self.straight.save_s / 3))
        return True

    def _strike(self, inside: bool) -> tuple[Target, bool, float, int]:
        members, ranks = self.known if inside else (self.tree.members(), self.tree.ranks())
        target = self.chance.choice(TARGETS) if ranks else "all"
        victims = {"rank": [self.chance.choice(ranks or members)], "launcher": [self.tree.launcher], "all": members}
        finished = self.run.num_rows
        self.sessions = len(self.run.sessions)
        saving = self.run.saving
        self.tree.send(signal.SIGKILL, victims[target])
        return target, saving, time.monotonic(), finished

    def _recover(self, target: Target, saving: bool, struck_s: float, finished: int, within_s: float) -> Kill:
        gone_s: float | None = None
        if target != "rank":
            gone_s = self.tree.gone()
            self.tree.kill()
            self.tree = self.run.start()
        run, limit_s = self.run, time.monotonic() + within_s
        back = [False]

        def recovered() -> bool:
            back[0] = len(run.sessions) > self.sessions and run.num_rows > finished
            return back[0] or time.monotonic() > limit_s

        ended = not self.tree.until(recovered, LIMIT_S)
        recovery_s = time.monotonic() - struck_s if back[0] or ended else None
        sessions = run.sessions
        redone = max(0, finished - int(sessions[-1]["iteration"])) if len(sessions) > self.sessions else None
        return Kill(target, saving, struck_s - self.begun_s, finished, redone, recovery_s, gone_s)


def straight_run(run: Training, iterations: int, fingerprint: Callable[[Training], str]) -> Straight:
    """Carry out an undisturbed run. Raises ProofError."""
    tree = run.start()
    if not tree.until(lambda: run.newest >= 0, LIMIT_S):
        raise ProofError(f"{run.name} ended with exit code {tree.code}:\n{tree.tail()}")
    opened_s = time.monotonic() - tree.begun_s
    code, seconds = tree.wait(LIMIT_S), time.monotonic() - tree.begun_s
    if code != 0 or run.num_rows != iterations:
        raise ProofError(f"{run.name} ended with exit code {code} after {run.num_rows} iterations:\n{tree.tail()}")
    evaluations = [row["time/evaluation_s"] for row in run.rows if row["time/evaluation_s"]]
    saves = [event["seconds"] for event in run.events if event["event"] == "saved"]
    plain = [row["time/iteration_s"] - row["time/save_s"] - row["time/evaluation_s"] for row in run.rows]
    return Straight(
        fingerprint(run),
        iterations,
        seconds,
        opened_s,
        median(plain),
        median(evaluations) if evaluations else 0.0,
        median(saves) if saves else 0.0,
    )
