"""The processes of one side, as the benchmark sees them: they wait, measure when asked, and
answer."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.chess.plan import Side
from benchmarks.measure import environment

FOLDER = Path(__file__).resolve().parent / "peers"
TIMEOUT_S = 240.0
"""A side that does not answer for so long is ended and reported."""


class SideProcess:
    """The processes of one side: started one after the other, asked and answered together."""

    def __init__(self, side: Side, threads: int, pythons: Sequence[str]) -> None:
        self.side, self.info = side, {"missing": "no Python given for the peers"}
        self.rates: list[float] = []
        self.answers: list[dict[str, float]] = []
        cores = [str(core) for core in range(threads)]
        self.processes: list[subprocess.Popen[str]] = []
        for python in pythons:
            self.processes = [self.start(python, each) for each in (cores if side.single else [",".join(cores)])]
            *_, self.info = [self.read(process) for process in self.processes]
            if "missing" not in self.info:
                return

    @property
    def ready(self) -> bool:
        return "missing" not in self.info

    def start(self, python: str, cores: str) -> subprocess.Popen[str]:
        command = [python, str(FOLDER / self.side.argv[0]), *self.side.argv[1:], "--cores", cores]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe, text=True)

    def read(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """The next line of a process, or that there is none; what went wrong it has said on
        stderr."""
        assert process.stdout is not None
        killer = threading.Timer(TIMEOUT_S, process.kill)
        killer.start()
        line = process.stdout.readline()
        killer.cancel()
        if line:
            return json.loads(line)
        return {"missing": f"ended with exit code {process.wait()}"}

    def measure(self, slice_s: float) -> None:
        """One round."""
        for process in self.processes:
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # one that has died is found by reading
                process.stdin.write(f"{slice_s}\n")
                process.stdin.flush()
        answers = [self.read(process) for process in self.processes]
        if any("missing" in answer for answer in answers):
            self.info = next(answer for answer in answers if "missing" in answer)
            return
        self.rates.append(sum(answer["done"] / answer["seconds"] for answer in answers))
        self.answers += answers

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
