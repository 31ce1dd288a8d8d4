"""A command that cleans up ends at SIGTERM, wherever the signal arrives."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMMAND = """
import os, signal, time
from ranks import sigterm

def stop(): os.kill(os.getpid(), signal.SIGTERM)

class Finalized:
    def __del__(self): stop()

with sigterm.raises_system_exit():
    try:
        {}
        time.sleep(60)
    finally:
        print("cleaned up")
"""
PLACES = {
    "the code of the command": "stop()",
    "a finalizer": "Finalized()",
    "a callback of fork": "os.register_at_fork(after_in_parent=stop); os.fork() or os._exit(0)",
}


@pytest.mark.parametrize("place", PLACES)
def test_sigterm_ends_a_command_that_cleans_up(place: str) -> None:
    done = subprocess.run([sys.executable, "-c", COMMAND.format(PLACES[place])], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (143, b"cleaned up\n", b"")
