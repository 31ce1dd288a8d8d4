"""What a report and the page say of a run, from rows that the tests write."""

from __future__ import annotations

from typing import Any

from ranks.watch.run_facts import RowSums, RunFacts

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
