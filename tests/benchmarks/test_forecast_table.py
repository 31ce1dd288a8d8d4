"""benchmarks/pages/hardware.py: the table of forecasts and the runs after them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.pages import hardware


def run(num_ranks: int, fact_s: float, *, is_within: bool) -> dict[str, Any]:
    middle = {1: 0.16, 2: 0.0901}[num_ranks]
    return {
        "num_ranks": num_ranks,
        "forecast_s": {"low": 0.9 * middle, "middle": middle, "high": 1.1 * middle},
        "fact_s": fact_s,
        "forecast_run_s": {"low": 1000.0, "middle": 1200.0, "high": 1400.0},
        "fact_run_s": 1250.0,
        "is_within": is_within,
        "load": 0.4,
    }


RESULT: dict[str, Any] = {
    "workloads": {
        "graph-coloring": {
            "runs": [
                run(1, 0.15, is_within=True),
                run(1, 0.2, is_within=False),
                run(1, 0.16, is_within=True),
                run(2, 0.1, is_within=False),
            ],
        },
    },
    "origin": {
        "date": "2026-11-25T12:00:00Z",
        "command": "python -m benchmarks.forecast.fact",
        "versions": {"torch": "2.13.0"},
        "hardware": {"cores": 2, "cpu": "EPYC"},
        "load_average": [0.2, 0.2, 0.2],
    },
}


def test_a_row_for_each_number_of_ranks_with_the_median_of_its_runs() -> None:
    lines = list(hardware.forecast_table(RESULT))
    assert "at most 0.4" in lines[-1]
    one, two = lines[4:6]
    whole = "1,200 s (1,000 to 1,400) | 1,250 s"
    assert one == f"| graph-coloring | 1 | 160 ms (144 to 176) | 160 ms | +0.0% | {whole} | 2 and 3 of 3 |"
    assert two.startswith("| graph-coloring | 2 | 90.1 ms (81.1 to 99.1) | 100 ms | -9.9% |")
    assert two.endswith("| 0 and 1 of 1 |"), "a miss is shown"


def test_a_workload_of_another_day_is_named() -> None:
    old = RESULT["workloads"]["graph-coloring"] | {"date": "2026-11-20T12:00:00Z", "commit": "0123456789ab"}
    lines = list(hardware.forecast_table(RESULT | {"workloads": {"graph-coloring": old}}))
    assert lines[-1] == "graph-coloring was measured on 2026-11-20, at 01234567."


def test_a_page_without_such_runs_has_no_table(tmp_path: Path) -> None:
    assert list(hardware.forecast_and_fact(tmp_path)) == []
    (tmp_path / "forecast_fact_2026-11-25.json").write_text(json.dumps(RESULT))
    assert any("| 2 |" in line for line in hardware.forecast_and_fact(tmp_path))
