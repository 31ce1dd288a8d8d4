"""`ranks doctor`: faults made where they happen (namespaces, mounts, limits, libraries), and what it says of them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranks.hardware.doctor.checks import clock, disk, processor
from ranks.hardware.doctor.finding import Asked, Severity

ASKED = Asked(ranks=2, runs_dir="runs")
needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare"
)


def doctor(
    *flags: str, before: str = "", cwd: Path, environ: dict[str, str] | None = None
) -> tuple[int, list[dict[str, Any]]]:
    """Run the command in a new mount namespace where `before`, a shell command, needs one."""
    argv = [sys.executable, "-m", "ranks", "doctor", "--json", *flags]
    if before:
        argv = ["sh", "-c", f'{before}; exec "$@"', "sh", *argv]
    if "mount" in before:
        argv = ["unshare", "--mount", *argv]
    done = subprocess.run(
        argv, cwd=cwd, env={**os.environ, **(environ or {})}, capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)["findings"]


def first_on_path(folder: Path) -> dict[str, str]:
    """Process variables with which Python finds the modules of a folder before all others."""
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


def bad(findings: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """(severity, topic, found) of failures and warnings."""
    severe = ("failure", "warning")
    return [(f["severity"], f["topic"], f["found"]) for f in findings if f["severity"] in severe]


def one(findings: list[dict[str, Any]]) -> dict[str, Any]:
    """The only failure or warning; it says what is expected and what to do."""
    (found,) = [f for f in findings if f["severity"] in ("failure", "warning")]
    assert found["expected"]
    assert found["do"]
    return found


def severities(findings: Any) -> list[Severity]:
    return [finding.severity for finding in findings]


def test_a_machine_that_trains_has_no_failure(tmp_path: Path) -> None:
    """The machine of the tests may be so busy that a check takes too long, or have a disk that earns a warning."""
    code, findings = doctor(cwd=tmp_path)
    failures = [f for f in findings if f["severity"] == "failure" and not f["found"].startswith("no answer after")]
    assert failures == []
    assert code in (0, 1)
    assert {f["topic"] for f in findings} >= {"torch", "memory", "all-reduce"}
    assert list(tmp_path.iterdir()) == []


@needs_root
@pytest.mark.parametrize(
    ("check", "before", "topic", "said"),
    [
        ("memory", "mount -t tmpfs -o size=1m tmpfs /dev/shm", "/dev/shm", "1 MiB free"),
        ("disk", "mkdir runs; mount -t tmpfs -o ro tmpfs runs", "runs folder", "Read-only file system"),
        ("disk", "mkdir runs; mount -t tmpfs -o size=8m tmpfs runs", "runs folder", "8 MiB free"),
        ("disk", "mkdir runs; mount -t tmpfs -o size=300m,nr_inodes=9 tmpfs runs", "runs folder", "free inodes"),
        ("limits", "ulimit -n 64", "open files", "a limit of 64"),
        ("network", "", "loopback", "127.0.0.1"),
    ],
)
def test_a_fault_of_the_machine_is_named(check: str, before: str, topic: str, said: str, tmp_path: Path) -> None:
    flags = ["--only", check, "--checkpoint-gb", "0.2"]
    if check == "network":
        argv = ["unshare", "--net", sys.executable, "-m", "ranks", "doctor", "--json", *flags]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        code, findings = done.returncode, json.loads(done.stdout)["findings"]
    else:
        code, findings = doctor(*flags, before=before, cwd=tmp_path)
    failures = [f for f in findings if f["severity"] == "failure"]
    assert code == 1
    assert failures[0]["topic"] == topic
    assert said in failures[0]["found"]
    assert failures[0]["expected"]
    assert failures[0]["do"]


@contextlib.contextmanager
def listening() -> Iterator[int]:
    """A port that this process has."""
    with socket.create_server(("", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_that_is_taken_and_an_interface_that_is_not_there(tmp_path: Path) -> None:
    with listening() as port:
        environ = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": "0"}
        code, findings = doctor("--only", "network", cwd=tmp_path, environ=environ)
    found = next(f for f in findings if f["topic"] == "meeting")
    assert code == 1
    assert f"port {port}: Address already in use" in found["found"]
    assert str(os.getpid()) in found["found"]
    environ = {"GLOO_SOCKET_IFNAME": "eth77"}
    code, findings = doctor("--only", "network", cwd=tmp_path, environ=environ)
    found = next(f for f in findings if f["topic"] == "interface")
    assert (code, found["severity"]) == (1, "failure")
    assert "no interface eth77 is up" in found["found"]


def test_a_run_from_the_future(tmp_path: Path) -> None:
    rows = tmp_path / "runs" / "late" / "metrics.jsonl"
    rows.parent.mkdir(parents=True)
    rows.touch()
    tomorrow = time.time() + 86_400
    os.utime(rows, (tomorrow, tomorrow))
    code, findings = doctor("--only", "clock", cwd=tmp_path)
    assert code == 0
    assert "has written 1440 minutes later" in one(findings)["found"]
    assert doctor("--only", "clock", "--strict", cwd=tmp_path)[0] == 1


class SteppingClock:
    """Clocks that move by what is slept. The wall clock is set back by a minute after two seconds."""

    def __init__(self) -> None:
        self.steady_s = 100.0

    def sleep(self, seconds: float) -> None:
        self.steady_s += seconds

    def monotonic(self) -> float:
        return self.steady_s

    def wall(self) -> float:
        return 1.8e9 + self.steady_s - (60.0 if self.steady_s > 102.0 else 0.0)


def test_a_clock_that_is_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stepping = SteppingClock()
    monkeypatch.setattr(time, "sleep", stepping.sleep)
    monkeypatch.setattr(time, "monotonic", stepping.monotonic)
    monkeypatch.setattr(time, "time", stepping.wall)
    assert clock.measure(Asked(2, str(tmp_path))).jump_s == pytest.approx(-60.0)
    jumped = clock.ClockFacts(1.8e9, -60.0, 0.0, -1.0, -1.0)
    (found,) = clock.judge(jumped, ASKED)
    assert (found.severity, found.found) == (Severity.WARNING, "it jumped by -60.0 s within 3 s")


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_runs_folder_that_cannot_be_made(kind: str, tmp_path: Path) -> None:
    """A file in its place, and a link to a disk that is not mounted. Its parent could be written."""
    runs = tmp_path / "runs"
    if kind == "file":
        runs.write_text("no folder")
    else:
        runs.symlink_to(tmp_path / "volume")
    asked = replace(ASKED, runs_dir=str(runs / "mine"), checkpoint_bytes=1)
    found = next(iter(disk.judge(disk.measure(asked), asked)))
    assert (found.severity, found.topic) == (Severity.FAILURE, "runs folder")
    assert {"file": "is a file, not a folder", "link": "which does not exist"}[kind] in found.found


# Libraries that hang, lie or die -------------------------------------------------------------------------------------

NVML = """
import os, time
class NVMLError(Exception): pass
class Memory: total, used = 24 * 2**30, {used}
class Process: pid, usedGpuMemory = {pid}, {used}
def nvmlInit(): {init}
def nvmlShutdown(): pass
def nvmlSystemGetDriverVersion(): return "580.1"
def nvmlSystemGetCudaDriverVersion(): return 13000
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(i): return i
def nvmlDeviceGetName(handle): return "NVIDIA GeForce RTX 4090"
def nvmlDeviceGetMemoryInfo(handle): return Memory
def nvmlDeviceGetComputeRunningProcesses(handle): return {processes}
def nvmlDeviceGetCurrentClocksThrottleReasons(handle): return {slowed}
nvmlClocksThrottleReasonHwThermalSlowdown = 64
def nvmlDeviceGetTotalEccErrors(handle, kind, counter): return {ecc}
def nvmlDeviceGetCurrPcieLinkWidth(handle): return {width}
def nvmlDeviceGetMaxPcieLinkWidth(handle): return 16
"""
HEALTHY: dict[str, Any] = {"init": "pass", "used": 0, "slowed": 0, "ecc": 0, "width": 16, "pid": os.getpid()}
HEALTHY["processes"] = "[Process] if Memory.used else []"


@pytest.mark.parametrize(
    ("changes", "flags", "expected"),
    [
        ({}, [], []),
        ({}, ["--gpus", "8"], [("failure", "gpus", "2 x NVIDIA GeForce RTX 4090")]),
        ({}, ["--gpus", "2", "--expect", "B200"], [("failure", "gpus", "RTX 4090")]),
        ({}, ["--expect", "4090:2"], []),
        ({}, ["--expect", "4090:8"], [("failure", "gpus", "2 x NVIDIA GeForce RTX 4090")]),
        ({"used": 9 * 2**30}, [], [("warning", "gpu 0", "9.0 of 24 GiB"), ("warning", "gpu 1", "are used by")]),
        ({"used": 9 * 2**30, "pid": "os.getpid()"}, [], []),  # a process of the doctor
        (
            {"used": 9 * 2**30, "processes": "[]"},
            [],
            [("warning", "gpu 0", "driver names no process"), ("warning", "gpu 1", "driver names no process")],
        ),
        ({"slowed": 64}, [], [("warning", "gpu 0", "too hot"), ("warning", "gpu 1", "too hot")]),
        ({"ecc": 3}, [], [("warning", "gpu 0", "3 uncorrected"), ("warning", "gpu 1", "3 uncorrected")]),
        ({"width": 8}, [], [("warning", "gpu 0", "8 of 16 PCI lanes"), ("warning", "gpu 1", "8 of 16")]),
        ({"init": "os.abort()"}, [], [("failure", "gpus", "killed by SIGABRT")]),
    ],
)
def test_what_the_driver_says(
    changes: dict[str, Any], flags: list[str], expected: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    (tmp_path / "pynvml.py").write_text(NVML.format(**{**HEALTHY, **changes}))
    code, findings = doctor("--only", "driver", *flags, cwd=tmp_path, environ=first_on_path(tmp_path))
    found = bad(findings)
    assert code == any(severity == "failure" for severity, _, _ in expected)
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert all(part in row[2] for row, (_, _, part) in zip(found, expected, strict=True))


def test_a_library_that_hangs_is_left_with_the_line_at_which_it_hangs(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text(NVML.format(**{**HEALTHY, "init": "time.sleep(1000)"}))
    (tmp_path / "sitecustomize.py").write_text(
        "import ranks.hardware.doctor.doctor as d; from dataclasses import replace\n"
        "d.PROBES = tuple(replace(p, limit_s=8.0) for p in d.PROBES)\n"
    )
    code, findings = doctor("--only", "driver", cwd=tmp_path, environ=first_on_path(tmp_path))
    found = one(findings)
    assert code == 1
    assert found["found"].startswith("no answer after 8 s: in pynvml.py:")
    assert "nvmlInit" in found["found"]


def test_a_torch_that_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.13: cannot open shared object file')")
    code, findings = doctor("--only", "software", cwd=tmp_path, environ=first_on_path(tmp_path))
    assert code == 1
    assert "cannot be imported: OSError: libcudart.so.13" in one(findings)["found"]


def test_a_process_that_takes_the_cores_is_seen_unless_it_is_the_doctor_s() -> None:
    """On a busy machine others may take more."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            foreign = processor.measure(ASKED)
            own = processor.measure(Asked(2, "runs", doctor_pid=os.getpid()))
        finally:
            busy.kill()
    assert busy.pid in [pid for pid, _, _ in foreign.foreign]
    assert busy.pid not in [pid for pid, _, _ in own.foreign]
    taken = processor.ProcessorFacts(2, 2, [(7, "a", 0.9), (8, "b", 0.4), (9, "c", 0.1), (10, "d", 0.1)], 1.5)
    (found,) = processor.judge(taken, ASKED)
    assert (found.severity, found.found) == (
        Severity.WARNING,
        "other processes use 1.5 of 2 cores: a (7) 0.9, b (8) 0.4, c (9) 0.1",
    )
    assert severities(processor.judge(processor.ProcessorFacts(2, 8), ASKED)) == [Severity.OK]
