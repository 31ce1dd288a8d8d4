"""The cause of a failure, from an exit code, an error file and the end of the output."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ranks.engine.distributed.device_errors import device_error, is_out_of_memory
from ranks.errors import GaveUp, UserError
from ranks.launch.failures.classify import kind_of
from ranks.launch.failures.explain import explain_exit, parse_traceback
from ranks.launch.failures.failure import Failure
from ranks.launch.failures.out_of_memory import OomKills
from ranks.launch.failures.report import report_exception

LOST = "[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537] Connection closed by peer [127.0.0.1]:2"
"""What gloo of torch 2.13 says."""
TRACEBACK = """warming up
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/me/train.py", line 31, in <module>
[rank1]:     main()
[rank1]:   File "/home/me/train.py", line 12, in main
[rank1]:     raise ValueError("bad sample 7")
[rank1]: ValueError: bad sample 7
"""
FAULT = """Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "/home/me/native.py", line 519 in string_at
  File "crash.py", line 3 in <module>
"""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UserError("a", "b", "c"), "user_error"),
        (GaveUp("why"), "gave_up"),
        (ValueError("Connection closed by peer"), "user"),
        (RuntimeError(LOST), "peer"),
        (RuntimeError("[/p/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv"), "peer"),
        (RuntimeError("NCCL error: remote process exited or there was a network error"), "peer"),
        # a data set over the network: its errors are the program's own, whatever they say
        (ConnectionResetError("Connection reset by peer"), "user"),
        (OSError("Connection reset by peer"), "user"),
        (TimeoutError("Timed out waiting 30 s for recv"), "user"),
        (RuntimeError("Connection reset by peer"), "user"),
        (RuntimeError("shapes (3,4) and (5,6) cannot be multiplied"), "user"),
        (RuntimeError("CUDA error: uncorrectable ECC error encountered"), "device"),
        (RuntimeError("CUDA error: device-side assert triggered"), "user"),
    ],
)
def test_the_kind_of_an_exception(error: Exception, kind: str) -> None:
    assert kind_of(error) == kind


DEVICE_ERRORS = [
    ("fault", "CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be asynchronously reported"),
    ("fault", "CUDA error: unspecified launch failure"),
    ("fault", "CUDA error: uncorrectable NVLink error detected during the execution"),
    ("fault", "CUDA error: no CUDA-capable device is detected"),
    ("fault", "CUDA error: CUDA-capable device(s) is/are busy or unavailable"),
    ("fault", "CUDA error: unknown error"),
    ("fault", "NVML_ERROR_GPU_IS_LOST: GPU is lost"),
    ("assert", "CUDA error: device-side assert triggered"),
    ("out_of_memory", "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.11 GiB"),
    ("out_of_memory", "CUDA error: out of memory"),
    ("out_of_memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ("out_of_memory", "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ("out_of_memory", "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
    (
        "out_of_memory",
        "NCCL error in: ProcessGroupNCCL.cpp:3356, unhandled cuda error, NCCL version 2.27.5\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nFailed to CUDA calloc async 608 bytes",
    ),
    (
        "out_of_memory",
        "NCCL error in: ProcessGroupNCCL.cpp:94, unhandled cuda error\nLast error:\nCuda failure 2 'out of memory'",
    ),
    ("out_of_memory", "[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried"),
    (None, "CUDA error: an illegal memory access was encountered"),
    (None, "CUDA error: invalid device ordinal"),
    (None, "Connection reset by peer"),
]


@pytest.mark.parametrize(("kind", "text"), DEVICE_ERRORS)
def test_what_a_text_says_about_the_device(kind: str | None, text: str) -> None:
    assert device_error(text) == kind
    assert is_out_of_memory(RuntimeError(text)) == (kind == "out_of_memory")
    assert kind_of(RuntimeError(text)) == ("device" if kind == "fault" else "user")


def test_an_abort_says_why(tmp_path: Path) -> None:
    """Communication libraries print a C++ exception and abort."""
    mismatch = "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at /p/g/"
    mismatch += (
        "pair.cc:456] op.preamble.length <= op.nbytes. 100000 vs 8. Is there a distributed collective mismatch?\n"
    )
    assert explain_exit(0, -6, tmp_path / "none", mismatch).kind == "mismatch"
    watchdog = (
        "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [Rank 1] Process group"
    )
    watchdog += " watchdog thread terminated with exception: CUDA error: {}\n"
    asserted = explain_exit(0, -6, tmp_path / "none", watchdog.format("device-side assert triggered"))
    faulty = explain_exit(0, -6, tmp_path / "none", watchdog.format("unspecified launch failure"))
    assert (asserted.kind, faulty.kind) == ("user", "device")
    assert faulty.lines(full=False)[0].startswith("rank 0 lost its device: CUDA error: ")
    assert explain_exit(0, -6, tmp_path / "none", "free(): invalid pointer\n").kind == "signal"


def test_the_kernels_out_of_memory_kill_is_named(tmp_path: Path) -> None:
    """From the counters of cgroup v2; `tests/launch/supervision/test_causes.py` has a real one."""
    (tmp_path / "cgroup").write_text("0::/jobs/7\n")
    group = tmp_path / "fs" / "jobs" / "7"
    group.mkdir(parents=True)
    (group / "memory.events").write_text("low 0\noom 0\noom_kill 2\n")
    (group / "memory.max").write_text("268435456\n")
    (group / "memory.peak").write_text("267386880\n")
    kills = OomKills(tmp_path / "cgroup", tmp_path / "fs")
    assert "memory of this container" not in kills.describe()
    (group / "memory.events").write_text("low 0\noom 1\noom_kill 3\n")
    found = explain_exit(1, -9, tmp_path / "none", "", memory_ran_out=kills.describe())
    said = "by the kernel: the memory of this container ran out, limit 256 MiB, peak 255 MiB"
    assert found.lines(full=False) == [f"rank 1 was ended by SIGKILL, Killed ({said})"]
    assert "kernel" not in explain_exit(1, -11, tmp_path / "none", "", memory_ran_out=kills.describe()).message


def test_an_exception_after_a_lost_connection_is_not_a_cause_either() -> None:
    later = RuntimeError("could not finish the epoch")
    later.__context__ = RuntimeError(LOST)
    assert kind_of(later) == "peer"


def test_a_torchrun_scripts_traceback_is_read_from_its_output(tmp_path: Path) -> None:
    failure = explain_exit(1, 1, tmp_path / "none", TRACEBACK)
    assert (failure.kind, failure.type, failure.message) == ("user", "ValueError", "bad sample 7")
    assert failure.lines(full=False)[0] == "rank 1 failed (at /home/me/train.py:12): ValueError: bad sample 7"


def test_a_traceback_of_a_lost_connection_is_a_peer_failure() -> None:
    text = 'Traceback (most recent call last):\n  File "t.py", line 1, in f\n{}\n'
    failure = parse_traceback(0, text.format(f"RuntimeError: {LOST}"))
    assert failure is not None
    assert failure.kind == "peer"
    store = parse_traceback(0, text.format("torch.distributed.DistNetworkError: Connection reset by peer"))
    assert store is not None
    assert store.kind == "peer"
    own = parse_traceback(0, text.format("ConnectionResetError: [Errno 104] Connection reset by peer"))
    assert own is not None
    assert own.kind == "user"
    assert parse_traceback(0, "all is well\n") is None


def test_a_crash_is_named_by_signal_and_python_line(tmp_path: Path) -> None:
    failure = explain_exit(2, -11, tmp_path / "none", FAULT)
    assert failure.kind == "signal"
    assert failure.lines(full=False) == ["rank 2 was ended by SIGSEGV, Segmentation fault (at /home/me/native.py:519)"]


def test_the_launcher_reads_the_error_file_of_a_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise KeyError("weight")

    path = tmp_path / "error.json"
    with pytest.raises(KeyError) as raised:
        fail()
    assert report_exception(raised.value, 3, path) == 1
    assert capsys.readouterr().err.startswith("Traceback (most recent call last)")
    line = fail.__code__.co_firstlineno + 1
    failure = explain_exit(3, 1, path, "")
    assert failure.lines(full=False)[0].endswith(f"test_failure.py:{line}): KeyError: 'weight'")
    assert json.loads(path.read_text())["kind"] == "user"
    assert [p.name for p in tmp_path.iterdir()] == ["error.json"]


def test_a_signal_takes_precedence_over_the_error_file(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    path.write_text('{"kind": "user", "type": "ValueError", "message": "x"}')
    assert explain_exit(0, -9, path, "").kind == "signal"
    assert explain_exit(0, -6, path, "").kind == "user"


def test_a_damaged_error_file_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    path.write_text('{"kind": ')
    assert explain_exit(0, 1, path, "").lines(full=True) == ["rank 0 ended with exit code 1 and without a message"]


def test_equal_failures_have_the_same_error_on_any_rank() -> None:
    failure = Failure(0, "user", "ValueError", "bad sample 7", "train.py:12", time_s=1.0)
    assert failure.same_cause(replace(failure, rank=1, time_s=2.0))
    assert not failure.same_cause(replace(failure, message="bad sample 8"))
    killed = Failure(0, "signal", "SIGKILL", "was ended by SIGKILL, Killed")
    assert not killed.same_cause(killed)
