"""Runs that get SIGTERM at every phase: each stop leaves the last boundary saved, or nothing at all."""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ranks.engine.runs import checkpoint
from ranks.prove.kills import Straight
from ranks.prove.processes import ProofError, Tree
from ranks.prove.trainings import LIMIT_S, Training

AIMS = ("loop", "resume", "evaluation", "save", "start")
STOPPED = 128 + signal.SIGTERM
STOP_LIMIT_S = 120.0


@dataclass(frozen=True)
class Stop:
    """One SIGTERM: where it was aimed, which `phase` it hit, to whom it went.

    `boundary`: iterations finished when it was sent; `checkpoint`: iteration of the newest one afterwards (None: no
    run folder); `problem`: empty when all held.
    """

    run: str
    aim: str
    phase: str
    to: str
    boundary: int
    checkpoint: int | None
    code: int
    seconds: float
    problem: str


class StoppedRun:
    """A run that is stopped and continued again and again; a new one is begun whenever it comes to its end."""

    def __init__(self, base: Training, straight: Straight, evaluates_every: int, chance: random.Random) -> None:
        self.base, self.straight, self.chance = base, straight, chance
        self.evaluates_every = evaluates_every
        self.stride = max(2, straight.iterations // 16)
        self.numbers = itertools.count()
        self.complete: list[Training] = []
        self.run = self._fresh()

    def _fresh(self) -> Training:
        return self.base.under(f"{self.base.name}-{next(self.numbers)}")

    def stop(self, aim: str) -> Stop:
        """Begin or continue the run, stop it there, and look at what it left. Raises ProofError."""
        for _ in range(3):
            run = self._fresh() if aim == "start" else self.run
            sessions = len(run.sessions)
            tree = run.start()
            if self._aim(aim, run, tree, sessions):
                return self._send(aim, run, tree, sessions)
            if tree.wait(LIMIT_S) != 0:
                raise ProofError(f"{run.name} ended with exit code {tree.code}:\n{tree.tail()}")
            self.complete.append(run)
            self.run = self._fresh()
        raise ProofError(
            f"{self.base.name} ends before a SIGTERM aimed at '{aim}' can reach it: give more --iterations"
        )

    def finish(self) -> list[Training]:
        """Bring the run to its end; all runs that came there."""
        self.run.complete()
        return [*self.complete, self.run]

    def _aim(self, aim: str, run: Training, tree: Tree, sessions: int) -> bool:
        """Wait for the moment; False where the run ended first."""
        if aim in ("start", "resume"):
            moment_s = tree.begun_s + self.chance.uniform(0, self.straight.opened_s)
            return tree.until(lambda: time.monotonic() >= moment_s, LIMIT_S)
        if not tree.until(lambda: len(run.sessions) > sessions, LIMIT_S):
            return False
        begun = run.num_rows
        if aim == "save":
            return tree.until(lambda: run.saving, LIMIT_S, 0.0005) and self._later(self.straight.save_s / 3)
        if aim == "evaluation" and self.straight.evaluation_s:
            evaluated = (begun // self.evaluates_every + 1) * self.evaluates_every - 1
            ready = tree.until(lambda: run.num_rows >= evaluated - 1, LIMIT_S, 0.0005)
            return ready and self._later(self.straight.iteration_s * 2 + self.straight.evaluation_s)
        target = begun + self.chance.randint(1, self.stride)
        return tree.until(lambda: run.num_rows >= target, LIMIT_S, 0.001) and self._later(self.straight.iteration_s)

    def _later(self, at_most_s: float) -> bool:
        time.sleep(self.chance.uniform(0, at_most_s))
        return True

    def _send(self, aim: str, run: Training, tree: Tree, sessions: int) -> Stop:
        to = self.chance.choice(("launcher", "launcher", "all"))  # a terminal or kill; systemd or Slurm
        pids = tree.members() if to == "all" else [tree.launcher]
        opened, boundary, saving, sent_s, sent = (
            len(run.sessions) > sessions,
            run.num_rows,
            run.saving,
            time.monotonic(),
            time.time(),
        )
        tree.send(signal.SIGTERM, pids)
        code = tree.wait(STOP_LIMIT_S)
        seconds = time.monotonic() - sent_s
        phase = "save" if saving else phase_at(run, sent) if opened else "resume" if sessions else "start"
        left, problem = look(run, boundary, code)
        if tree.gone() is None:
            problem = f"processes {tree.members()} outlive it"
        return Stop(run.name, aim, phase, to, boundary, left, code, seconds, problem)


def look(run: Training, boundary: int, code: int) -> tuple[int | None, str]:
    """(the newest checkpoint's iteration, what is wrong) after a SIGTERM that came when `boundary` iterations stood."""
    problems = [f"half-written: {', '.join(run.leftovers)}"] if run.leftovers else []
    if not run.folder.exists():
        return None, "; ".join(problems + ([] if code == STOPPED else [f"exit code {code}"]))
    damaged: list[str] = []
    newest = checkpoint.newest(run.folder / "checkpoints", damaged)
    if newest is None:
        return None, "; ".join([*problems, *damaged, "no checkpoint that verifies"])
    done = run.events[-1]["event"] == "finished"
    if code != STOPPED and not (done and code == 0):
        problems.append(f"exit code {code}")
    if newest.iteration < boundary:
        problems.append(f"checkpoint {newest.iteration} is older than boundary {boundary}")
    return newest.iteration, "; ".join(problems + damaged)


def phase_at(run: Training, wall_s: float) -> str:
    """What the first rank was doing, by its own clock: data, step, evaluation or save of an iteration; else between."""
    beginnings = [event for event in run.events if event["event"] in ("opened", "resumed")]
    if not beginnings:
        return "resume"
    now_s = float(beginnings[-1]["time_s"]) + wall_s - float(run.sessions[-1]["time"])
    for row in run.rows:
        took_s = float(row["time/iteration_s"]) - float(row["time/save_s"])
        into_s = now_s - (float(row["time_s"]) - took_s)
        if 0 <= into_s <= took_s:
            return phase_in(row, into_s)
    return "end" if run.events[-1]["event"] == "finished" else "between"


def phase_in(row: dict[str, Any], into_s: float) -> str:
    """The phase of an iteration that its seconds `into_s` fall into: data first, evaluation last."""
    if into_s <= float(row["time/data_s"]):
        return "data"
    evaluation_s = float(row["time/evaluation_s"])
    return (
        "evaluation"
        if evaluation_s and into_s >= float(row["time/iteration_s"]) - float(row["time/save_s"]) - evaluation_s
        else "step"
    )


def counted(stops: Sequence[Stop]) -> dict[str, int]:
    """How many stops hit each phase."""
    return {phase: sum(stop.phase == phase for stop in stops) for phase in sorted({stop.phase for stop in stops})}
