"""Tasks that the ranks share: each result once and in order, from threads and from processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import torch

from ranks import RunConfig, World
from ranks.engine.distributed.comm import Comm
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv
from ranks.errors import Stopped, UserError
from ranks.hardware.forecast.echo_comm import EchoComm
from ranks.workloads.chess_value.helper_process import HelperHangs, HelperLost
from ranks.workloads.chess_value.tasks.pool import TaskPool
from tests.chess_value.task_workers import Broken, Dying, Endless, Pids, Slow, Squares, Unlucky

ROOT = Path(__file__).parents[2]


@contextmanager
def pool(monkeypatch: pytest.MonkeyPatch, comm: Comm | None = None, hang_timeout: str = "5m") -> Iterator[TaskPool]:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'src'}")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    comm = comm or Comm(0, 1, staged=False)
    world = World(RunConfig(hang_timeout=hang_timeout), ProcessEnv("alone"), torch.device("cpu"), comm, "test")
    world.stop.install()
    try:
        with closing(TaskPool(world)) as found:
            yield found
    finally:
        world.leave()


@pytest.mark.parametrize("processes", [False, True])
def test_each_result_once_and_in_order(processes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with pool(monkeypatch) as mine:
        for count in (0, 7, 33):
            assert mine.map("squares", count, Squares, in_processes=processes) == [task * task for task in range(count)]


@pytest.mark.parametrize("count", [0, 7, 33])
def test_a_forecast_of_several_ranks_has_a_result_of_each_task(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other ranks do not exist, and give what the first one gives."""
    for ranks in (2, 3):
        with pool(monkeypatch, EchoComm(ranks)) as mine:
            assert len(mine.map("squares", count, Squares, in_processes=False)) == count


def pids_of(mine: TaskPool) -> list[int]:
    return [process._process.pid for process in mine._processes]


def test_processes_do_the_tasks_stay_for_the_next_ones_and_end_with_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    with pool(monkeypatch) as mine:
        found = set(mine.map("pids", 20, Pids, in_processes=True))
        pids = pids_of(mine)
        assert len(pids) == 2
        assert found <= set(pids)
        assert set(mine.map("pids", 20, Pids, in_processes=True)) <= set(pids)
        assert pids_of(mine) == pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("processes", [False, True])
def test_errors_reach_the_rank_and_the_next_tasks_are_done(processes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with pool(monkeypatch) as mine:
        with pytest.raises(UserError, match="no king"):
            mine.map("games", 8, Unlucky, in_processes=processes)
        with pytest.raises((RuntimeError, ZeroDivisionError), match=r"division|modulo"):
            mine.map("games", 8, Broken, in_processes=processes)
        assert mine.map("squares", 3, Squares, in_processes=processes) == [0, 1, 4]


def test_a_process_that_was_killed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pool(monkeypatch) as mine:
        with pytest.raises(HelperLost, match="signal 9"):
            mine.map("games", 2, Dying, in_processes=True)
        assert mine.map("squares", 2, Squares, in_processes=True) == [0, 1], "by other processes"


def test_a_process_that_hangs_is_named_and_one_that_works_for_long_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pool(monkeypatch, hang_timeout="2s") as mine:
        assert mine.map("games", 2, Slow, in_processes=True) == [0, 1]
        os.kill(pids_of(mine)[0], signal.SIGSTOP)
        with pytest.raises(HelperHangs, match=r"does tasks hangs: it is stopped .*no sign of life for 2 s") as lost:
            mine.map("squares", 2, Squares, in_processes=True)
        assert lost.value.hangs, "the launcher says so, and starts the ranks again"
        assert mine.map("squares", 2, Squares, in_processes=True) == [0, 1], "by other processes"


def test_a_stop_ends_a_task_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANKS_TEST_PID", str(tmp_path / "pid"))

    def stopped() -> None:
        if (tmp_path / "pid").exists():
            raise Stopped(signal.SIGTERM)

    with pool(monkeypatch) as mine:
        monkeypatch.setattr(mine.world, "check_stop", stopped)
        with pytest.raises(Stopped):
            mine.map("games", 1, Endless, in_processes=True)
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


def test_a_signal_to_all_processes_of_a_job_leaves_a_process_to_its_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Slurm and systemd send it: the rank saves first."""
    with pool(monkeypatch) as mine:
        mine.map("pids", 20, Pids, in_processes=True)
        pids = pids_of(mine)
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        assert set(mine.map("pids", 20, Pids, in_processes=True)) <= set(pids)
        assert pids_of(mine) == pids
        assert all(process.is_alive for process in mine._processes)


def test_a_process_dies_with_its_rank(tmp_path: Path) -> None:
    """Also in the middle of a task."""
    program = (
        "from ranks.workloads.chess_value.tasks.process import TaskProcess\n"
        "from tests.chess_value.task_workers import Endless\n"
        "TaskProcess(300.0).worker(Endless).run(0, bool)\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", "RANKS_TEST_PID": str(tmp_path / "pid")}
    rank = subprocess.Popen([sys.executable, "-c", program], env=env)
    found = eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    rank.kill()
    rank.wait()
    assert eventually(lambda: not Path("/proc", str(found)).exists())


def eventually(found: Callable[[], object]) -> object:
    """The first true value of `found()`; the last one after a minute."""
    deadline_s = time.monotonic() + 60
    while not (value := found()) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return value
