"""What a report and the page say of a run, from rows that the tests write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranks.watch.run_facts import RowSums, RunFacts
from tests.watch.test_serve import make_run, write_rows

START = 1e9
HOUR = 3600.0


def facts_of(
    sessions: list[dict[str, Any]], events: list[dict[str, Any]] | None = None, *, sums: RowSums | None = None
) -> RunFacts:
    """Of a run that nobody trains now."""
    return RunFacts("mine", {}, {}, sums or RowSums(), events or [], sessions, in_use=False)


def test_a_warning_after_a_pause_is_listed_after_the_resume() -> None:
    sessions = [
        {"event": "opened", "time": START},
        {"event": "stopped", "time": START + 60},
        {"event": "resumed", "time": START + 10 * HOUR},
    ]
    warning = {"event": "warning", "time_s": 90.0, "time": START + 10 * HOUR + 30, "iteration": 4, "text": "odd"}
    found = list(facts_of(sessions, [warning]).history())
    assert [what for _, what, _ in found] == ["opened", "stopped", "resumed", "warning"]
    assert found[-1][0] == "2001-09-09 11:47:10"


FAILED = {"event": "failed", "time": START + 2 * HOUR, "time_s": START + 2 * HOUR}
GAVE_UP = {"event": "gave_up", "time": START + 2 * HOUR}


@pytest.mark.parametrize("ends", [[FAILED], [FAILED, GAVE_UP]])
def test_a_run_that_failed_has_cost_the_time_until_then(ends: list[dict[str, Any]]) -> None:
    found = facts_of([{"event": "opened", "time": START}, *ends], sums=RowSums(10, 7000.0, HOUR))
    assert found.wall_s(START + 99 * HOUR) == 2 * HOUR
    assert found.goodput(START + 99 * HOUR) == 0.5
    table = dict(found.facts(3.0, START + 99 * HOUR))
    assert table["cost"].startswith("6.00 at 3.00 an hour")
    assert "2 h 00 min in all sessions" in table["time"]


def test_a_run_that_was_killed_has_cost_the_time_until_its_last_row() -> None:
    plan = {"event": "plan", "time": START + 1000, "time_s": 600.0}
    found = facts_of([{"event": "opened", "time": START}], [plan], sums=RowSums(10, 600.0 + HOUR, HOUR))
    assert found.wall_s(START + 99 * HOUR) == 1000 + HOUR
    sampled = replace(found, sampled_at=START + 2 * HOUR)
    assert sampled.wall_s(START + 99 * HOUR) == 2 * HOUR, "telemetry goes on in an iteration that takes long"
    assert replace(sampled, in_use=True).wall_s(START + 3 * HOUR) == 3 * HOUR
    assert facts_of([{"event": "opened", "time": START}]).wall_s(START + HOUR) == 0.0, "nothing says when it ended"


def test_a_run_that_was_started_with_a_price_has_a_cost_without_the_flag() -> None:
    first = {"event": "opened", "time": START, "price": 2.0}, {"event": "stopped", "time": START + HOUR}
    second = {"event": "resumed", "time": START + 9 * HOUR}, {"event": "stopped", "time": START + 12 * HOUR}
    dear = ({**second[0], "price": 10.0}, second[1])

    def cost(*sessions: dict[str, Any], price: float | None = None) -> str | None:
        found = facts_of(list(sessions)).cost(price, START + 99 * HOUR)
        return None if found is None else found.words

    assert cost(*first) == "2.00 at 2.00 an hour, for all sessions"
    assert cost(*first, *dear) == "32.00 at 2.00 to 10.00 an hour, for all sessions"
    assert cost(*first, *second) == "2.00 at 2.00 an hour, for 1 of 2 sessions"
    assert cost(*first, *dear, price=1.0) == "4.00 at 1.00 an hour, for all sessions"
    assert cost(*second) is None


def test_the_newest_sample_is_read_from_the_folder(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "mine", [])
    write_rows(folder / "telemetry.jsonl", [{"time": START + at} for at in (5.0, HOUR)])
    found = RunFacts.read(folder, RowSums(), [], [{"event": "opened", "time": START}])
    assert found.wall_s(START + 99 * HOUR) == HOUR
