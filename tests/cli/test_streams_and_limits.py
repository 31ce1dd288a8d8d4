"""Closed and full streams, a low limit of open files, and odd values of OMP_NUM_THREADS."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ranks.engine.distributed.rendezvous.process_env import available_cores, default_threads
from ranks.errors import UserError, of_system_limit

TRAIN = "-m ranks train ./spirals.py --gpus none --name other --iterations 2"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in sh; PYTHON is this interpreter."""
    text = command.replace("PYTHON", sys.executable)
    return subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)


def test_a_run_with_closed_streams_trains_and_writes_nothing_into_its_files(trained: Path) -> None:
    """Without standard output the next file gets its descriptor, and what is printed goes into that file."""
    ended = shell(f"PYTHON {TRAIN} --ranks 1 <&- >&-")
    assert (ended.returncode, ended.stderr) == (0, "")
    rows = (trained / "runs/other/metrics.jsonl").read_text().splitlines()
    assert len(rows) == 2
    assert all(row.startswith("{") for row in rows)


def test_a_reader_that_ends_early_ends_a_command_quietly() -> None:
    ended = shell("{ PYTHON -m ranks --help; echo code $? >&2; } | true")
    assert "Traceback" not in ended.stderr
    assert "BrokenPipe" not in ended.stderr


def test_too_few_open_files_are_one_clear_error(trained: Path) -> None:
    ended = shell(f"ulimit -n 7; PYTHON {TRAIN} --ranks 2")
    assert ended.returncode == 2, ended.stderr
    assert "Too many open files" in ended.stderr
    assert "do: raise the limit of open files: ulimit -n 1024" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_limit_of_processes_is_named_but_not_for_a_full_pipe() -> None:
    limit = of_system_limit(BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)), "ranks train toy")
    assert limit is not None
    assert limit.do == "raise the limit of processes (ulimit -u, pids.max)"
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with open(reader, "rb"), open(writer, "wb") as pipe:
        with pytest.raises(BlockingIOError) as full:
            pipe.write(b"x" * (1 << 22))
        assert full.value.errno == errno.EAGAIN
        assert of_system_limit(full.value, "ranks logs toy") is None
        os.read(reader, 1 << 22)


def test_omp_num_threads() -> None:
    assert default_threads({"OMP_NUM_THREADS": " 3 "}) == default_threads({"OMP_NUM_THREADS": "3,2"}) == 3
    assert default_threads({}) == default_threads({"OMP_NUM_THREADS": ""}) == available_cores()
    for wrong in ("abc", "0", "-1", "1.5", "9" * 5000, ",2"):
        with pytest.raises(UserError, match="not a number of threads"):
            default_threads({"OMP_NUM_THREADS": wrong})
