"""A launcher as a real process that runs tiny scripts, and a way to find all processes that it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

DRIVER = """
import json, os, sys
from pathlib import Path
from ranks.errors import UserError
from ranks.launch.placement import Placement
from ranks.launch.run import launch_run
from ranks.launch.supervision.config import HangRules

script, ranks, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])

def progress():
    path = folder / "progress"
    return int(path.read_text()) if path.exists() else -1

def record(fact):
    if (folder / "full").exists():
        raise UserError("to write sessions.jsonl", "No space left on device", "free disk space")
    with (folder / "sessions.jsonl").open("a") as file:
        print(json.dumps(fact), file=file)

placement = Placement(("cpu",) * ranks, threads=1)
hangs = HangRules(*json.loads(os.environ.get("TEST_HANGS", "[]")))
argv = [sys.executable, script]
sys.exit(launch_run(argv, placement, folder / "runs" / "x", hangs=hangs, progress=progress, record=record))
"""

PRELUDE = """
import os, signal, sys, time
from pathlib import Path
rank, attempt = int(os.environ["RANK"]), int(os.environ.get("RANKS_ATTEMPT", 0))
folder = Path(os.environ["TEST_FOLDER"])

def touch(name):
    (folder / name).touch()

def make_run_folder():
    run = folder / "runs" / "x"
    run.mkdir(exist_ok=True)
    (run / "run.json").touch()

def wait_for(name):
    while not (folder / name).exists():
        time.sleep(0.01)
"""


@dataclass
class Launcher:
    """A launcher process. `folder`: its working folder, `folder/tmp` its temporary folder."""

    folder: Path
    mark: str
    process: subprocess.Popen[str]

    def wait_for(self, *names: str) -> None:
        """Wait until the scripts have made these files."""
        deadline = time.monotonic() + 60
        while not all((self.folder / name).exists() for name in names):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, f"{names} did not appear"
            time.sleep(0.01)

    def end(self) -> tuple[int, str, str]:
        """Exit code, standard output, error output."""
        out, err = self.process.communicate(timeout=90)
        return self.process.returncode, out, err

    def left(self) -> list[psutil.Process]:
        """All running processes with this launcher's mark in their environment variables."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("TEST_MARK") == self.mark:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def private_folders(self) -> list[Path]:
        return list((self.folder / "tmp").iterdir())


Start = Callable[..., Launcher]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """start(script text, ranks=2) starts a launcher of that script.

    command=[...]: with another command line. before=[...]: a program that runs the launcher. hangs=[...]: HangRules.
    """
    started: list[Launcher] = []

    def start(
        script: str,
        ranks: int = 2,
        command: list[str] | None = None,
        before: Sequence[str] = (),
        hangs: Sequence[object] = (),
    ) -> Launcher:
        (tmp_path / "tmp").mkdir(exist_ok=True)
        (tmp_path / "runs").mkdir(exist_ok=True)
        path = tmp_path / "script.py"
        path.write_text(PRELUDE + script)
        mark = uuid.uuid4().hex
        env = os.environ | {"TMPDIR": str(tmp_path / "tmp"), "TEST_MARK": mark}
        env |= {"TEST_FOLDER": str(tmp_path), "MASTER_ADDR": "not-ours"}
        env["TEST_HANGS"] = json.dumps(hangs)
        process = subprocess.Popen(
            [*before, *(command or [sys.executable, "-c", DRIVER, str(path), str(ranks), str(tmp_path)])],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        started.append(Launcher(tmp_path, mark, process))
        return started[-1]

    yield start
    for launcher in started:
        launcher.process.kill()
        launcher.process.communicate()


@pytest.fixture(autouse=True)
def sighup_is_not_ignored() -> Iterator[None]:
    """nohup makes all child processes ignore SIGHUP; here they get the default again."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
