"""The cause of a failure, from an exit code, an error file and the end of the output."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ranks.errors import GaveUp, UserError
from ranks.launch.failures.classify import kind_of
from ranks.launch.failures.explain import explain_exit, parse_traceback
from ranks.launch.failures.failure import Failure
from ranks.launch.failures.report import report_exception

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
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "crash.py", line 3 in <module>
"""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UserError("a", "b", "c"), "user_error"),
        (GaveUp("why"), "gave_up"),
        (ValueError("Connection closed by peer"), "user"),
        (RuntimeError("[/gloo/transport/tcp/pair.cc:537] Connection closed by peer [127.0.0.1]:2"), "peer"),
        (ConnectionResetError("Connection reset by peer"), "peer"),
        (RuntimeError("shapes (3,4) and (5,6) cannot be multiplied"), "user"),
    ],
)
def test_a_lost_connection_is_not_a_cause(error: Exception, kind: str) -> None:
    assert kind_of(error) == kind


def test_an_exception_after_a_lost_connection_is_not_a_cause_either() -> None:
    later = RuntimeError("could not finish the epoch")
    later.__context__ = RuntimeError("Connection reset by peer")
    assert kind_of(later) == "peer"


def test_a_torchrun_scripts_traceback_is_read_from_its_output(tmp_path: Path) -> None:
    failure = explain_exit(1, 1, tmp_path / "none", TRACEBACK)
    assert (failure.kind, failure.type, failure.message) == ("user", "ValueError", "bad sample 7")
    assert failure.lines(full=False)[0] == "rank 1 failed (at /home/me/train.py:12): ValueError: bad sample 7"


def test_a_traceback_of_a_lost_connection_is_a_peer_failure() -> None:
    text = 'Traceback (most recent call last):\n  File "t.py", line 1, in f\nRuntimeError: Connection closed by peer\n'
    failure = parse_traceback(0, text)
    assert failure is not None
    assert failure.kind == "peer"
    assert parse_traceback(0, "all is well\n") is None


def test_a_crash_is_named_by_signal_and_python_line(tmp_path: Path) -> None:
    failure = explain_exit(2, -11, tmp_path / "none", FAULT)
    assert failure.kind == "signal"
    assert failure.lines(full=False) == [
        "rank 2 was ended by SIGSEGV, Segmentation fault (at /usr/lib/python3.11/ctypes/__init__.py:519)"
    ]


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
