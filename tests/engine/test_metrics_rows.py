"""Rows of metrics.jsonl ask for what is slow to find out only now and then."""

from __future__ import annotations

from ranks.engine.runs.metrics_rows import PeakMemory


def test_the_allocator_is_asked_for_its_peak_at_most_once_a_second() -> None:
    asked_at_s: list[float] = []
    now_s = 100.0

    def ask() -> int:
        asked_at_s.append(now_s)
        return 10 * len(asked_at_s)

    memory, shown = PeakMemory(ask, clock=lambda: now_s), list[int]()
    for now_s in (100.0, 100.4, 100.999, 101.0, 101.5, 102.5):
        shown.append(memory.read())
    assert shown == [10, 10, 10, 20, 20, 30]
    assert asked_at_s == [100.0, 101.0, 102.5]
