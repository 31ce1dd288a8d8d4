"""Starts and restarts of ranks, and what a killed launcher leaves. The scripts import no torch."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.launch.scripts import sessions


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


def test_a_full_disk_does_not_stop_a_restart(start: Any) -> None:
    """`failed` and `restarted` cannot be recorded. The reason is said once."""
    launcher = start(
        "if attempt == 0 and rank == 1:\n    touch('full')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "if attempt == 0:\n    time.sleep(60)\n"
    )
    code, _, err = launcher.end()
    assert code == 0, err
    assert err.count("could not record") == 1, err
    assert "could not record 'failed': No space left on device; later events may be missing too" in err
    assert "starting all 2 ranks again" in err


@pytest.mark.parametrize(("ranks", "read"), [(1, "typed"), (2, "")])
def test_only_a_rank_without_others_reads_standard_input(start: Any, tmp_path: Path, ranks: int, read: str) -> None:
    """From a file. `tests/cli/starting/test_debugging.py` has a pipe to a rank that is forked."""
    (tmp_path / "input").write_text("typed")
    with_input = ["sh", "-c", f'exec "$@" < {tmp_path / "input"}', "sh"]
    launcher = start("(folder / f'read{rank}').write_text(sys.stdin.read())\n", ranks=ranks, before=with_input)
    assert launcher.end()[0] == 0
    assert (tmp_path / "read0").read_text() == read


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
