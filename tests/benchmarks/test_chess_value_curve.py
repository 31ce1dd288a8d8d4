"""benchmarks/pages/chess_value.py: a curve is shown only with the cycles of its own run."""

from __future__ import annotations

from typing import Any

from benchmarks.pages.chess_value import training

CYCLE: dict[str, Any] = {"iteration": 1, "time_s": 360.0, "val/loss": 0.003, "cycle/positions": 1000.0}
ORIGIN: dict[str, Any] = {"date": "2026-11-27T00:00:00Z", "versions": {"torch": "2.13"}, "command": "python -m x"}
RECORD: dict[str, Any] = {
    "origin": ORIGIN | {"hardware": {"cores": 2, "cpu": "EPYC"}},
    "run_name": "ship",
    "run_command": "ranks train chess-value",
    "remark": "",
    "cycles": [CYCLE],
}
NET: dict[str, Any] = {
    "cycle": 1,
    "hours": 0.1,
    "nodes": 2000,
    "games": 400,
    "value": 1500.0,
    "low": 1450.0,
    "high": 1550.0,
}


def page(**curve: Any) -> str:
    return "\n".join(training(RECORD, {"origin": ORIGIN, "run": "ship", "nets": [NET], **curve}))


def test_a_curve_of_the_run_has_a_column() -> None:
    assert "| no match | 1500 (1450 to 1550) |" in page()
    assert "400 games with 2,000 nodes a move" in page()


def test_a_curve_of_another_run_has_none() -> None:
    for other in (page(run="other"), page(nets=[NET | {"hours": 0.2}]), "\n".join(training(RECORD, None))):
        assert "1500" not in other
        assert "400 games" not in other
