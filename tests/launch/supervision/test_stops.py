"""Signals that stop a run. The scripts import no torch."""

from __future__ import annotations

import signal
import sys
import time
from typing import Any

import psutil
import pytest

from tests.launch.scripts import sessions

STOP_SAVED = """
def stop(signum, frame):
    touch(f"saved{rank}-{signum}")
    sys.exit(128 + signum)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
touch(f"ready{rank}")
time.sleep(60)
"""


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
