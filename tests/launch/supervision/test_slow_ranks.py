"""Ranks that are named as slow or stuck long before they count as dead, and when none is named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ranks.engine.liveness.beats import BeatsFile, Field
from ranks.engine.liveness.phases import Phase
from ranks.launch.supervision.notice import Notice
from ranks.launch.supervision.silences import KNOWN, LEAST_S, MOST_KEPT, UNKNOWN_S, PhaseHistory, SilenceHistory
from ranks.launch.supervision.watchdog import Watchdog

HANG_S = 300.0


class Watched:
    """A watchdog whose ranks are rows that a test writes, and whose clock is a number."""

    def __init__(self, folder: Path, ranks: int = 2, history: SilenceHistory | None = None) -> None:
        self.beats = BeatsFile(folder / "beats", ranks, create=True)
        self.said: list[Notice] = []
        self.watchdog = Watchdog(self.beats, {}, HANG_S, foreign=False, notice=self.said.append, history=history)
        self.now_s = 1e9
        self.watchdog.look(self.pids, self.now_s)

    @property
    def pids(self) -> dict[int, int]:
        return dict.fromkeys(range(self.beats.num_ranks), os.getpid())

    def write(self, rank: int, **fields: int) -> None:
        row = self.beats.row(rank)
        row[Field.PID] = 1
        if fields.get("PHASE", row[Field.PHASE]) != row[Field.PHASE]:
            row[Field.SLOWEST_NS + row[Field.PHASE]] = 1  # as a heartbeat does when it leaves a phase
        for name, value in fields.items():
            row[Field[name]] = value

    def look(self, seconds: int) -> list[Notice]:
        """What is said in so many seconds in which no row changes."""
        before = len(self.said)
        for _ in range(seconds):
            self.now_s += 1
            assert self.watchdog.look(self.pids, self.now_s) is None
        return self.said[before:]

    def train(self, seconds: int) -> list[Notice]:
        """Both ranks train, with twenty updates a second."""
        before = len(self.said)
        for _ in range(seconds):
            for rank in range(self.beats.num_ranks):
                row = self.beats.row(rank)
                counts = {name: row[Field[name]] + 20 for name in ("BEATS", "STEPS", "ITERATION", "COLLECTIVES")}
                self.write(rank, PHASE=Phase.TRAIN, **counts)
            self.look(1)
        return self.said[before:]


def test_a_rank_that_stops_working_is_named_after_fifteen_seconds_and_when_it_goes_on(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    assert watched.train(5) == []
    watched.write(0, COLLECTIVES=101, WAITING=1)
    watched.write(1, SHARD=3, OFFSET=8, STEPS=101)
    assert watched.look(int(LEAST_S)) == []
    (named,) = watched.look(2)
    assert (named.event, named.rank) == ("slow_rank", 1)
    assert named.text == (
        "rank 1 is slow or stuck: no progress for 16 s in the phase train, after iteration 100, in update 101 of this "
        "start, at item 8 of shard 3; it does not answer; rank 0 waits for it; it counts as dead after 300 s"
    )
    assert named.record["phase"] == "train"
    assert named.record["shard"] == 3
    assert watched.look(30) == [], "it is said once"
    watched.write(1, COLLECTIVES=101, BEATS=101)
    (over,) = watched.look(1)
    assert (over.event, over.rank) == ("rank_goes_on", 1)
    assert over.text.startswith("rank 1 goes on after 4")
    assert watched.train(5) == []


def test_long_evaluations_and_saves_are_no_alarm_once_and_the_next_one_is_compared_with_them(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.train(5)
    watched.write(1, WAITING=1, COLLECTIVES=101)
    watched.write(0, PHASE=Phase.SAVE, BEATS=101)
    assert watched.look(40) == [], "the first save may take long"
    watched.write(1, WAITING=0)
    assert watched.train(5) == []
    watched.write(1, WAITING=1, COLLECTIVES=watched.beats.row(1)[Field.COLLECTIVES] + 1)
    watched.write(0, PHASE=Phase.SAVE, BEATS=500)
    assert watched.look(115) == [], "three times as long as the first one"
    (named,) = watched.look(10)
    assert (named.rank, named.record["phase"]) == (0, "save")


def test_a_save_that_no_look_saw_is_history_too(tmp_path: Path) -> None:
    """Quick saves lie between two looks; the rank's row says that it has saved."""
    watched = Watched(tmp_path)
    watched.train(5)
    watched.beats.row(0)[Field.SLOWEST_NS + Phase.SAVE] = 2_000_000
    watched.train(2)
    watched.write(1, WAITING=1, COLLECTIVES=watched.beats.row(1)[Field.COLLECTIVES] + 1)
    watched.write(0, PHASE=Phase.SAVE, BEATS=500)
    assert [notice.rank for notice in watched.look(17)] == [0]


def test_ranks_that_start_are_not_named_for_five_minutes(tmp_path: Path) -> None:
    assert Watched(tmp_path).look(int(UNKNOWN_S[Phase.START]) - 5) == []


