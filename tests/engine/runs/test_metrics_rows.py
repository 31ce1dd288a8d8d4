"""Rows of metrics.jsonl ask for what is slow to find out only now and then."""

from __future__ import annotations

from ranks.engine.runs.metrics_rows import PeakMemory


def test_the_allocator_is_asked_for_its_peak_at_most_once_a_second() -> None:
    now_s, asked_at_s, shown = [0.0], list[float](), list[int]()

    def ask() -> int:
        asked_at_s.append(now_s[0])
        return 10 * len(asked_at_s)

    memory = PeakMemory(ask, clock=lambda: now_s[0])
    for now_s[0] in (100.0, 100.4, 100.999, 101.0, 101.5, 102.5):
        shown.append(memory.read())
    assert shown == [10, 10, 10, 20, 20, 30]
    assert asked_at_s == [100.0, 101.0, 102.5]
