"""How long the sessions of a run took, by hand-made records of their starts and ends."""

from __future__ import annotations

from typing import Any

import pytest

from ranks.engine.runs.sessions import goodput, session_times, wall_seconds

Record = dict[str, Any]


def opened(time: float) -> Record:
    return {"event": "opened", "time": time + 5, "joined": time, "attempt": 0}


def resumed(time: float, *, last_sign: float, attempt: int = 0) -> Record:
    """`last_sign`: the last write of the session before."""
    return {"event": "resumed", "time": time, "joined": time, "last_sign": last_sign, "attempt": attempt}


def at(event: str, time: float) -> Record:
    return {"event": event, "time": time}


CASES: dict[str, tuple[list[Record], list[float]]] = {
    "finished": ([opened(0), at("finished", 100)], [100]),
    "stopped, and resumed after a pause": (
        [opened(0), at("stopped", 100), resumed(5000, last_sign=90), at("finished", 5050)],
        [100, 50],
    ),
    "failed": ([opened(0), at("failed", 100)], [100]),
    "gave up after restarts": (
        [opened(0), at("failed", 100), at("restarted", 101), at("failed", 130), at("gave_up", 131)],
        [131],
    ),
    "failed, restarted by its launcher": (
        [opened(0), at("failed", 100), at("restarted", 101), resumed(110, last_sign=95, attempt=1), at("stopped", 200)],
        [110, 90],
    ),
    "failed, and resumed after a pause": (
        [opened(0), at("failed", 100), resumed(5000, last_sign=90), at("finished", 5050)],
        [100, 50],
    ),
    "failed, and its restart was killed": ([opened(0), at("failed", 100), at("restarted", 101)], [300]),
    "killed": ([opened(0)], [300]),
    "killed, and resumed after a pause": ([opened(0), resumed(5000, last_sign=90), at("finished", 5050)], [90, 50]),
    "a hang that was only reported": ([opened(0), at("hangs", 100), at("finished", 200)], [200]),
    "refused before it began": ([at("failed", 100)], []),
    "an older sign than its start": ([opened(500)], [0]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_session_ends_where_it_stopped_failed_or_was_last_seen(case: str) -> None:
    sessions, seconds = CASES[case]
    assert [session.seconds for session in session_times(sessions, last_sign=300.0)] == seconds
    assert wall_seconds(sessions, last_sign=300.0) == sum(seconds)


def test_goodput_of_a_run_that_failed() -> None:
    assert goodput(75.0, [opened(0), at("failed", 100)]) == 0.75
    assert goodput(75.0, [opened(0)]) is None, "nobody knows when it was killed"