def test_the_history_of_an_earlier_attempt_counts(tmp_path: Path) -> None:
    history = SilenceHistory()
    for _ in range(KNOWN):
        history.add(Phase.TRAIN, 1, 20.0)
    watched = Watched(tmp_path, history=history)
    watched.write(0, PHASE=Phase.TRAIN, BEATS=1)
    watched.write(1, PHASE=Phase.TRAIN, BEATS=1)
    assert watched.look(60) == []
    assert [notice.event for notice in watched.look(3)] == ["slow_rank"]


@pytest.mark.parametrize(
    ("silences_s", "quick", "p99_s", "regular_s"),
    [
        ([], 1000, 0.0, 0.0),
        ([30.0], 1000, 0.0, 0.0),  # one stall among a thousand steps is in neither
        ([30.0, 28.0], 10_000, 0.0, 28.0),  # a slow step that comes back
        ([8.0] * 100, 0, 8.0, 8.0),
        ([20.0, 9.0, 9.0, 9.0], 196, 9.0, 9.0),
        ([40.0], 0, 40.0, 0.0),
    ],
)
def test_what_a_phase_has_learnt(silences_s: list[float], quick: int, p99_s: float, regular_s: float) -> None:
    history = PhaseHistory()
    history.add(quick, 0.0)
    for silence_s in silences_s:
        history.add(1, silence_s)
    assert (history.p99_s, history.regular_s) == (p99_s, regular_s)


def test_a_history_keeps_a_bounded_number_of_silences() -> None:
    history = PhaseHistory()
    for number in range(5 * MOST_KEPT):
        history.add(1, 2.0 + number % 100)
    assert len(history.long_s) <= MOST_KEPT
    assert 95.0 <= history.p99_s <= 101.0


def test_a_step_after_a_slow_first_iteration_has_time_until_the_run_knows_its_steps() -> None:
    history = SilenceHistory()
    history.add(Phase.FIRST_ITERATION, 1, 100.0)
    assert history.limit_s(Phase.TRAIN) == 200.0
    history.add(Phase.TRAIN, KNOWN, 0.1)
    assert history.limit_s(Phase.TRAIN) == LEAST_S


# A real launcher ------------------------------------------------------------------------------------------------------

TRAINS = """
import json
from ranks.engine.liveness.beats import Collective
from ranks.engine.liveness.heartbeat import heartbeat
heartbeat.connect()
make_run_folder()

def iteration(number, load_s, compute_s, wait_s):
    heartbeat.iteration(number, first=False)
    heartbeat.step()
    heartbeat.loads()
    time.sleep(load_s)
    heartbeat.loaded()
    time.sleep(compute_s)
    with heartbeat.collective(Collective.ALL_REDUCE):
        time.sleep(wait_s)

def recorded(event):
    path = folder / "sessions.jsonl"
    return path.exists() and any(json.loads(line)["event"] == event for line in path.read_text().splitlines())
"""


def records(launcher: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (launcher.folder / "sessions.jsonl").read_text().splitlines()]


def test_a_stuck_rank_is_named_with_its_line_and_goes_on(start: Any) -> None:
    launcher = start(
        TRAINS + "for number in range(40):\n"
        "    iteration(number, 0.001, 0.02, 0.001)\n"
        "if rank == 1:\n"
        "    while not os.path.exists(folder / 'go'): time.sleep(0.1)\n"
        "else:\n"
        "    with heartbeat.collective(Collective.ALL_REDUCE):\n"
        "        while not recorded('slow_rank'): time.sleep(0.1)\n"
        "        touch('go')\n"
        "while not recorded('rank_goes_on'):\n"
        "    iteration(40, 0.0, 0.1, 0.0)\n",
        hangs=[HANG_S],
    )
    code, _, err = launcher.end()
    assert code == 0, err
    named, over = records(launcher)
    lines = (launcher.folder / "script.py").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "'go'" in text)
    assert (named["event"], named["rank"], named["phase"]) == ("slow_rank", 1, "train")
    assert named["where"] == f"{launcher.folder / 'script.py'}:{line}"
    assert f"rank 1 is slow or stuck (at script.py:{line}): no progress for 1" in err
    assert over["event"] == "rank_goes_on"
    assert "rank 1 goes on after 1" in err


def test_a_straggler_is_named_with_what_it_uses(start: Any) -> None:
    launcher = start(
        TRAINS + "for number in range(3000):\n"
        "    iteration(number, 0.02, 0.01, 0.001) if rank == 1 else iteration(number, 0.001, 0.01, 0.02)\n"
        "    if recorded('straggler'): break\n",
        hangs=[HANG_S],
    )
    code, _, err = launcher.end()
    assert code == 0, err
    (named,) = records(launcher)
    assert (named["event"], named["rank"], named["cause"]) == ("straggler", 1, "data")
    assert "rank 1 is a straggler (data): it loads data " in err
    assert "; it uses " in named["text"]
    rows = [json.loads(line) for line in (launcher.folder / "runs" / "x" / "telemetry.jsonl").read_text().splitlines()]
    newest = rows[-1]
    for metric in ("cpu_percent", "memory_bytes", "compute_s", "data_s", "wait_s"):
        assert all(newest[f"use/rank{rank}/{metric}"] >= 0 for rank in range(2)), newest
    assert newest["use/rank1/data_s"] > newest["use/rank0/data_s"]
