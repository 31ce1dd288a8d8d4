"""The time of the first start of the chess core, which compiles, and of later starts (about a
minute).

    python -m benchmarks.chess.compile

Each start is a process with its own cache folder. The seconds are those of its imports, including
Numba's. Finally two processes compile the rules into one folder at the same time, and a third one
must find all kernels compiled.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.measure import environment, origin, write_result

PARTS = {
    "rules": ["ranks.chess.board"],
    "rules and alpha-beta": ["ranks.chess.board", "ranks.chess.players.alphabeta"],
    "rules and tree search": ["ranks.chess.board", "ranks.chess.players.tree_search"],
    "everything": ["ranks.chess.board", "ranks.chess.players.alphabeta", "ranks.chess.players.tree_search"],
}
START = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def start(modules: list[str], cache: str) -> subprocess.Popen[str]:
    """Begin to import these modules in a new process."""
    command = [sys.executable, "-c", START.format(", ".join(modules))]
    return subprocess.Popen(command, env=environment(NUMBA_CACHE_DIR=cache), stdout=subprocess.PIPE, text=True)


def seconds(process: subprocess.Popen[str]) -> float:
    """What a start printed. RuntimeError if it failed."""
    said = process.communicate()[0]
    if process.returncode:
        raise RuntimeError(f"the import ended with exit code {process.returncode}")
    return round(float(said), 2)


def main() -> None:
    found: dict[str, Any] = {"origin": origin(), "starts": {}}
    for name, modules in PARTS.items():
        with tempfile.TemporaryDirectory() as cache:
            first_s, later_s = (seconds(start(modules, cache)) for _ in range(2))
        found["starts"][name] = {"first_s": first_s, "later_s": later_s}
        print(f"{name}: first start {first_s} s, later {later_s} s", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        both = [start(PARTS["rules"], cache) for _ in range(2)]
        found["two_at_once_s"] = [seconds(process) for process in both]
        found["after_two_s"] = seconds(start(PARTS["rules"], cache))
    print(f"two at once: {found['two_at_once_s']} s, then {found['after_two_s']} s")
    write_result(f"chess_compile_{found['origin']['date'][:10]}", found)


if __name__ == "__main__":
    main()
