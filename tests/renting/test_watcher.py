"""The watcher of ranks autodown: its clocks, its signals, and what it does when it is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ranks.engine.runs.folder import RunFolder
from ranks.renting.autodown.decision import Rules
from ranks.renting.autodown.ending import Alarm
from ranks.renting.autodown.paid_time import PaidTime
from ranks.renting.autodown.providers import ProviderAnswer
from ranks.renting.autodown.run_state import RunState
from ranks.renting.autodown.watcher import Watcher

from .test_autodown import RULES, TRAINING


def test_a_watcher_that_is_started_again_counts_on_but_not_on_another_machine(tmp_path: Path) -> None:
    path, clock = tmp_path / "paid.json", [100.0]

    def paid(machine: str, boot: str, began: float = 1e9, first_sign: float = 5.0) -> PaidTime:
        return PaidTime(path, machine, began, first_sign, lambda: clock[0], boot)

    first = paid("pod 1", "boot 1")
    assert first.elapsed_s() == 0.0
    clock[0] = 150.0
    first.keep()
    clock[0] = 209.0
    first.keep()  # not yet again
    clock[0] = 300.0
    again = paid("pod 1", "boot 1", began=2e9, first_sign=6.0)
    assert again.elapsed_s() == 200.0, "the time without a watcher counts"
    assert not again.is_new(5.0), "a file of before the first watch"
    assert again.is_new(1e9 + 1)
    again.keep()
    clock[0] = 10.0
    restarted = paid("pod 1", "boot 2")
    clock[0] = 15.0
    assert restarted.elapsed_s() == 205.0, "the clock of a machine that was started again begins at 0"
    assert paid("pod 2", "boot 2").elapsed_s() == 0.0
    for damaged in ("{", '{"machine": "pod 1"}', '{"machine": "pod 1", "elapsed_s": NaN, "clock_s": 1}'):
        path.write_text(damaged)
        assert paid("pod 1", "boot 2").elapsed_s() == 0.0


def test_files_of_an_earlier_machine_are_no_run_where_the_clock_is_wrong(tmp_path: Path) -> None:
    """It has begun in 1970. A file of today is then new only where it has changed."""
    paid = PaidTime(tmp_path / "paid.json", "pod 1", began=60.0, first_sign=1.7e9)
    assert not paid.is_new(1.7e9)
    assert paid.is_new(1.7e9 + 1)
    assert not paid.is_new(50.0)


class Ended(Exception):
    """The machine, or the script of the test."""


@dataclass(frozen=True)
class StubMachine:
    title: str = "a machine"
    alarm_s: float = 1e6
    rental: str = "a machine"

    def end(self) -> ProviderAnswer:
        raise Ended

    def look(self) -> ProviderAnswer:
        return ProviderAnswer(True, "")


class Looks:
    """A watcher of a machine whose looks at the run, clocks included, a test writes. `say`: what it has said."""

    def __init__(self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.now_s = self.paid_s = 0.0
        self.wall_s, self.said = time.time(), list[str]()

    def watch(self, rules: Rules, looks: Iterator[RunState]) -> list[str]:
        """Watch to the end of the looks, or of the machine. Returns what was said."""

        def look(folder: RunFolder) -> RunState:
            state = next(looks, None)
            if state is None:
                raise Ended
            return state

        kept = self.folder.path.with_name(".r.autodown.json")
        paid = PaidTime(kept, "a machine", self.wall_s, 0.0, lambda: self.paid_s)
        with self.monkeypatch.context() as patch:
            patch.setattr("ranks.renting.autodown.watcher.read_state", look)
            patch.setattr(time, "time", lambda: self.wall_s)
            watcher = Watcher(
                self.folder, rules, StubMachine(), Alarm(self.said.append), paid, poll_s=0.0, now_s=lambda: self.now_s
            )
            with pytest.raises(Ended):
                watcher.watch()
        return self.said


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Looks:
    (tmp_path / "runs").mkdir()
    return Looks(RunFolder(tmp_path / "runs" / "r"), monkeypatch)


@pytest.mark.parametrize("step_s", [1e7, -1e7])
def test_a_step_of_the_wall_clock_neither_stops_a_run_nor_ends_its_machine(step_s: float, looks: Looks) -> None:
    def script() -> Iterator[RunState]:
        for number in range(10):
            looks.now_s += 5.0
            looks.paid_s += 5.0
            looks.wall_s += step_s if number == 5 else 5.0
            yield replace(TRAINING, last_sign=looks.wall_s)

    assert looks.watch(RULES, script()) == []
    assert looks.watch(RULES, (replace(TRAINING, last_sign=1.0) for _ in range(9))) == [], "files with an old time"


def test_a_run_without_progress_is_stopped_whatever_the_wall_clock_says(looks: Looks) -> None:
    def script() -> Iterator[RunState]:
        for _ in range(3):
            looks.now_s += 300.0
            looks.wall_s -= 300.0
            yield replace(TRAINING, last_sign=looks.wall_s if looks.now_s < 600.0 else 1.0)
        looks.now_s += 300.0
        yield replace(TRAINING, last_sign=1.0)

    assert looks.watch(RULES, script())[0] == "stopping the run: no progress for 10 minutes"


def test_a_machine_that_was_suspended_beyond_its_limit_lets_the_run_save_first(looks: Looks) -> None:
    def script() -> Iterator[RunState]:
        yield TRAINING
        looks.paid_s += 1e6
        for _ in range(3):
            looks.now_s += 150.0
            assert not any(line.startswith("ending") for line in looks.said)
            yield replace(TRAINING, last_sign=looks.now_s)

    said = looks.watch(RULES, script())
    assert said[0].startswith("stopping the run: the limit of time or cost is near")
    assert said[-1] == "ending a machine: the limit of time or cost is reached"


HOLDS = """
import os, signal, sys, time
from pathlib import Path
from ranks.engine.runs.folder import RunFolder
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"asked\\n"))  # print may be under way
RunFolder(Path(sys.argv[1])).lock()
os.write(1, b"locked\\n")
time.sleep(600)
"""


def test_the_process_that_holds_the_run_is_asked_to_stop_and_killed_after_its_time_to_save(looks: Looks) -> None:
    argv = [sys.executable, "-c", HOLDS, str(looks.folder.path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "locked\n"

        def script() -> Iterator[RunState]:
            yield TRAINING
            looks.now_s += RULES.stuck_s
            yield TRAINING
            assert run.stdout is not None
            assert run.stdout.readline() == "asked\n"
            looks.now_s += RULES.save_s - 1.0
            looks.wall_s += 1e7
            yield TRAINING
            assert run.poll() is None, "it may still save"
            looks.now_s += 1.0
            yield TRAINING
            assert run.wait(60) == -signal.SIGKILL

        try:
            assert looks.watch(RULES, script()) == ["stopping the run: no progress for 10 minutes"]
        finally:
            run.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize("host", ["this one", "elsewhere"])
def test_a_process_that_does_not_hold_the_run_gets_no_signal(host: str, looks: Looks) -> None:
    """Its id is that of the run's process in another container, or was used again."""
    lock_fd = looks.folder.lock()
    with subprocess.Popen(["sleep", "600"]) as other:
        name = os.uname().nodename if host == "this one" else host
        looks.folder.path.with_name(".r.lock").write_text(f"process {other.pid} on {name} since 2026-01-01 00:00:00")

        def script() -> Iterator[RunState]:
            for _ in range(4):
                yield TRAINING
                looks.now_s += RULES.stuck_s

        try:
            said = looks.watch(RULES, script())
            assert other.poll() is None
            assert len(said) == 2
            assert said[1] == (
                f"process {other.pid} on {name}, which started the run, is not found here: it gets no "
                "signal, and the machine is ended with it at the limit"
            )
        finally:
            os.close(lock_fd)
            other.kill()


def test_the_watch_goes_on_where_its_time_cannot_be_kept(looks: Looks) -> None:
    looks.folder.path.with_name(".r.autodown.json").mkdir()

    def script() -> Iterator[RunState]:
        for _ in range(3):
            looks.paid_s += 100.0
            yield TRAINING

    (line,) = looks.watch(RULES, script())
    assert line.startswith("the time so far is not kept: ")
