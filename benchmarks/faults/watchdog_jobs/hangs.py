"""Fifteen ways to hang. The line that hangs ends with a comment that names its cause: the watchdog must name it."""

from __future__ import annotations

import ctypes
import os
import queue
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import torch.distributed as dist

from ranks import World

Place = Literal["gather", "loss", "loop", "evaluate", "save"]
LONG_S = 10_000.0
QUERY = b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04data\x00\x00\x01\x00\x01"
"""For the address of `data`, as a resolver sends it."""


def receive(world: World) -> None:
    dist.recv(torch.zeros(1), src=1 - world.rank)  # hang: receive


def other_collective(world: World) -> None:
    world.comm.gather_equal(torch.zeros(4))  # hang: other collective


def own_collective(world: World) -> None:
    dist.barrier()  # hang: own collective


def sleep(world: World) -> None:
    time.sleep(LONG_S)  # hang: sleep


def endless_loop(world: World) -> None:
    while True:
        world.seed  # noqa: B018  # hang: endless loop


def stopped(world: World) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def lock(world: World) -> None:
    mine = threading.Lock()
    mine.acquire()
    mine.acquire()  # hang: lock


def fifo(world: World) -> None:
    path = Path(tempfile.mkdtemp(prefix="watchdog-")) / "fifo"
    os.mkfifo(path)
    path.open("wb")  # hang: fifo


def name_server(world: World) -> None:
    silent, resolver = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    silent.bind(("127.0.0.1", 0))
    resolver.sendto(QUERY, silent.getsockname())
    resolver.recv(512)  # hang: name server


def child(world: World) -> None:
    subprocess.run(["sleep", str(int(LONG_S))], check=True)  # hang: child


def python_lock_in_c(world: World) -> None:
    ctypes.PyDLL(None).sleep(int(LONG_S))  # hang: python lock in c


def dead_loader(world: World) -> None:
    batches: queue.Queue[int] = queue.Queue()
    batches.get()  # hang: dead loader


def regular_expression(world: World) -> None:
    re.match(r"(a+)+$", "a" * 64 + "b")  # hang: regular expression


def evaluation(world: World) -> None:
    time.sleep(LONG_S)  # hang: evaluation


def save(world: World) -> None:
    def blocked(descriptor: int) -> None:
        time.sleep(LONG_S)  # hang: save

    os.fsync = blocked  # a disk that does not answer


@dataclass(frozen=True)
class Hang:
    """`place`: where in the job it happens; `phase`: which one the watchdog must name. `rank`: the only one that can
    hang so; None for any. `both`: the ranks wait for each other, and nothing says which one is wrong: both must be
    named, each with its line."""

    act: Callable[[World], None]
    place: Place
    phase: str = "train"
    rank: int | None = None
    both: bool = False


HANGS = {
    "receive": Hang(receive, "loop"),
    "other collective": Hang(other_collective, "loop", both=True),
    "sleep": Hang(sleep, "gather"),
    "endless loop": Hang(endless_loop, "loss"),
    "stopped": Hang(stopped, "loss"),
    "lock": Hang(lock, "loop"),
    "fifo": Hang(fifo, "loop"),
    "name server": Hang(name_server, "gather"),
    "child": Hang(child, "gather"),
    "python lock in c": Hang(python_lock_in_c, "loss"),
    "dead loader": Hang(dead_loader, "gather"),
    "regular expression": Hang(regular_expression, "gather"),
    "own collective": Hang(own_collective, "loss"),
    "evaluation": Hang(evaluation, "evaluate", "evaluate"),
    "save": Hang(save, "save", "save", rank=0),
}
"""Cause -> how. A stopped process cannot say its line."""


def line_of(cause: str) -> int | None:
    """The line of this file that hangs; None where none can be named."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.endswith(f"# hang: {cause}")), None)
