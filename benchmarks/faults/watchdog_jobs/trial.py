"""One run of the job under the real launcher, watched from outside until something is named."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.faults.watchdog_jobs.job import PIDS, STARTED
from benchmarks.measure import environment
from ranks.engine.files.jsonl import number, read_rows
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, SESSIONS_FILE, TELEMETRY_FILE
from ranks.engine.runs.sessions import NOTICES

JOB = Path(__file__).parent / "job.py"
NAME, POLL_S, START_LIMIT_S = "job", 0.2, 180.0
CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD_US = 20_000


class Trial:
    """A run in a temporary folder. Use it as a context manager; all its processes are ended at the end."""

    def __init__(self, num_ranks: int, settings: Mapping[str, Any], *, seed: int = 1) -> None:
        self.runs_dir = Path(tempfile.mkdtemp(prefix="watchdog-runs-"))
        self.folder = self.runs_dir / NAME
        flags = [
            f"--{name.replace('_', '-')}" + ("" if isinstance(value, bool) else f"={value}")
            for name, value in settings.items()
            if value is not False
        ]
        engine = [f"--ranks={num_ranks}", "--gpus=none", "--threads=1", f"--seed={seed}", f"--name={NAME}"]
        command = [sys.executable, "-m", "ranks", "train", str(JOB), *engine, f"--runs-dir={self.runs_dir}", *flags]
        with (self.runs_dir / "launcher.log").open("wb") as log:
            self.process = subprocess.Popen(
                command, env=environment(), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            for _ in range(2):  # the second one kills ranks that hang
                self.process.send_signal(signal.SIGINT)
                time.sleep(1.0)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.runs_dir, ignore_errors=True)

    @property
    def notices(self) -> list[dict[str, Any]]:
        return [row for row in read_rows(self.folder / SESSIONS_FILE) if row.get("event") in NOTICES]

    @property
    def longest_save_s(self) -> float:
        """Of those that ended."""
        return max((number(row, "seconds") or 0.0 for row in read_rows(self.folder / EVENTS_FILE)), default=0.0)

    @property
    def iterations(self) -> int:
        return max((int(row["iteration"]) for row in read_rows(self.folder / METRICS_FILE)), default=0)

    @property
    def telemetry(self) -> list[dict[str, Any]]:
        return read_rows(self.folder / TELEMETRY_FILE)

    def output(self) -> str:
        """What the launcher printed."""
        return (self.runs_dir / "launcher.log").read_text(encoding="utf-8", errors="replace")

    def wait(self, until: Callable[[], bool], limit_s: float) -> bool:
        """Whether it became true within the limit and before the run ended."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if until():
                return True
            if self.process.poll() is not None:
                return until()
            time.sleep(POLL_S)
        return False

    def started_s(self) -> float | None:
        """When the hang began, in Unix seconds."""
        with contextlib.suppress(OSError, ValueError):
            return float((self.folder / STARTED).read_text())
        return None

    def pid_of(self, rank: int) -> int:
        """Of a rank that has opened the run."""
        self.wait((self.folder / f"{PIDS}{rank}").exists, START_LIMIT_S)
        return int((self.folder / f"{PIDS}{rank}").read_text())

    def launcher_cpu_s(self) -> tuple[float, float]:
        """CPU seconds of the launcher's main thread, in which the watchdog is, and of all its threads."""
        process = psutil.Process(self.process.pid)
        threads = {thread.id: thread.user_time + thread.system_time for thread in process.threads()}
        return threads[self.process.pid], sum(threads.values())


@contextmanager
def cpu_quota(pid: int, share: float) -> Generator[None]:
    """Give a process and its threads this share of one core (cgroup v1, needs root)."""
    group = CPU_GROUPS / f"ranks-watchdog-{pid}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(int(share * PERIOD_US)))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        with contextlib.suppress(OSError):
            for member in (group / "cgroup.procs").read_text().split():
                (CPU_GROUPS / "cgroup.procs").write_text(member)
        with contextlib.suppress(OSError):
            group.rmdir()


def described(notice: Mapping[str, Any]) -> dict[str, Any]:
    """A notice for the result file."""
    names = ("event", "rank", "cause", "phase", "silence_s", "own_s", "others_s", "lag_s", "where", "text")
    return {name: notice[name] for name in names if notice.get(name) not in (None, "")}
