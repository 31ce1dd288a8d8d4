"""benchmarks/pages/chess_value.py: a curve is shown with the cycles of its own run, and those of other runs below."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.pages.chess_value import curves, other_runs, training

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


def test_the_newest_curve_of_each_run_has_rows_and_its_command(tmp_path: Path) -> None:
    for date, value in (("2026-11-27", 700.0), ("2026-11-28", 753.0)):
        found = {
            "origin": RECORD["origin"] | {"command": "python -m x --made-by ranks train"},
            "run": "outcome",
            "run_command": "ranks train chess-value --labels outcome",
        }
        found |= {"nets": [NET | {"value": value, "low": value - 60, "high": value + 60}]}
        (tmp_path / f"chess_value_curve-outcome_{date}.json").write_text(json.dumps(found), encoding="utf-8")
    shown = "\n".join(other_runs(curves(tmp_path)))
    assert "| outcome | 1 | 0.10 | 753 (693 to 813) |" in shown
    assert "`ranks train chess-value --labels outcome`; rated by `python -m x --made-by COMMAND`" in shown
    assert "700" not in shown
