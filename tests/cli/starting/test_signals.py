"""SIGTERM before a run has set its handlers, and in commands that must clean up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CATCHES_ALL = """
import os, signal
import ranks.cli.main as cli

def main(argv):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except BaseException:  # as an import or a finalizer may do
        pass
    return 0

cli.main = main
cli.entry()
"""
CLEANS_UP = """
import os, signal
from pathlib import Path
from ranks.cli import main
from ranks.cli.flags import parse

def command(*, mark: Path) -> int:
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        mark.touch()
    return 0

main.main = lambda argv: parse.call(command, argv, prog="command")
main.entry()
"""


@pytest.mark.parametrize(("rank", "code"), [(None, 143), ("0", -signal.SIGTERM)])
def test_no_except_clause_can_catch_sigterm(rank: str | None, code: int) -> None:
    """A rank keeps the default action of the signal: in a rendezvous no Python handler runs."""
    env = {name: value for name, value in os.environ.items() if name != "RANK"} | ({"RANK": rank} if rank else {})
    assert subprocess.run([sys.executable, "-c", CATCHES_ALL], env=env).returncode == code


def test_a_command_cleans_up(tmp_path: Path) -> None:
    mark = tmp_path / "cleaned up"
    done = subprocess.run([sys.executable, "-c", CLEANS_UP, "--mark", str(mark)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "")
    assert mark.exists()
