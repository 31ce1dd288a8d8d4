"""A command as a tree of processes, found again by a mark in its environment however it was started, and killed."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

MARK = "RANKS_PROOF"
"""Environment variable that every process of a proof carries: the prover's id, then the command's."""
GONE_S = 5.0
"""How long a killed tree may take to be gone."""


class ProofError(Exception):
    """An experiment could not be carried out as planned, or the command under proof ended otherwise than it must."""


class Tree:
    """A `ranks ...` command and all that it starts. Its output goes to `log`, its temporary files to `scratch`."""

    def __init__(self, arguments: Sequence[str], log: Path, scratch: Path) -> None:
        here = sys.path[0] in ("", os.getcwd())  # the children find the same packages as this process does
        argv = [sys.executable, *([] if here else ["-P"]), "-m", "ranks", *arguments]
        self.mark, self.log = f"{os.getpid()}-{uuid.uuid4().hex}", log
        with log.open("ab") as output:
            self.begun_s = time.monotonic()
            self._process = subprocess.Popen(
                argv,
                env={**os.environ, MARK: self.mark, "TMPDIR": str(scratch)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def launcher(self) -> int:
        """The process that was started; the only rank itself where there is one."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """None while it runs, then the exit code as a shell sees it (128 + signal)."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def members(self) -> list[int]:
        """All living processes that carry the mark."""
        return marked(self.mark)

    def ranks(self) -> list[int]:
        """The processes that are ranks of a launcher (none where the command itself is the only rank)."""
        return [pid for pid in self.members() if "RANK" in environment(pid)]

    def send(self, signum: int, pids: Sequence[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)

    def kill(self) -> None:
        """SIGKILL to every process, again until none is left."""
        deadline = time.monotonic() + GONE_S
        while members := self.members():
            self.send(signal.SIGKILL, members)
            self._process.poll()
            if time.monotonic() > deadline:
                raise ProofError(f"processes {members} outlive SIGKILL")
        self._process.wait()

    def gone(self, within_s: float = GONE_S) -> float | None:
        """Seconds until no process of it was left; None where some outlive `within_s`."""
        start = time.monotonic()
        while self.members() or self.code is None:
            if time.monotonic() - start > within_s:
                return None
            time.sleep(0.02)
        return time.monotonic() - start

    def until(self, ready: Callable[[], bool], limit_s: float, tick_s: float = 0.005) -> bool:
        """Wait until `ready()`; False when the command ended first. Raises ProofError after `limit_s`."""
        deadline = time.monotonic() + limit_s
        while not ready():
            if self.code is not None:
                return False
            if time.monotonic() > deadline:
                self.kill()
                raise ProofError(f"nothing happened within {limit_s:.0f} s; it printed:\n{self.tail()}")
            time.sleep(tick_s)
        return True

    def wait(self, limit_s: float) -> int:
        """Its exit code. Raises ProofError, with everything killed, where it takes longer."""
        self.until(lambda: self.code is not None, limit_s, 0.01)
        return self.code or 0

    def tail(self) -> str:
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-2000:].strip()


def environment(pid: int) -> dict[str, str]:
    """A process's environment; empty where it is gone or another user's."""
    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}


def marked(mark: str | None = None) -> list[int]:
    """Living processes that carry a mark, or any of this prover's."""
    wanted = mark or f"{os.getpid()}-"
    return [pid for pid in psutil.pids() if environment(pid).get(MARK, "").startswith(wanted)]


def left_running(within_s: float = GONE_S) -> list[int]:
    """Processes of this prover that are still there after `within_s`."""
    deadline = time.monotonic() + within_s
    while (left := marked()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def end_all() -> None:
    """SIGKILL to whatever an interrupted proof leaves behind."""
    for pid in marked():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Listening:
    """While entered, samples the addresses on which processes of this prover wait for others (TCP, unconnected UDP)."""

    def __init__(self, period_s: float = 0.25) -> None:
        self.addresses: Counter[str] = Counter()
        self.samples = 0
        self._period_s, self._ended = period_s, threading.Event()
        self._thread = threading.Thread(target=self._watch, name="listening", daemon=True)

    def __enter__(self) -> Listening:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def beyond_loopback(self) -> list[str]:
        return sorted(address for address in self.addresses if not loopback(address))

    def sample(self) -> None:
        self.addresses.update({address for pid in marked() for address in listening(pid)})
        self.samples += 1

    def _watch(self) -> None:
        while not self._ended.wait(self._period_s):
            self.sample()


def listening(pid: int) -> set[str]:
    """The addresses on which one process waits for others."""
    try:
        connections = psutil.Process(pid).net_connections("inet")
    except (psutil.Error, OSError):
        return set()
    waiting = [
        c for c in connections if c.status == psutil.CONN_LISTEN or (not c.raddr and c.status == psutil.CONN_NONE)
    ]
    return {str(c.laddr.ip) for c in waiting if c.laddr}


def loopback(address: str) -> bool:
    """Whether nobody outside this machine reaches an address."""
    return ipaddress.ip_address(address.split("%")[0]).is_loopback
