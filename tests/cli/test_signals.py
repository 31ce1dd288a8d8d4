"""SIGTERM before a run has taken over its signals, and in commands that have something to undo."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SWALLOWED = """
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
UNWOUND = """
import os, signal
from pathlib import Path
from ranks.cli import main, parse

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
def test_nothing_can_swallow_a_stop(rank: str | None, code: int) -> None:
    """A rank dies of the signal itself: in a rendezvous no handler of Python's would run."""
    env = {name: value for name, value in os.environ.items() if name != "RANK"} | ({"RANK": rank} if rank else {})
    assert subprocess.run([sys.executable, "-c", SWALLOWED], env=env).returncode == code


def test_a_command_puts_its_things_away(tmp_path: Path) -> None:
    mark = tmp_path / "put away"
    done = subprocess.run([sys.executable, "-c", UNWOUND, "--mark", str(mark)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "")
    assert mark.exists()
