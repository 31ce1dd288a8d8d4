"""`ranks launch`: a torchrun script with gloo recovers from a kill and listens on the loopback interface only."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from ranks.errors import UserError
from ranks.launch.script import launch_script

ALL_REDUCE = """
import torch, torch.distributed as dist
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
if attempt == 0:
    touch(f"meeting{rank}")
    wait_for("looked")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(total)
print("rank", rank, "of", os.environ["LOCAL_WORLD_SIZE"], "attempt", attempt, "total", total.item(), sys.argv[1:])
dist.destroy_process_group()
"""


def command(folder: Path, *flags: str, arguments: tuple[str, ...] = ()) -> list[str]:
    return [sys.executable, "-m", "ranks", "launch", "--gpus", "none", *flags, str(folder / "script.py"), *arguments]


def test_a_torchrun_script_recovers_and_listens_on_loopback_only(start: Any, tmp_path: Path) -> None:
    launcher = start(ALL_REDUCE, command=command(tmp_path, "--ranks", "2", arguments=("--flag", "x")))
    launcher.wait_for("meeting0", "meeting1")
    listening = [
        connection.laddr.ip
        for process in launcher.left()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert set(listening) <= {"127.0.0.1", "::1"}
    (tmp_path / "looked").touch()
    code, out, err = launcher.end()
    assert code == 0, err
    assert sorted(out.splitlines()) == [f"rank {r} of 2 attempt 1 total 6.0 ['--flag', 'x']" for r in (0, 1)]
    assert "rank 1 was ended by SIGKILL" in err
    assert launcher.left() == []
    assert launcher.private_folders() == []


def test_any_failure_restarts_until_max_restarts(start: Any, tmp_path: Path) -> None:
    script = (
        "attempt = os.environ['TORCHELASTIC_RESTART_COUNT']\ntouch(f'start{attempt}')\n"
        "raise ValueError(f'always, {attempt}')\n"
    )
    launcher = start(script, command=command(tmp_path, "--ranks", "1", "--max-restarts", "2"))
    code, out, err = launcher.end()
    assert code == 3
    assert err.count(": ValueError: always") == 3
    assert err.endswith("gave up: 3 starts in a row failed\n")
    assert len(list(tmp_path.glob("start*"))) == 3
    assert "Traceback" not in out + err


def test_two_equal_failures_at_the_start_end_it(start: Any, tmp_path: Path) -> None:
    script = (
        "touch(f'start{os.environ[\"TORCHELASTIC_RESTART_COUNT\"]}-{rank}')\n"
        "wait_for(f'start{os.environ[\"TORCHELASTIC_RESTART_COUNT\"]}-{1 - rank}')\n"
        "raise ValueError('no such file')\n"
    )
    launcher = start(script, command=command(tmp_path, "--ranks", "2"))
    code, _, err = launcher.end()
    assert code == 3
    assert err.endswith("gave up: 2 starts in a row failed at once with the same error\n")
    assert {path.name for path in tmp_path.glob("start*")} == {"start0-0", "start0-1", "start1-0", "start1-1"}


def test_without_restarts_a_failure_is_exit_1(start: Any, tmp_path: Path) -> None:
    launcher = start("raise ValueError('once')\n", command=command(tmp_path, "--ranks", "1", "--max-restarts", "0"))
    code, _, err = launcher.end()
    assert code == 1
    assert err.count(": ValueError: once") == 1
    assert "gave up" not in err


def test_a_missing_script_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        launch_script(tmp_path / "none.py", gpus="none")
