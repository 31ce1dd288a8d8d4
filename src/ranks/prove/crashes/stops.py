"""Stop runs with SIGTERM in every phase: each stop must leave the last finished iteration saved, or no run folder."""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ranks.engine.runs.checkpoints import checkpoint
from ranks.prove.baseline import BaselineRun
from ranks.prove.crashes.freeze import freeze_in_save
from ranks.prove.processes import ProcessTree, ProofError
from ranks.prove.train_command import LIMIT_S, TrainCommand

AIMS = ("loop", "resume", "evaluation", "save", "start")
STOPPED = 128 + signal.SIGTERM
STOP_LIMIT_S = 120.0


@dataclass(frozen=True)
class Stop:
    """One SIGTERM.

    `aim`: the phase it was meant for; `phase`: the phase it hit; `to`: the processes that got it. `boundary`:
    iterations finished when it was sent. `checkpoint`: iteration of the newest checkpoint afterwards (None: no run
    folder). `problem`: empty if the stop was correct.
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
    """A run that is stopped and resumed several times. When it is complete, a new run takes its place."""

    def __init__(self, base: TrainCommand, baseline: BaselineRun, evaluates_every: int, rng: random.Random) -> None:
        self.base, self.baseline, self.rng = base, baseline, rng
        self.evaluates_every = evaluates_every
        self.stride = max(2, baseline.iterations // 16)
        self.numbers = itertools.count()
        self.complete: list[TrainCommand] = []
        self.frozen: int | None = None
        """The process that is frozen inside a save until the signal has been sent."""
        self.run = self._new_run()

    def _new_run(self) -> TrainCommand:
        return self.base.variant(f"{self.base.name}-{next(self.numbers)}")

    def stop(self, aim: str) -> Stop:
        """Start or resume the run, stop it in the phase `aim`, and check what it left. Raises ProofError."""
        for _ in range(3):
            run = self._new_run() if aim == "start" else self.run
            sessions = len(run.sessions)
            tree = run.start()
            if self._wait_for_phase(aim, run, tree, sessions):
                return self._send(aim, run, tree, sessions)
            if tree.wait(LIMIT_S) != 0:
                raise ProofError(f"{run.name} ended with exit code {tree.code}:\n{tree.tail()}")
            self.complete.append(run)
            self.run = self._new_run()
        raise ProofError(
            f"{self.base.name} ends before a SIGTERM aimed at '{aim}' can reach it: give more --iterations"
        )

    def finish(self) -> list[TrainCommand]:
        """Let the run end; all complete runs."""
        self.run.complete()
        return [*self.complete, self.run]

    def _wait_for_phase(self, aim: str, run: TrainCommand, tree: ProcessTree, sessions: int) -> bool:
        """Wait for the phase; False if the run ended first."""
        if aim in ("start", "resume"):
            moment_s = tree.started_s + self.rng.uniform(0, self.baseline.opened_s)
            return tree.until(lambda: time.monotonic() >= moment_s, LIMIT_S)
        if not tree.until(lambda: len(run.sessions) > sessions, LIMIT_S):
            return False
        done_before = run.num_rows
        if aim == "save":
            self.frozen = freeze_in_save(run, tree, self.rng, self.baseline.save_s)
            return self.frozen is not None
        if aim == "evaluation" and self.baseline.evaluation_s:
            evaluated = (done_before // self.evaluates_every + 1) * self.evaluates_every - 1
            ready = tree.until(lambda: run.num_rows >= evaluated - 1, LIMIT_S, 0.0005)
            return ready and self._sleep_up_to(self.baseline.iteration_s * 2 + self.baseline.evaluation_s)
        target = done_before + self.rng.randint(1, self.stride)
        return tree.until(lambda: run.num_rows >= target, LIMIT_S, 0.001) and self._sleep_up_to(
            self.baseline.iteration_s
        )

    def _sleep_up_to(self, at_most_s: float) -> bool:
        time.sleep(self.rng.uniform(0, at_most_s))
        return True

    def _send(self, aim: str, run: TrainCommand, tree: ProcessTree, sessions: int) -> Stop:
        to = self.rng.choice(("launcher", "launcher", "all"))  # a terminal or kill; systemd or Slurm
        pids = tree.members() if to == "all" else [tree.launcher]
        opened, boundary, saving, sent_s, sent = (
            len(run.sessions) > sessions,
            run.num_rows,
            run.saving,
            time.monotonic(),
            time.time(),
        )
        tree.send(signal.SIGTERM, pids)
        if self.frozen is not None:
            tree.send(signal.SIGCONT, [self.frozen])
            self.frozen = None
        code = tree.wait(STOP_LIMIT_S)
        seconds = time.monotonic() - sent_s
        phase = "save" if saving else phase_at(run, sent) if opened else "resume" if sessions else "start"
        left, problem = check_stop(run, boundary, code)
        if tree.wait_gone() is None:
            problem = f"processes {tree.members()} still run"
        return Stop(run.name, aim, phase, to, boundary, left, code, seconds, problem)


def check_stop(run: TrainCommand, boundary: int, code: int) -> tuple[int | None, str]:
    """(iteration of the newest checkpoint, what is wrong) after a SIGTERM when `boundary` iterations were finished."""
    problems = [f"half-written: {', '.join(run.temporaries)}"] if run.temporaries else []
    if not run.folder.exists():
        return None, "; ".join(problems + ([] if code == STOPPED else [f"exit code {code}"]))
    damaged: list[str] = []
    newest = checkpoint.newest(run.folder / "checkpoints", damaged, resume=True)
    if newest is None:
        return None, "; ".join([*problems, *damaged, "no checkpoint that verifies"])
    if code != STOPPED and not (run.finished and code == 0):
        problems.append(f"exit code {code}")
    if newest.iteration < boundary:
        problems.append(f"checkpoint {newest.iteration} is older than the last finished iteration {boundary}")
    return newest.iteration, "; ".join(problems + damaged)


def phase_at(run: TrainCommand, wall_s: float) -> str:
    """The phase of rank 0 at a time: data, step, evaluation or save of an iteration, or between two iterations."""
    starts = [event for event in run.events if event["event"] in ("opened", "resumed")]
    if not starts:
        return "resume"
    now_s = float(starts[-1]["time_s"]) + wall_s - float(run.sessions[-1]["time"])
    for row in run.rows:
        took_s = float(row["time/iteration_s"]) - float(row["time/save_s"])
        into_s = now_s - (float(row["time_s"]) - took_s)
        if 0 <= into_s <= took_s:
            return phase_in(row, into_s)
    return "end" if run.finished else "between"


def phase_in(row: dict[str, Any], into_s: float) -> str:
    """The phase of an iteration `into_s` seconds after its start: data, then step, then evaluation."""
    if into_s <= float(row["time/data_s"]):
        return "data"
    evaluation_s = float(row["time/evaluation_s"])
    return (
        "evaluation"
        if evaluation_s and into_s >= float(row["time/iteration_s"]) - float(row["time/save_s"]) - evaluation_s
        else "step"
    )


def count_phases(stops: Sequence[Stop]) -> dict[str, int]:
    """The number of stops in each phase."""
    return {phase: sum(stop.phase == phase for stop in stops) for phase in sorted({stop.phase for stop in stops})}
