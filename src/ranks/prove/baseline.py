"""The baseline run of a proof: an undisturbed run whose end and timings the disturbed runs are compared with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from ranks.prove.processes import ProofError
from ranks.prove.train_command import LIMIT_S, TrainCommand


@dataclass(frozen=True)
class BaselineRun:
    """An undisturbed run. Times in seconds.

    `seconds`: of the whole command. `opened_s`: from its start to checkpoint 0. `iteration_s`, `evaluation_s`,
    `save_s`: the median of one iteration without save and evaluation, of one evaluation, of one save.
    """

    fingerprint: str
    iterations: int
    seconds: float
    opened_s: float
    iteration_s: float
    evaluation_s: float
    save_s: float


def run_baseline(run: TrainCommand, iterations: int, fingerprint: Callable[[TrainCommand], str]) -> BaselineRun:
    """Carry out an undisturbed run. Raises ProofError."""
    tree = run.start()
    if not tree.until(lambda: run.newest >= 0, LIMIT_S):
        raise ProofError(f"{run.name} ended with exit code {tree.code}:\n{tree.tail()}")
    opened_s = time.monotonic() - tree.started_s
    code, seconds = tree.wait(LIMIT_S), time.monotonic() - tree.started_s
    if code != 0 or run.num_rows != iterations:
        raise ProofError(f"{run.name} ended with exit code {code} after {run.num_rows} iterations:\n{tree.tail()}")
    evaluations = [row["time/evaluation_s"] for row in run.rows if row["time/evaluation_s"]]
    saves = [event["seconds"] for event in run.events if event["event"] == "saved"]
    plain = [row["time/iteration_s"] - row["time/save_s"] - row["time/evaluation_s"] for row in run.rows]
    return BaselineRun(
        fingerprint(run),
        iterations,
        seconds,
        opened_s,
        median(plain),
        median(evaluations) if evaluations else 0.0,
        median(saves) if saves else 0.0,
    )
