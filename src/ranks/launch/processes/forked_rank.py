"""The fork server's process, and each rank that it forks: `python -m ranks.launch.processes.forked_rank SOCKET`."""

from __future__ import annotations

import gc
import importlib
import runpy
import socket
import sys
import warnings

from ranks.launch.processes.fork_server import serve

PRELOADED = ("torch", "torch.distributed", "tyro", "ranks.engine.runs.run", "ranks.engine.update.learner")
"""What every rank imports. No module of a workload: a user's code may do anything when it is imported."""


def main() -> None:
    gc.disable()  # the imports make 300,000 objects, all of which stay: collections take a fifth of the time
    for module in PRELOADED:
        importlib.import_module(module)
    gc.enable()
    gc.freeze()  # a collection in a rank then does not touch, and so copy, the memory that all ranks share
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # OpenBLAS has a thread, and survives a fork
        module = serve(socket.socket(fileno=int(sys.argv[1])))
    if module is not None:
        sys.argv[1:] = module[1:]
        runpy.run_module(module[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
