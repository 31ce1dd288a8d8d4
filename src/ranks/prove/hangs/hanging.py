"""Any workload, in a process that hangs when it gets SIGUSR1. The proof copies this file and trains it.

The real workload is named by RANKS_PROOF_WORKLOAD, the way to hang by the content of the file RANKS_PROOF_FAULT.
"""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any

import torch.distributed as dist

from ranks.workloads import load


def hang(signum: int, frame: FrameType | None) -> None:
    """Hang in the main thread, wherever it is."""
    kind = Path(os.environ["RANKS_PROOF_FAULT"]).read_text(encoding="ascii")
    if kind == "loop":
        while True:
            pass
    while kind == "c":  # with Python's lock held, so that no other thread of the process runs; a signal ends one sleep
        ctypes.PyDLL(None).sleep(10**6)
    if kind == "collective" and dist.is_initialized():  # one that no other rank enters
        dist.barrier()


signal.signal(signal.SIGUSR1, hang)
real = load(os.environ["RANKS_PROOF_WORKLOAD"])
Config, build, evaluate = real.Config, real.build, real.evaluate
PRESETS = getattr(real, "PRESETS", {})


def train(cfg: Any, world: Any) -> Any:
    """Train as the real workload does."""
    return real.train(cfg, world)
