"""SIGTERM before a run has taken over its signals."""

from __future__ import annotations

import subprocess
import sys

import pytest

INTERRUPTED = """
import os, signal
import ranks.cli.main as cli
from ranks.errors import UserError

def main(argv):
    try:
        {signal}
    except SystemExit:
        pass
    {then}

cli.main = main
cli.entry()
"""
SENT = "os.kill(os.getpid(), signal.SIGTERM)"


@pytest.mark.parametrize(
    ("signal", "then", "code"),
    [
        (SENT, "raise ImportError('a module was interrupted')", 143),
        (SENT, "return 2", 143),
        (SENT, "return 0", 0),
        ("pass", "raise ImportError('no such module')", 1),
        ("pass", "return 2", 2),
    ],
)
def test_an_import_may_turn_a_stop_into_an_error(signal: str, then: str, code: int) -> None:
    script = INTERRUPTED.format(signal=signal, then=then)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == code
    assert ("Traceback" in done.stderr) == (code == 1)
