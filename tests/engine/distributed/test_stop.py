"""A signal stops only the process that it was sent to."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from ranks import RunConfig, World
from tests.forked import FORKED_CODE

HANGS = """
from ranks import RunConfig, World
from tests.forked import FORKED_CODE
world = World.join(RunConfig(threads=1, stop_grace="1s"), device="cpu", workload="test")
world.session.attached, world.session.saved = True, lambda: 30
print("ready", flush=True)
while True:
    pass
"""


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_signal_to_a_forked_process_does_not_stop_the_rank() -> None:
    """For example a data worker that is terminated."""
    world = World.join(RunConfig(threads=1), device="cpu", workload="test")
    world.session.attached = True
    ready, signalled = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(signalled, b"x")
        signal.pause()
        os._exit(7)  # only where the signal did not end it
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    world.leave()
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGTERM
    assert world.stop.received == 0
    os.close(ready)
    os.close(signalled)


def test_a_lone_process_that_hangs_obeys_a_signal_after_the_grace_time() -> None:
    """No launcher watches it. A run with several ranks: tests/launch/supervision/test_hangs.py."""
    process = subprocess.Popen([*FORKED_CODE, HANGS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    _, err = process.communicate(timeout=90)
    assert process.returncode == 143
    assert err == "stopped without a save; resumes at 30\n"


@pytest.mark.parametrize(("environ", "received"), [({"SLURM_JOB_ID": "7"}, signal.SIGTERM), ({}, 0)])
def test_in_a_slurm_job_sigusr1_stops_as_sigterm_does(
    environ: dict[str, str], received: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        world = World.join(RunConfig(threads=1), device="cpu", workload="test")
        world.session.attached = True
        os.kill(os.getpid(), signal.SIGUSR1)
        deadline_s = time.monotonic() + (30 if received else 0.2)
        while not world.stop.received and time.monotonic() < deadline_s:
            time.sleep(0.01)
        world.leave()
        assert world.stop.received == received
    finally:
        signal.signal(signal.SIGUSR1, before)
