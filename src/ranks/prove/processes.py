"""A command and all processes that come from it. A mark in their environment variables identifies them."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

MARK = "RANKS_PROOF"
"""Environment variable of every process of a proof: the prover's process id, then an id of the command."""
GONE_S = 5.0
"""How long killed processes may take to end."""
FREEZE_S = 10.0
"""How long a process may take to obey SIGSTOP."""


class ProofError(Exception):
    """An experiment could not be carried out, or a command ended with another exit code than it must."""


class ProcessTree:
    """A `ranks ...` command and all processes it starts. Output goes to `log`, temporary files to `tmp`."""

    def __init__(self, arguments: Sequence[str], log: Path, tmp: Path, env: Mapping[str, str] | None = None) -> None:
        here = sys.path[0] in ("", os.getcwd())  # the children must find the same packages as this process
        argv = [sys.executable, *([] if here else ["-P"]), "-m", "ranks", *arguments]
        self.mark, self.log = f"{os.getpid()}-{uuid.uuid4().hex}", log
        with log.open("ab") as output:
            self.started_s = time.monotonic()
            self._process = subprocess.Popen(
                argv,
                env={**os.environ, **(env or {}), MARK: self.mark, "TMPDIR": str(tmp)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def launcher(self) -> int:
        """The process id of the command."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code as a shell shows it (128 + signal); None while the command runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def members(self) -> list[int]:
        """The ids of all living processes of the command, also those that are ending and have locks and files yet."""
        return sorted({*marked_processes(self.mark), *living_in_session(self.launcher)})

    def ranks(self) -> list[int]:
        """The processes of the ranks; empty while there are none. What a rank has started, such as workers that load
        its data, has the variables of the rank and is none."""
        found = [pid for pid in self.members() if rank_of(pid) is not None]
        return [pid for pid in found if parent_of(pid) not in found]

    def helpers(self, ranks: Sequence[int]) -> list[int]:
        """The processes that these ranks have started, such as workers that load data, with their own children."""
        return [pid for rank in ranks for pid in children(rank)]

    def first_rank(self) -> int:
        """The process id of rank 0, which writes the checkpoints."""
        for pid in self.ranks():
            with contextlib.suppress(psutil.Error):
                if rank_of(pid) == 0 and psutil.Process(pid).ppid() == self.launcher:
                    return pid
        return self.launcher

    def send(self, signum: int, pids: Sequence[int]) -> None:
        """Send a signal to processes; those that have ended are left out."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)

    def freeze(self, pid: int) -> bool:
        """Stop a process with SIGSTOP and wait until it has stopped. False if it has ended, or does not stop."""
        self.send(signal.SIGSTOP, [pid])
        deadline = time.monotonic() + FREEZE_S
        with contextlib.suppress(psutil.Error):
            while time.monotonic() < deadline:
                status = psutil.Process(pid).status()
                if status in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
                    return status == psutil.STATUS_STOPPED
                time.sleep(0.0005)
        self.send(signal.SIGCONT, [pid])
        return False

    def kill(self) -> None:
        """Send SIGKILL to every process until none is left. Raises ProofError."""
        deadline = time.monotonic() + GONE_S
        while members := self.members():
            self.send(signal.SIGKILL, members)
            self._process.poll()
            if time.monotonic() > deadline:
                raise ProofError(f"processes {members} do not end after SIGKILL")
        self._process.wait()

    def wait_gone(self, within_s: float = GONE_S) -> float | None:
        """Seconds until all processes had ended; None where some still run after `within_s`."""
        start = time.monotonic()
        while self.members() or self.code is None:
            if time.monotonic() - start > within_s:
                return None
            time.sleep(0.02)
        return time.monotonic() - start

    def until(self, ready: Callable[[], bool], limit_s: float, tick_s: float = 0.01) -> bool:
        """Wait until `ready()`. False if the command ended first. Raises ProofError after `limit_s`."""
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
        """Wait for the end; the exit code. After `limit_s` kills everything and raises ProofError."""
        self.until(lambda: self.code is not None, limit_s, 0.01)
        return self.code or 0

    def tail(self) -> str:
        """The end of the output."""
        return self.log.read_text(errors="replace")[-2000:].strip()


def rank_of(pid: int) -> int | None:
    """Which rank a process is. A forked rank has it in its name, another one in its environment variables."""
    with contextlib.suppress(psutil.Error):
        named = re.fullmatch(r"rank (\d+)", psutil.Process(pid).name())
        number = named.group(1) if named else variables_of(pid).get("RANK")
        return int(number) if number is not None else None
    return None


def parent_of(pid: int) -> int | None:
    """The process id of the parent; None where the process has ended."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).ppid()
    return None


def children(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def variables_of(pid: int) -> dict[str, str]:
    """The environment variables of a process; empty where it has ended or belongs to another user."""
    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}


def marked_processes(mark: str | None = None) -> list[int]:
    """Living processes with a mark; without one, all that this prover started."""
    wanted = mark or f"{os.getpid()}-"
    return [pid for pid in psutil.pids() if has_mark(pid, wanted)]


def has_mark(pid: int, mark: str) -> bool:
    """Whether the mark of a process starts with `mark`."""
    if sys.platform != "linux":
        return variables_of(pid).get(MARK, "").startswith(mark)
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # psutil takes several times as long
        return f"\0{MARK}={mark}".encode() in b"\0" + file.read()
    return False


def living_in_session(session: int) -> list[int]:
    """The processes of a session that are no zombies. One that is ending has lost its environment variables, and so its
    mark, before it closes its files."""
    found: list[int] = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(pid) == session and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return found


def left_running(within_s: float = GONE_S) -> list[int]:
    """Processes of this prover that still run after `within_s`."""
    deadline = time.monotonic() + within_s
    while (left := marked_processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def kill_marked() -> None:
    """Send SIGKILL to all processes that this prover started and that still run, until none is left: one may have just
    started another."""
    deadline = time.monotonic() + GONE_S
    while (left := marked_processes()) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


class ListenSampler:
    """While entered, samples the addresses on which this prover's processes listen (TCP, unconnected UDP)."""

    def __init__(self, period_s: float = 0.25) -> None:
        self.addresses: Counter[str] = Counter()
        self.samples = 0
        self._period_s, self._closing = period_s, threading.Event()
        self._thread = threading.Thread(target=self._watch, name="listening", daemon=True)

    def __enter__(self) -> ListenSampler:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._thread.join()

    @property
    def beyond_loopback(self) -> list[str]:
        return sorted(address for address in self.addresses if not is_loopback(address))

    def sample(self) -> None:
        self.addresses.update({address for pid in marked_processes() for address in listening_addresses(pid)})
        self.samples += 1

    def _watch(self) -> None:
        while not self._closing.wait(self._period_s):
            self.sample()


def listening_addresses(pid: int) -> set[str]:
    """The addresses on which a process listens."""
    try:
        connections = psutil.Process(pid).net_connections("inet")
    except (psutil.Error, OSError):
        return set()
    waiting = [
        c for c in connections if c.status == psutil.CONN_LISTEN or (not c.raddr and c.status == psutil.CONN_NONE)
    ]
    return {str(c.laddr.ip) for c in waiting if c.laddr}


def is_loopback(address: str) -> bool:
    """Whether an address can be reached from this machine only."""
    return ipaddress.ip_address(address.split("%")[0]).is_loopback
