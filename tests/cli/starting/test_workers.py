"""`--workers`, the flag of the file that `ranks new` writes: a killed worker, Ctrl-C, a killed rank."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ranks import rng
from ranks.cli.main import main
from tests.cli.conftest import HERE, ranks

FLAGS = ["--gpus", "none", "--exact", "--iterations", "12", "--eval-every", "100", "--save-every", "2"]
NUM_ITEMS, GLOBAL_BATCH, BAD_ITERATION = 6000, 256, 6
FAULTS = """    def describe(self, item: int) -> str:
        return f"row {item} of points.csv"

    def gather(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        import os, pathlib, time

        if pathlib.Path("pids").exists():
            pathlib.Path("pids", str(os.getpid())).touch()
        if pathlib.Path("armed").exists() and BAD_ITEM in ids.tolist():
            pathlib.Path("armed").unlink()
            os.kill(os.getpid(), 9)
        if pathlib.Path("slow").exists():
            time.sleep(0.1)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with rows.py: a workload whose data set says which processes read it."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "rows"]) == 0
    path = Path("rows.py")
    bad = int(rng.permutation(rng.key(0, "order/train", 0), NUM_ITEMS)[BAD_ITERATION * GLOBAL_BATCH])
    signature = "    def gather(self, ids: Tensor) -> tuple[Tensor, Tensor]:\n"
    text = path.read_text()
    assert signature in text
    path.write_text(text.replace(signature, FAULTS.replace("BAD_ITEM", str(bad))))
    Path("pids").mkdir()
    return tmp_path


def left(folder: Path) -> list[str]:
    """The processes that have read the data set and still run; waits for their end."""
    deadline_s = time.monotonic() + 30
    while time.monotonic() < deadline_s:
        pids = [path.name for path in (folder / "pids").iterdir() if Path(f"/proc/{path.name}").exists()]
        if set(pids) <= {str(os.getpid())}:
            return []
        time.sleep(0.05)
    return pids


def started(argv: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """A command in a process group of its own, as in a terminal, once it has trained one iteration."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "ranks", *argv]
    process = subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )
    metrics = folder / "runs" / "rows" / "metrics.jsonl"
    before = metrics.stat().st_size if metrics.exists() else 0
    while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > before):
        time.sleep(0.05)
    return process


def test_a_killed_worker_is_named_and_the_run_starts_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It begins with the weights of another run, on both ranks."""
    here = ["--ranks", "1", *HERE]
    assert main(["train", "./rows.py", *FLAGS, *here, "--name", "first", "--iterations", "1"]) == 0
    train = ["train", "./rows.py", *FLAGS, "--init-from", "runs/first/export"]
    Path("armed").touch()
    done = ranks(*train, "--ranks", "2", "--workers", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert " of points.csv) of the train data set: it was killed by SIGKILL" in done.stderr
    assert " lost data worker 0 (process " in done.stderr
    assert left(folder) == []
    assert main([*train, *here, "--name", "whole"]) == 0
    capsys.readouterr()
    assert main(["fingerprint", "rows"]) == main(["fingerprint", "whole"]) == 0
    assert len(set(capsys.readouterr().out.split())) == 1, "workers changed the result"


def test_ctrl_c_and_a_killed_rank_leave_no_worker_and_no_traceback(folder: Path) -> None:
    Path("slow").touch()
    argv = ["train", "./rows.py", *FLAGS, "--ranks", "1", *HERE, "--workers", "2", "--iterations", "100000"]
    process = started(argv, folder)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGINT, said
    assert "Traceback" not in said
    assert "stopping after this iteration" in said
    assert len(list(Path("pids").iterdir())) >= 2
    assert left(folder) == []
    process = started(argv, folder)
    process.kill()
    process.communicate(timeout=120)
    assert len(list(Path("pids").iterdir())) >= 4
    assert left(folder) == []
