"""Make one rank of a running command hang, in a chosen phase."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import psutil

from ranks.engine.liveness.beats import Beat, BeatsFile, limit_of
from ranks.engine.liveness.phases import Phase
from ranks.prove.processes import ProcessTree, children, rank_of
from ranks.prove.train_command import LIMIT_S, TrainCommand

FaultKind = Literal["stop", "loop", "c", "collective", "worker"]
KINDS: tuple[FaultKind, ...] = ("stop", "loop", "c", "collective", "worker")
"""SIGSTOP, an endless Python loop, a sleep in C, a collective that nobody else enters, SIGSTOP of an environment's
process."""
PHASES = (Phase.START, Phase.TRAIN, Phase.EVALUATE, Phase.SAVE)
POLL_S = 0.0005
SETTLE_S = 1.0
"""A rank that shows nothing for this long after a fault hangs."""
BEATS_NAME = "beats-"
"""How the names of the files begin in which ranks show their phase."""
WORKLOAD = Path(__file__).with_name("hanging.py")


@dataclass(frozen=True)
class Fault:
    """A hang that was made. `phase`: of the rank, when it had begun. `limit_s`: after which it counts as a hang."""

    kind: FaultKind
    rank: int
    phase: Phase
    made_s: float
    limit_s: float
    line: int
    """Of hanging.py, where the rank hangs in Python; 0 elsewhere."""


def hanging_workload(folder: Path, workload: str, run: str) -> tuple[str, dict[str, str]]:
    """Copy hanging.py to a folder; (its path, the environment variables that it needs in this run)."""
    path = folder / "hanging" / WORKLOAD.name
    path.parent.mkdir(exist_ok=True)
    shutil.copy(WORKLOAD, path)
    real = str(Path(workload).resolve()) if Path(workload).exists() else workload
    return str(path), {"RANKS_PROOF_WORKLOAD": real, "RANKS_PROOF_FAULT": str(path.with_name(f"{run}.fault"))}


def line_of(kind: FaultKind) -> int:
    """The line of hanging.py at which a rank hangs, 0 for a hang that is no line of it."""
    lines = WORKLOAD.read_text(encoding="utf-8").splitlines()
    sought = {"loop": "while True:", "c": 'while kind == "c"'}.get(kind)
    return next(n for n, line in enumerate(lines, 1) if sought in line) if sought is not None else 0


class RunningRanks:
    """The ranks of the present attempt of a command: their processes, and the rows that they write."""

    def __init__(self, tree: ProcessTree, size: int) -> None:
        self.tree, self.size = tree, size
        self.pids: dict[int, int] = {}
        self._beats: BeatsFile | None = None
        self._path = ""

    def attach(self) -> bool:
        """Find all ranks of a newer attempt than the last one that was found. False while there is none."""
        found: dict[int, int] = {}
        paths: set[str] = set()
        for pid in self.tree.members():
            rank, path = rank_of(pid), beats_of(pid)
            with contextlib.suppress(psutil.Error):
                if rank is not None and path and psutil.Process(pid).ppid() == self.tree.launcher:
                    found[rank] = pid
                    paths.add(path)
        if len(found) < self.size or len(paths) != 1 or self._path in paths:
            return False
        path = paths.pop()
        with contextlib.suppress(OSError, ValueError):
            self._beats, self.pids, self._path = BeatsFile(Path(path), self.size), found, path
            return True
        return False

    def rows(self) -> list[Beat]:
        assert self._beats is not None
        return self._beats.read()

    def alive(self) -> bool:
        """Whether all processes still run."""
        return all(psutil.pid_exists(pid) for pid in self.pids.values())


class FaultMaker:
    """Makes hangs in the ranks of one command."""

    def __init__(self, run: TrainCommand, tree: ProcessTree, rng: random.Random, timeout_s: float) -> None:
        self.run, self.rng, self.timeout_s = run, rng, timeout_s
        self.tree, self.ranks = tree, RunningRanks(tree, run.layout.ranks)

    def make(self, kind: FaultKind, phase: Phase, ready: Callable[[], bool]) -> Fault | None:
        """Make a random rank of the next attempt hang in a phase, once `ready()`. None if the command ended before.

        A fault that Python code carries out can come a moment late; the phase in which it hangs is then another one.
        """
        while self.tree.until(self.ranks.attach, LIMIT_S, 0.02) and self.tree.until(ready, LIMIT_S):
            while self.ranks.alive():
                rank = 0 if phase == Phase.SAVE else self.rng.randrange(self.run.layout.ranks)  # the first rank saves
                if not self.tree.until(partial(self._reached, rank, phase), LIMIT_S, POLL_S):
                    return None
                if self.ranks.alive() and self._hang(kind, rank, phase):
                    rows = self.ranks.rows()
                    found = rows[rank].phase
                    limit = limit_of(found, rows, self.timeout_s)
                    return Fault(kind, rank, found, time.monotonic(), limit, line_of(kind))
        return None

    def _reached(self, rank: int, phase: Phase) -> bool:
        """Whether the rank is in the phase, or the attempt has ended."""
        return self._in_phase(rank, phase) or not self.ranks.alive()

    def _in_phase(self, rank: int, phase: Phase) -> bool:
        return self.ranks.rows()[rank].phase == phase

    def _hang(self, kind: FaultKind, rank: int, phase: Phase) -> bool:
        """Begin to hang; False if it came too late for that."""
        pid = self.ranks.pids[rank]
        if kind == "worker" and (workers := children(pid)):
            self.tree.send(signal.SIGSTOP, workers)
            return self._settled(rank)
        if kind in ("stop", "worker") or (kind == "collective" and len(self.ranks.pids) == 1):
            if self.tree.freeze(pid) and self._in_phase(rank, phase):
                return True
            self.tree.send(signal.SIGCONT, [pid])
            return False
        if not handles_signal(pid, signal.SIGUSR1):
            time.sleep(POLL_S)
            return False
        Path(self.run.env["RANKS_PROOF_FAULT"]).write_text(kind, encoding="ascii")
        self.tree.send(signal.SIGUSR1, [pid])
        return self._settled(rank)

    def _settled(self, rank: int) -> bool:
        """Wait until the rank shows nothing any more; False where it goes on, or where the command ends."""
        before, since_s = self.ranks.rows()[rank], time.monotonic()
        deadline_s = since_s + 20 * SETTLE_S
        while time.monotonic() < deadline_s and self.tree.code is None:
            time.sleep(0.05)
            now = self.ranks.rows()[rank]
            if now != before:
                before, since_s = now, time.monotonic()
            elif not self.ranks.alive() or time.monotonic() - since_s > SETTLE_S:
                return True  # gloo ends a rank that enters another collective than the others
        return False


def beats_of(pid: int) -> str:
    """The path of the file in which a rank shows its phase and counters; empty while it has none open (Linux)."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    paths = [line.split(maxsplit=5)[5] for line in maps if BEATS_NAME in line]
    return next((path for path in paths if Path(path).name.startswith(BEATS_NAME)), "")


def handles_signal(pid: int, signum: int) -> bool:
    """Whether a process has a handler for a signal (Linux)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (signum - 1) & 1)
