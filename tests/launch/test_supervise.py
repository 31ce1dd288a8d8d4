"""What the launcher does when its ranks end, with or without a failure. The scripts import no torch."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

STOP_SAVED = """
def stop(signum, frame):
    touch(f"saved{rank}-{signum}")
    sys.exit(128 + signum)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
touch(f"ready{rank}")
time.sleep(60)
"""

ERROR = """
from ranks.errors import GaveUp, UserError
from ranks.launch.failures.report import report_exception
def end(error):
    try:
        raise error
    except Exception as raised:
        sys.exit(report_exception(raised, rank, Path(os.environ["RANKS_ERROR_FILE"])))
"""


def sessions(launcher: Any) -> list[dict[str, Any]]:
    path = launcher.folder / "sessions.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_each_rank_gets_its_own_variables_and_none_of_another_launcher(start: Any) -> None:
    launcher = start(
        "import json\n"
        "(folder / f'env{rank}').write_text(json.dumps(dict(os.environ)))\n"
        "print('hello from', rank)\n"
        "make_run_folder()\n"
    )
    code, out, _ = launcher.end()
    assert code == 0
    assert out.splitlines() == ["hello from 0"]
    for rank in (0, 1):
        env = json.loads((launcher.folder / f"env{rank}").read_text())
        assert (env["RANK"], env["LOCAL_RANK"], env["WORLD_SIZE"], env["LOCAL_WORLD_SIZE"]) == (str(rank),) * 2 + (
            "2",
            "2",
        )
        assert env["GLOO_SOCKET_IFNAME"] == env["NCCL_SOCKET_IFNAME"] == "lo"
        assert (env["OMP_NUM_THREADS"], env["RANKS_DEVICE"], env["RANKS_ATTEMPT"]) == ("1", "cpu", "0")
        assert env["RANKS_STORE"].startswith(str(launcher.folder / "tmp"))
        assert "MASTER_ADDR" not in env
        assert (launcher.folder / "runs" / "x" / "logs" / f"rank{rank}.log").read_text() == f"hello from {rank}\n"
    assert launcher.private_folders() == []
    assert [p.name for p in (launcher.folder / "runs").iterdir()] == ["x"]
    assert launcher.left() == []


def test_a_killed_rank_restarts_all_ranks_and_its_children_are_killed(start: Any) -> None:
    launcher = start(
        "import subprocess\n"
        "(folder / f'start{attempt}-{rank}').write_text(os.environ['RANKS_STARTED_NS'])\n"
        "if attempt == 0:\n"
        "    subprocess.Popen(['sleep', '60'])\n"
        "    touch(f'child{rank}')\n"
        "    if rank == 1:\n"
        "        wait_for('child0')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    time.sleep(60)\n"
    )
    code, _, err = launcher.end()
    assert code == 0
    assert "rank 1 was ended by SIGKILL" in err
    starts = {p.name: p.read_text() for p in launcher.folder.glob("start*")}
    assert starts.keys() == {"start0-0", "start0-1", "start1-0", "start1-1"}
    assert len(set(starts.values())) == 1, "the time limit of a command counts from its first attempt"
    assert [fact["event"] for fact in sessions(launcher)] == ["failed", "restarted"]
    assert launcher.left() == []
    assert launcher.private_folders() == []


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


@pytest.mark.parametrize(("ranks", "read"), [(1, "typed"), (2, "")])
def test_only_a_rank_without_others_reads_standard_input(start: Any, tmp_path: Path, ranks: int, read: str) -> None:
    """From a file. `tests/cli/starting/test_debugging.py` has a pipe to a rank that is forked."""
    (tmp_path / "input").write_text("typed")
    with_input = ["sh", "-c", f'exec "$@" < {tmp_path / "input"}', "sh"]
    launcher = start("(folder / f'read{rank}').write_text(sys.stdin.read())\n", ranks=ranks, before=with_input)
    assert launcher.end()[0] == 0
    assert (tmp_path / "read0").read_text() == read


def test_an_exit_with_0_is_no_failure(start: Any) -> None:
    launcher = start(EXIT + "leave(None)\n", ranks=1)
    code, _, err = launcher.end()
    assert (code, sessions(launcher)) == (0, [])
    assert err.endswith("the last line\n")


def test_an_exit_without_a_message_is_reported(start: Any) -> None:
    code, _, err = start("os._exit(7) if rank == 1 else time.sleep(60)\n").end()
    assert code == 1
    assert "rank 1 ended with exit code 7" in err


def test_it_gives_up_after_three_restarts_without_progress(start: Any) -> None:
    launcher = start(
        "touch(f'start{attempt}-{rank}')\nos.kill(os.getpid(), signal.SIGSEGV) if rank else time.sleep(60)\n"
    )
    code, _, err = launcher.end()
    assert code == 3
    assert len(list(launcher.folder.glob("start*-1"))) == 4
    assert "gave up: 4 starts in a row failed without progress" in err
    assert sessions(launcher)[-1]["event"] == "gave_up"


def test_progress_resets_the_number_of_restarts(start: Any) -> None:
    launcher = start(
        "if rank == 1 and attempt < 5:\n"
        "    (folder / 'progress').write_text(str(1 + attempt // 2))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "time.sleep(60 if attempt < 5 else 0)\n"
    )
    assert launcher.end()[0] == 0
    assert [fact["event"] for fact in sessions(launcher)] == ["failed", "restarted"] * 5


@pytest.mark.parametrize(
    ("sent", "arrives", "code"),
    [(signal.SIGTERM, 15, 143), (signal.SIGHUP, 15, 143), (signal.SIGINT, 2, 130)],
)
def test_a_stop_is_passed_on_and_waited_for(start: Any, sent: signal.Signals, arrives: int, code: int) -> None:
    launcher = start(STOP_SAVED)
    launcher.wait_for("ready0", "ready1")
    launcher.process.send_signal(sent)
    ended, _, err = launcher.end()
    assert ended == code
    assert err.startswith(f"{sent.name}: passed on to the ranks, waiting for them to stop")
    assert {p.name for p in launcher.folder.glob("saved*")} == {f"saved0-{arrives}", f"saved1-{arrives}"}
    assert launcher.private_folders() == []
    assert sessions(launcher) == []


def test_a_second_ctrl_c_kills_at_once(start: Any) -> None:
    launcher = start(
        "signal.signal(signal.SIGINT, lambda *a: touch(f'asked{rank}'))\ntouch(f'ready{rank}')\nwait_for('never')\n"
    )
    launcher.wait_for("ready0", "ready1")
    launcher.process.send_signal(signal.SIGINT)
    launcher.wait_for("asked0", "asked1")
    launcher.process.send_signal(signal.SIGINT)
    code, _, err = launcher.end()
    assert code == 130
    assert err.endswith("killed; the saved checkpoints are kept\n")
    assert launcher.left() == []


def test_ranks_that_got_a_signal_from_elsewhere_end_the_run_as_stopped(start: Any) -> None:
    launcher = start(
        "if rank == 1:\n    touch('one')\n    sys.exit(143)\nwait_for('one')\ntime.sleep(0.3)\nsys.exit(143)\n"
    )
    assert launcher.end()[0] == 143
    assert sessions(launcher) == []


def test_ctrl_z_stops_the_ranks_with_the_launcher_and_is_no_hang(start: Any) -> None:
    """The launcher gets a process group of its own, whose parent could continue it, as from a shell."""
    own_group = [sys.executable, "-c", "import os, sys; os.setpgid(0, 0); os.execvp(sys.argv[1], sys.argv[1:])"]
    script = (
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "(folder / f'child{rank}').write_text(str(child.pid))\n"
        "(folder / f'pid{rank}').write_text(str(os.getpid()))\n"
        "touch(f'ready{rank}')\n"
        "wait_for('continue')\n"
        "child.kill()\n"
    )
    launcher = start(script, before=own_group)
    launcher.wait_for("ready0", "ready1")
    pids = [int((launcher.folder / f"{name}{rank}").read_text()) for name in ("pid", "child") for rank in (0, 1)]
    processes = [psutil.Process(pid) for pid in (launcher.process.pid, *pids)]
    for _ in range(2):
        launcher.process.send_signal(signal.SIGTSTP)
        wait_for_states(processes, stopped=True)
        launcher.process.send_signal(signal.SIGCONT)
        wait_for_states(processes, stopped=False)
    (launcher.folder / "continue").touch()
    assert launcher.end()[0] == 0
    assert sessions(launcher) == []


def wait_for_states(processes: list[psutil.Process], *, stopped: bool) -> None:
    deadline = time.monotonic() + 60
    while any((process.status() == psutil.STATUS_STOPPED) is not stopped for process in processes):
        assert time.monotonic() < deadline, [process.status() for process in processes]
        time.sleep(0.01)


def test_a_stop_before_the_ranks_can_save_ends_as_stopped(start: Any) -> None:
    launcher = start("touch(f'ready{rank}')\ntime.sleep(60)\n")
    launcher.wait_for("ready0", "ready1")
    launcher.process.terminate()
    assert launcher.end()[0] == 143
    assert list((launcher.folder / "runs").iterdir()) == []


def test_a_crash_while_stopping_is_no_clean_stop(start: Any) -> None:
    launcher = start(
        "signal.signal(signal.SIGTERM, lambda *a: os.kill(os.getpid(), signal.SIGKILL))\n"
        "touch(f'ready{rank}')\n"
        "time.sleep(60)\n"
    )
    launcher.wait_for("ready0", "ready1")
    launcher.process.terminate()
    code, _, err = launcher.end()
    assert code == 1
    assert "was ended by SIGKILL" in err


def test_a_failure_says_from_where_the_same_command_resumes(start: Any) -> None:
    launcher = start(ERROR + "(folder / 'progress').write_text('120')\nend(ValueError('bad sample'))\n", ranks=1)
    code, _, err = launcher.end()
    assert code == 1
    checkpoint = launcher.folder / "runs" / "x" / "checkpoints" / "00000120"
    assert err.endswith(f"the same command resumes from iteration 120 ({checkpoint})\n")


def wait_until_gone(launcher: Any) -> None:
    """The reaper works at once; the limit is for a busy machine."""
    deadline = time.monotonic() + 60
    while launcher.left():
        assert time.monotonic() < deadline, launcher.left()
        time.sleep(0.05)


def test_a_killed_launcher_leaves_no_process_and_no_private_folder(start: Any) -> None:
    launcher = start("import subprocess\nsubprocess.Popen(['sleep', '60'])\ntouch(f'ready{rank}')\ntime.sleep(60)\n")
    launcher.wait_for("ready0", "ready1")
    assert len(launcher.left()) >= 5  # launcher, two ranks, their two children
    launcher.process.kill()
    wait_until_gone(launcher)
    assert launcher.private_folders() == []


@pytest.mark.parametrize("children", [0, 1, 2, 3, 5])
def test_a_launcher_killed_while_it_starts_leaves_no_process(start: Any, children: int) -> None:
    """It starts the orphan reaper and then four ranks; it is killed when it has so many children."""
    launcher = start("time.sleep(60)\n", ranks=4)
    process = psutil.Process(launcher.process.pid)
    while len(process.children()) < children:
        assert launcher.process.poll() is None
    launcher.process.kill()
    wait_until_gone(launcher)
