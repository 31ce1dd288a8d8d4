"""Ranks that hang: which one is named, and what follows. The scripts import no torch."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import pytest

from ranks.engine.liveness.beats import ROW, Beat, BeatsFile, Collective, Field, limit_of
from ranks.engine.liveness.heartbeat import BEATS_VARIABLE, Heartbeat
from ranks.engine.liveness.phases import ALLOWANCE, FIRST_FACTOR, MOST, SLOWEST_FACTOR, Phase, limit_s
from ranks.engine.liveness.stacks import frames_of
from ranks.launch.supervision.evidence import Evidence, guilty_of
from ranks.launch.supervision.rows import holding_up, loops_differ
from ranks.launch.supervision.watchdog import Watchdog

LIVE = """
import ctypes, subprocess
from ranks.engine.liveness.beats import Collective
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.phases import Phase
heartbeat.connect()
heartbeat.iteration(7, first=False)

def wait_in_a_collective():
    with heartbeat.collective(Collective.ALL_REDUCE):
        time.sleep(600)
"""
HANG_S = 1.0
"""--hang-timeout: a rank that shows nothing in a training step for this long hangs. A start may take twelve times."""


def sessions(launcher: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (launcher.folder / "sessions.jsonl").read_text().splitlines()]


def line_with(launcher: Any, text: str) -> int:
    lines = (launcher.folder / "script.py").read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if text in line)


def test_each_kind_of_hang_is_named_and_all_ranks_start_again(start: Any) -> None:
    launcher = start(
        "if rank == 1 and attempt < 5:\n"
        "    wait_for(f'waits{attempt}')  # a rank that starts late on a busy machine is not yet waiting\n"
        + LIVE
        + "(folder / 'progress').write_text(str(attempt))\n"
        "if rank == 0 and attempt < 5:\n"
        "    touch(f'waits{attempt}')\n"
        "    wait_in_a_collective()\n"
        "if attempt == 0:\n"
        "    while True: pass\n"
        "if attempt == 1:\n"
        "    ctypes.PyDLL(None).sleep(600)  # with Python's lock held\n"
        "if attempt == 2:\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "if attempt in (3, 4):\n"
        "    if attempt == 4:\n"
        "        heartbeat.enter(Phase.WAITING_FOR_DATA)\n"
        "    child = subprocess.Popen(['sleep', '600'])\n"
        "    child.send_signal(signal.SIGSTOP)\n"
        "    with heartbeat.waits_for_worker(child.pid, 5):\n"
        "        time.sleep(600)\n",
        hangs=[HANG_S],
    )
    code, _, err = launcher.end()
    assert code == 0, err
    said = [line for line in err.splitlines() if line.startswith("rank")]
    loop, sleep = line_with(launcher, "while True"), line_with(launcher, "PyDLL")
    assert [line.partition(":")[0] + ":" for line in said[2:3]] == ["rank 1 hangs:"]
    assert said[0].startswith(f"rank 1 hangs (at script.py:{loop}): no progress for ")
    assert said[0].endswith(" s in the phase train, after iteration 7; rank 0 waits for it")
    assert said[1].startswith(f"rank 1 hangs (at script.py:{sleep}): ")
    assert "; it is stopped (SIGSTOP or a debugger); rank 0 waits for it" in said[2]
    assert " of environment 5, which is stopped" in said[3]
    assert "in the phase waiting for data, after iteration 7; it waits for the process" in said[4]
    assert ", which loads item 5, which is stopped" in said[4]
    failed = [fact for fact in sessions(launcher) if fact["event"] == "failed"]
    assert [(fact["rank"], fact["kind"]) for fact in failed] == [(1, "hang")] * 5
    assert [fact["event"] for fact in sessions(launcher)] == ["failed", "restarted"] * 5
    assert launcher.left() == []


def test_a_hang_may_be_reported_only(start: Any) -> None:
    launcher = start(
        LIVE + "make_run_folder()\n"
        "if rank == 1:\n"
        "    wait_for('looked')\n"
        "    heartbeat.enter(7)\n"
        "else:\n"
        "    heartbeat.enter(7)\n",
        hangs=[HANG_S, "report"],
    )
    launcher.wait_for("sessions.jsonl")
    (launcher.folder / "looked").touch()
    code, _, err = launcher.end()
    assert code == 0, err
    assert err.count("rank 1 hangs") == 1
    assert [fact["event"] for fact in sessions(launcher)] == ["hangs"]


def test_a_long_evaluation_is_no_hang(start: Any) -> None:
    """It may take six times the limit of a training step; the other rank waits for it."""
    launcher = start(
        LIVE + "heartbeat.may_evaluate()\n"
        "if rank == 0:\n"
        f"    time.sleep({5 * HANG_S})\n"
        "    touch('evaluated')\n"
        "with heartbeat.collective(Collective.ALL_REDUCE):\n"
        "    wait_for('evaluated')\n",
        hangs=[2 * HANG_S],
    )
    code, _, err = launcher.end()
    assert code == 0, err
    assert "hangs" not in err


def test_a_stop_during_a_hang_ends_without_a_save(start: Any) -> None:
    launcher = start(
        LIVE + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "(folder / 'progress').write_text('120')\n"
        "touch(f'ready{rank}')\n"
        "wait_in_a_collective()\n",
        hangs=[600.0, "restart", 1.0],
    )
    launcher.wait_for("ready0", "ready1")
    launcher.process.terminate()
    code, _, err = launcher.end()
    assert code == 143
    assert err.splitlines()[-1] == "stopped without a save; resumes at 120"
    assert launcher.left() == []


def test_loops_that_end_at_different_iterations_are_named_at_once(start: Any) -> None:
    """The limit of a hang is an hour, so it is not the hang that ends the run."""
    launcher = start(
        LIVE + "heartbeat.finish(10) if rank == 0 else heartbeat.iteration(11, first=False)\nwait_in_a_collective()\n",
        hangs=[3600.0],
    )
    code, _, err = launcher.end()
    assert code == 1
    assert err.startswith(
        "rank 0 failed: loops differ: its loop ended after iteration 10, but rank 1 goes on with iteration 12: "
    )


# Pure functions -------------------------------------------------------------------------------------------------------


def row(phase: Phase = Phase.TRAIN, collectives: int = 5, slowest_s: float = 0.0, **fields: int) -> Beat:
    numbers = [0] * ROW
    numbers[Field.PID], numbers[Field.PHASE], numbers[Field.COLLECTIVES] = 1, phase, collectives
    numbers[Field.SLOWEST_NS + phase] = int(slowest_s * 1e9)
    for name, value in fields.items():
        numbers[Field[name]] = value
    return Beat(tuple(numbers))


def test_ranks_that_wait_are_never_hanging() -> None:
    saving, waiting = row(Phase.SAVE), row(collectives=6)
    assert holding_up({0: saving, 1: waiting}, [20.0, 20.0], timeout_s=5.0) == []
    assert holding_up({0: saving, 1: waiting}, [31.0, 31.0], timeout_s=5.0) == [0]


def test_the_ranks_that_entered_the_fewest_collectives_hold_the_others_up() -> None:
    rows = {0: row(collectives=6), 1: row(), 2: row()}
    assert holding_up(rows, [9.0, 9.0, 9.0], timeout_s=5.0) == [1, 2]
    assert holding_up(rows, [9.0, 9.0, 1.0], timeout_s=5.0) == [], "rank 2 still works, so rank 1 may wait for it"


@pytest.mark.parametrize("phase", list(Phase))
def test_no_phase_has_a_shorter_limit_than_a_training_step(phase: Phase) -> None:
    assert limit_s(phase, 5.0, 0.0) == 5.0 * ALLOWANCE[phase] >= limit_s(Phase.TRAIN, 5.0, 0.0) == 5.0
    assert limit_s(phase, 5.0, 11.5) == max(5.0 * ALLOWANCE[phase], SLOWEST_FACTOR * 11.5)


@pytest.mark.parametrize("phase", list(Phase))
def test_no_limit_grows_above_that_of_a_start(phase: Phase) -> None:
    assert limit_s(phase, 5.0, 1e6, 1e6) == limit_s(Phase.START, 5.0, 0.0) == MOST * 5.0
    assert limit_s(phase, math.inf, 1e6) == math.inf


def test_a_training_step_may_be_as_slow_as_the_first_iteration() -> None:
    numbers = list(row(Phase.FIRST_ITERATION, slowest_s=8.0).numbers)
    numbers[Field.PHASE] = Phase.TRAIN
    rows = [Beat(tuple(numbers)), row()]
    assert limit_of(Phase.TRAIN, rows, 5.0) == FIRST_FACTOR * 8.0
    assert limit_of(Phase.EVALUATE, rows, 5.0) == 5.0 * ALLOWANCE[Phase.EVALUATE]


def test_the_clock_of_a_rank_begins_when_it_connects(tmp_path: Path) -> None:
    """A forked rank has the heartbeat of its fork server, which may be hours old. That is no slow start."""
    beats = BeatsFile(tmp_path / "beats", 1, create=True)
    heartbeat = Heartbeat()
    time.sleep(0.01)
    before_ns = time.monotonic_ns()
    heartbeat.connect({BEATS_VARIABLE: str(tmp_path / "beats"), "WORLD_SIZE": "1", "RANK": "0"})
    (beat,) = beats.read()
    assert beat.connected
    assert beat.numbers[Field.SLOWEST_NS + Phase.START] <= beat[Field.BEAT_NS] - before_ns


def test_the_clocks_of_the_watchdog_begin_again_after_a_pause(tmp_path: Path) -> None:
    watchdog = Watchdog(BeatsFile(tmp_path / "beats", 1, create=True), {}, 0.5, foreign=False)
    now_s = time.monotonic()
    for later_s in (3.0, 6.0):
        assert watchdog.look({0: os.getpid()}, now_s + later_s) is None
    assert watchdog.quiet_s([0]) > limit_s(Phase.START, 0.5, 0.0) - 1.0
    watchdog.restart_clocks()
    assert watchdog.look({0: os.getpid()}, now_s + 9.0) is None
    assert watchdog.quiet_s([0]) <= 3.0


def test_a_run_with_slow_steps_has_a_longer_limit() -> None:
    rows = {0: row(slowest_s=4.0), 1: row(collectives=6)}
    assert holding_up(rows, [15.0, 15.0], timeout_s=5.0) == []
    assert holding_up(rows, [21.0, 21.0], timeout_s=5.0) == [0]


def test_of_ranks_in_the_same_collective_the_stopped_or_busy_one_is_guilty() -> None:
    waits = Evidence(row(WAITING=1))
    assert guilty_of([0, 1], {0: waits, 1: Evidence(row(WAITING=1), state="T")}) == [1]
    assert guilty_of([0, 1], {0: waits, 1: Evidence(row())}) == [1]
    barrier = Evidence(row(), frames=((f"{os.sep}x/torch/distributed/c10d.py".replace(os.sep, "/"), 3, "barrier"),))
    assert guilty_of([0, 1], {0: Evidence(row()), 1: barrier}) == [0]
    assert guilty_of([0, 1], {0: waits, 1: waits}) == [0, 1]
    handler = Evidence(row(WAITING=1), frames=(("/home/me/train.py", 9, "on_signal"),))
    assert guilty_of([0, 1], {0: waits, 1: handler}) == [1], "it runs other code inside the collective"


def test_loops_that_end_together_do_not_differ() -> None:
    done = row(Phase.FINISH, ITERATION=10, STEPS=10)
    assert loops_differ({0: done, 1: row(ITERATION=10, STEPS=10)}) is None
    assert loops_differ({0: done, 1: row(Phase.FINISH, ITERATION=10, STEPS=10)}) is None
    assert loops_differ({0: done, 1: row(ITERATION=9, STEPS=10)}) is None
    assert loops_differ({0: done, 1: row(ITERATION=10, STEPS=11)}) is not None


DUMP = """Thread 0x00007f1 (most recent call first):
  File "/x/threading.py", line 324 in wait
  File "/x/threading.py", line 1002 in _bootstrap

Current thread 0x00007f2 (most recent call first):
  File "/home/me/train.py", line 31 in step
  File "/home/me/train.py", line 60 in <module>
"""


def test_the_stack_of_the_main_thread_is_read() -> None:
    assert frames_of(DUMP) == [("/home/me/train.py", 31, "step"), ("/home/me/train.py", 60, "<module>")]
    crashed = DUMP.replace("Current thread 0x00007f2", "Thread 0x00007f2").replace(
        "Thread 0x00007f1", "Current thread 0x1"
    )
    assert frames_of(crashed, current=True)[0] == ("/x/threading.py", 324, "wait")
    assert frames_of("") == frames_of("no stack") == []


def test_every_kind_of_collective_has_words() -> None:
    assert Collective.ALL_REDUCE.words == "all reduce"
    assert len({kind.words for kind in Collective}) == len(Collective)
