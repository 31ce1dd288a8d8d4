"""The process that forks commands: see `tests.forked`."""

from __future__ import annotations

import array
import fcntl
import gc
import importlib
import json
import os
import socket
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from tests.forked import command as forked
from tests.forked.command import RanksCommand, become

HIGH = 200
"""Descriptors of a request are moved above this number, out of the way of those that the command gets."""
MESSAGE_BYTES, MOST_DESCRIPTORS = 1 << 20, 16
ALSO_PRELOADED = ("ranks.cli.main", "ranks.cli.commands.train", "ranks.watch.console", "ranks.watch.tensorboard")


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[2]))
    forked.SERVER_PATH[:] = sys.path[1:]
    gc.disable()
    launcher = importlib.import_module("ranks.launch.processes.forked_rank")
    for module in (*launcher.PRELOADED, *ALSO_PRELOADED):
        importlib.import_module(module)
    del sys.modules[launcher.__name__]  # it is run as __main__ by launchers
    gc.enable()
    gc.freeze()
    warnings.filterwarnings("ignore", "This process .* is multi-threaded")  # OpenBLAS has a thread, and survives a fork
    connection.send(b"ready")
    while True:
        size = socket.CMSG_SPACE(MOST_DESCRIPTORS * array.array("i").itemsize)
        message, ancillary, _, _ = connection.recvmsg(MESSAGE_BYTES, size)
        if not message:
            return
        received = array.array("i")
        for _, _, data in ancillary:
            received.frombytes(data)
        reader, writer = os.pipe()
        middle = os.fork()
        if not middle:
            middle = os.getpid()
            if os.fork():
                os._exit(0)
            while os.getppid() == middle:  # until then the test process could not wait for this one
                os.sched_yield()
            start(json.loads(message), list(received), writer)
        os.close(writer)  # so that a command which ends before it has sent its id does not leave this process waiting
        os.waitpid(middle, 0)
        connection.send(os.read(reader, 32) or b"none")
        for descriptor in (reader, *received):
            os.close(descriptor)


def start(request: dict[str, Any], received: Sequence[int], writer: int) -> None:
    """Be the process of a request, which tells its id when it has its session, folder and descriptors."""
    numbers: list[int] = request["descriptors"]
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, HIGH) for descriptor in (*received, writer)]
    *sources, writer = high
    for source, number in zip(sources, numbers, strict=True):
        os.dup2(source, number)
    os.chdir(request["cwd"])
    os.sched_setaffinity(0, request["cores"])
    if request["start_new_session"]:
        os.setsid()
    elif request["process_group"] >= 0:
        os.setpgid(0, request["process_group"])
    os.write(writer, str(os.getpid()).encode())
    become(RanksCommand(**request["command"]), request["env"], [n for n in numbers if n > 2])
