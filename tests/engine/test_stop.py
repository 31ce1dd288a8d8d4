"""A signal stops only the process that it was sent to."""

from __future__ import annotations

import os
import signal

import pytest

from ranks import RunConfig, World


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
