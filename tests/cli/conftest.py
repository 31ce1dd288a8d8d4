"""A small run of a user's file, trained once for all tests of the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ranks.cli.main import main

HERE = ["--hang-timeout", "none"]
"""One rank trains in the process of the command, which is the test's own: no other process has to import torch."""
Command = Callable[..., subprocess.CompletedProcess[str]]


def ranks(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command line in a new process."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "ranks", *argv], cwd=cwd, env=env, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with spirals.py and runs/spirals, of 20 iterations."""
    folder = tmp_path_factory.mktemp("trained")
    assert ranks("new", "spirals", cwd=folder).returncode == 0
    flags = ["--ranks", "1", "--iterations", "20", "--eval-every", "10", "--gpus", "none"]
    done = ranks("train", "./spirals.py", *flags, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def trained(trained_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, which a test may change; it is the current directory."""
    shutil.copytree(trained_once, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[[Sequence[str]], str]:
    """Run a command line that must be refused: exit code 2, and the parts asked, found and do."""

    def run(argv: Sequence[str]) -> str:
        assert main(argv) == 2
        message = capsys.readouterr().err
        starts = [line[:7] for line in message.splitlines()]
        assert [start for start in starts if start.strip()] == ["asked: ", "found: ", "   do: "], message
        assert all(len(line) > 9 for line in message.splitlines()), message
        return message

    return run
