"""Prints how long each part of the suite took, with its budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

BUDGETS_S: Mapping[str, int] = {
    "chess": 100,
    "cli": 60,
    "data": 10,
    "docs": 100,
    "engine": 80,
    "fuzz": 15,
    "graph_coloring": 150,
    "launch": 60,
    "prove": 150,
    "rl": 100,
    "search": 60,
    "simulated_device": 60,
    "stock_trading": 100,
    "watch": 15,
}
"""Seconds of one worker that the tests of a folder may take on two free cores. Printed, not asserted."""

HERE = Path(__file__).parent


def folder_of(nodeid: str) -> str:
    """'tests/engine/test_rng.py::test_golden' -> 'engine'; files directly in tests/ belong to 'tests'."""
    parts = nodeid.partition("::")[0].split("/")
    return parts[-2] if len(parts) > 1 else HERE.name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Seconds by folder, set-up included, summed over parallel workers."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[folder_of(report.nodeid)] += report.duration
    if len(seconds) < 2:
        return
    terminalreporter.section("seconds by folder")
    for name, spent_s in sorted(seconds.items(), key=lambda item: -item[1]):
        budget_s = BUDGETS_S.get(name)
        note = "" if budget_s is None else f" of {budget_s}" + (" (over its budget)" if spent_s > budget_s else "")
        terminalreporter.write_line(f"{spent_s:7.1f}{note}  {name}")
