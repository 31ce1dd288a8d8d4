"""Freeze a run at a chosen moment, from outside: in the middle of a save, or between a kept file and the save that
names it. The save path has no code for it."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

from ranks.prove.processes import ProcessTree
from ranks.prove.train_command import LIMIT_S, TrainCommand

POLL_S = 0.0005


def freeze_when(is_moment: Callable[[], bool], tree: ProcessTree, rng: random.Random, within_s: float) -> int | None:
    """Freeze the process that writes the checkpoints while `is_moment()`. None if the run ended first.

    Returns the id of the frozen process. A signal that is sent now arrives in that moment for certain. Before, the
    kills came some milliseconds after a save had been seen, and on a fast machine it was over by then.

    How: `is_moment` is polled. When it holds, a random time up to `within_s` passes. Then the process gets SIGSTOP, and
    only when it has stopped is `is_moment` asked again. If the moment is over, the process gets SIGCONT, and the next
    one is awaited.
    """
    writer = tree.first_rank()
    while tree.until(is_moment, LIMIT_S, POLL_S):
        time.sleep(rng.uniform(0, within_s))
        if tree.freeze(writer):
            if is_moment():
                return writer
            tree.send(signal.SIGCONT, [writer])
    return None


def freeze_in_save(run: TrainCommand, tree: ProcessTree, rng: random.Random, save_s: float) -> int | None:
    """Freeze it while a save is being written; `save_s` is the usual time of one."""
    return freeze_when(lambda: run.saving, tree, rng, save_s / 3)
