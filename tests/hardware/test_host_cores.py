"""The cores of a host, which its ranks share: worked out by hand, and measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from ranks.hardware.forecast.job import Speedup, forecast_run
from ranks.hardware.short_runs.host_use import CpuSample, HostUse, busy_cores
from tests.hardware.test_forecast import FREE, LINK, profile, trace


@pytest.mark.parametrize(
    ("ranks", "cores", "seconds", "limited_by"),
    [
        (1, 8, 0.5, "compute"),
        (8, 16, 0.5, "compute"),
        (8, 8, 0.8, "the host's cores"),
        (8, 4, 1.6, "the host's cores"),
        (8, None, 0.5, "compute"),
    ],
)
def test_ranks_of_one_host_share_its_cores(ranks: int, cores: int | None, seconds: float, limited_by: str) -> None:
    """A rank works 0.5 s in an iteration and uses 0.8 CPU seconds: 8 of them need 6.4, which 8 cores give in 0.8 s."""
    found = forecast_run(profile(), trace(ranks, 0.5, host_cpu_s=0.8), LINK, FREE, cores=cores)
    assert found.iteration_s.middle == pytest.approx(seconds, rel=0.02)
    assert found.iteration_s.low < found.iteration_s.middle < found.iteration_s.high
    assert found.limited_by == limited_by
    assert found.run_s.middle == pytest.approx(3 + 100 * seconds + 10 * 2.0 + 2 * 0.5, rel=0.02)


def test_a_faster_gpu_does_not_make_the_host_faster() -> None:
    ten_times = Speedup(10.0, 10.0, 10.0)
    found = forecast_run(profile(), trace(8, 0.5, host_cpu_s=0.8), LINK, FREE, ten_times, cores=32)
    assert found.iteration_s.middle == pytest.approx(8 * 0.8 / 32, rel=0.02)
    assert found.limited_by == "the host's cores"


def test_weak_scaling_too_is_limited_by_the_host() -> None:
    """One rank alone uses 2 CPU seconds in a second; 8 of them 16, which 4 cores give in 4 s."""
    whole = profile(traces={1: trace(1, 1.0, host_cpu_s=2.0)})
    found = forecast_run(whole, trace(8, 0.125, host_cpu_s=0.25), LINK, FREE, cores=4)
    assert found.weak_efficiency == pytest.approx(0.25, rel=0.02)


def test_the_cores_that_a_process_keeps_busy() -> None:
    samples = [CpuSample(0.0, 0.0), CpuSample(1.0, 9.0), CpuSample(2.0, 10.5), CpuSample(4.0, 13.5)]
    assert busy_cores(samples) == pytest.approx(1.5), "the start does not count"
    assert busy_cores(samples[:2]) == pytest.approx(9.0)
    assert busy_cores(samples[:1]) is None


def test_work_of_child_processes_counts() -> None:
    """Iterations follow each other until there are enough samples; a child works all the time."""
    iterations = [object()]
    work = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    with subprocess.Popen([sys.executable, "-c", work]) as child:
        with HostUse(lambda: iterations[-1]) as use:
            while use.cores is None:
                time.sleep(0.1)
                iterations.append(object())
        child.kill()
    assert use.cores > 0
