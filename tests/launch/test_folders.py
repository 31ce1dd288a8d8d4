"""The folders of a launcher: its logs, and its temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ranks.launch.logs import LogFolder
from ranks.launch.private_folder import LOCK, private_folder

HOLD = """
import sys
from ranks.launch.private_folder import private_folder
with private_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all temporary folders."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_the_temporary_folder_of_a_killed_launcher_is_removed_by_the_next_one(temporary: Path) -> None:
    kept = [temporary / name for name in ("ranks-of-another-program", "ranks-just-made", "other")]
    for path in kept:
        path.mkdir()
    (kept[1] / LOCK).touch()
    launcher = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    left = Path(launcher.stdout.readline().strip())
    with private_folder() as own:
        assert sorted(temporary.iterdir()) == sorted([*kept, left, own])
    launcher.kill()
    launcher.communicate()
    assert left.exists()
    with private_folder():
        assert not left.exists()
    assert sorted(temporary.iterdir()) == sorted(kept)


def test_a_log_that_is_no_file_is_replaced(tmp_path: Path) -> None:
    """A FIFO would take 64 KB of output and then block the launcher."""
    run, outside = tmp_path / "r", tmp_path / "outside"
    (run / "logs").mkdir(parents=True)
    (run / "run.json").touch()
    outside.write_text("kept")
    os.mkfifo(run / "logs" / "rank0.log")
    (run / "logs" / "rank1.log").symlink_to(outside)
    logs = LogFolder(run)
    for rank in (0, 1):
        logs.of_rank(rank).write_text("a line")
    assert (run / "logs" / "rank1.log").is_file()
    assert outside.read_text() == "kept"


def test_logs_wait_outside_until_the_run_folder_is_one(tmp_path: Path) -> None:
    run = tmp_path / "r"
    run.mkdir()  # an empty folder becomes the run folder by a rename, so nothing may be put into it
    logs = LogFolder(run)
    logs.of_rank(0).write_text("a line")
    assert list(run.iterdir()) == []
    (run / "run.json").touch()
    assert logs.move_to_run()
    assert (run / "logs" / "rank0.log").read_text() == "a line"
