"""Freeze a run in the middle of a save, from outside: the save path has no code for it."""

from __future__ import annotations

import random
import signal
import time

from ranks.prove.processes import ProcessTree
from ranks.prove.train_command import LIMIT_S, TrainCommand

POLL_S = 0.0005


def freeze_in_save(run: TrainCommand, tree: ProcessTree, rng: random.Random, save_s: float) -> int | None:
    """Freeze the process that writes the checkpoints while a save is being written. None if the run ended first.

    Returns the id of the frozen process. A signal that is sent now arrives inside the save for certain. Before, the
    kills came some milliseconds after a save had been seen, and on a fast machine it was over by then.

    How: the checkpoint folder is polled. When the temporary folder of a save appears, a random part of a usual save's
    time passes (`save_s` is the time of one). Then the process gets SIGSTOP, and only when it has stopped is the
    temporary folder looked up again. If the save is over, the process gets SIGCONT, and the next save is awaited.
    """
    writer = tree.first_rank()
    while tree.until(lambda: run.saving, LIMIT_S, POLL_S):
        time.sleep(rng.uniform(0, save_s / 3))
        if tree.freeze(writer):
            if run.saving:
                return writer
            tree.send(signal.SIGCONT, [writer])
    return None
