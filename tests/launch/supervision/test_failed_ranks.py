"""What is said when a rank fails, and the exit code. The scripts import no torch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.launch.scripts import ERROR, sessions


def test_an_exception_is_shown_once_with_rank_and_line_before_any_lost_connection(start: Any) -> None:
    launcher = start(
        ERROR + "make_run_folder()\n"
        "if rank == 0:\n"
        "    touch('lost')\n"
        "    end(RuntimeError('[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:1'))\n"
        "wait_for('lost')\n"
        "time.sleep(0.5)\n"
        "end(ValueError('bad sample'))\n"
    )
    code, out, err = launcher.end()
    assert code == 1
    line = next(
        n for n, text in enumerate((launcher.folder / "script.py").read_text().splitlines(), 1) if "raise error" in text
    )
    assert err.splitlines()[0] == f"rank 1 failed (at script.py:{line}): ValueError: bad sample"
    assert (out + err).count("bad sample") == 1 + err.count("end(ValueError('bad sample'))")
    assert "Connection closed" not in out + err
    assert err.endswith("no iteration was saved: the same command starts from the beginning\n")
    assert f"log: {launcher.folder}/runs/x/logs/rank1.log" in err
    log = (launcher.folder / "runs" / "x" / "logs" / "rank1.log").read_text()
    assert log.startswith("Traceback (most recent call last)")
    assert log.rstrip().endswith("ValueError: bad sample")
    assert [fact["kind"] for fact in sessions(launcher)] == ["user"]


def test_a_failure_before_the_run_folder_exists_shows_its_whole_traceback(start: Any) -> None:
    launcher = start(
        "def a():\n    1 / 0\ndef b():\n    a()\ndef c():\n    b()\ndef d():\n    c()\n"
        "if rank == 0:\n    d()\ntime.sleep(60)\n"
    )
    code, _, err = launcher.end()
    assert code == 1
    assert "ZeroDivisionError: division by zero" in err.splitlines()[0]
    assert all(f"in {name}\n" in err for name in "abcd")
    assert list((launcher.folder / "runs").iterdir()) == []


def test_bad_input_is_three_lines_and_exit_2(start: Any) -> None:
    launcher = start(ERROR + "end(UserError('--shards 0', 'no shard', 'give more'))\n")
    code, out, err = launcher.end()
    assert (code, out) == (2, "")
    assert err.splitlines() == ["asked: --shards 0", "found: no shard", "   do: give more"]


def test_a_rank_that_gives_up_ends_the_run_with_exit_3(start: Any) -> None:
    launcher = start(ERROR + "end(GaveUp('three losses were not finite')) if rank == 1 else time.sleep(60)\n")
    code, _, err = launcher.end()
    assert code == 3
    assert "rank 1 failed" in err
    assert "three losses were not finite" in err


EXIT = """
import traceback
from ranks.launch.failures.report import report_exit
def leave(code):
    try:
        1 / 0
    except ZeroDivisionError:
        traceback.print_exc()
    print("the last line", file=sys.stderr)
    try:
        sys.exit(code)
    except SystemExit as end:
        report_exit(end, Path(os.environ["RANKS_ERROR_FILE"]))
        raise
"""


@pytest.mark.parametrize(
    ("given", "code", "said"), [("5", 5, ""), ("'no data here'", 1, "no data here\n"), ("-1", 255, "")]
)
def test_the_only_rank_ends_the_command_by_its_own_exit(start: Any, given: str, code: int, said: str) -> None:
    launcher = start(EXIT + f"leave({given})\n", ranks=1)
    ended, out, err = launcher.end()
    assert (ended, out) == (code, "")
    assert err.startswith("Traceback (most recent call last)")
    assert err.endswith(f"\nZeroDivisionError: division by zero\nthe last line\n{said}")
    assert [(fact["kind"], fact["type"]) for fact in sessions(launcher)] == [("exit", "exit")]


def test_one_of_several_ranks_that_exits_is_named_with_its_message(start: Any) -> None:
    code, _, err = start(EXIT + "leave('no data here') if rank == 1 else time.sleep(60)\n").end()
    assert code == 1
    assert err.splitlines()[0] == "rank 1 ended with exit code 1: no data here"


def test_an_exit_with_0_is_no_failure(start: Any) -> None:
    launcher = start(EXIT + "leave(None)\n", ranks=1)
    code, _, err = launcher.end()
    assert (code, sessions(launcher)) == (0, [])
    assert err.endswith("the last line\n")


def test_an_exit_without_a_message_is_reported(start: Any) -> None:
    code, _, err = start("os._exit(7) if rank == 1 else time.sleep(60)\n").end()
    assert code == 1
    assert "rank 1 ended with exit code 7" in err


def test_a_failure_says_from_where_the_same_command_resumes(start: Any) -> None:
    launcher = start(ERROR + "(folder / 'progress').write_text('120')\nend(ValueError('bad sample'))\n", ranks=1)
    code, _, err = launcher.end()
    assert code == 1
    checkpoint = launcher.folder / "runs" / "x" / "checkpoints" / "00000120"
    assert err.endswith(f"the same command resumes from iteration 120 ({checkpoint})\n")
