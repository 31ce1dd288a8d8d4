"""`ranks prove table` prints a workload's table and compares each row with its bar."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import prove

WORKLOAD = """
from images import Config, build, evaluate, train

def table(quick: bool = False):
    graphs = 4 if quick else 40
    rows = [
        {{"way": "trained", "solved": graphs, "share": 1.0, "bar": ">= 0.5", "passed": True}},
        {{"way": "untrained", "solved": 0, "share": 0.0, "bar": "{bar}", "passed": {passed}}},
        {{"way": "guessing", "solved": 0, "share": 0.0, "bar": None, "passed": None}},
    ]
    passed = all(row["passed"] is not False for row in rows)
    return {{"tables": {{"Ways": rows}}, "passed": passed, "facts": {{"seed": 1}}}}
"""
TOYS = Path(__file__).parent.parent / "toys"


@pytest.mark.parametrize(("passed", "code"), [(True, 0), (False, 1)])
def test_rows_are_compared_with_their_bars(tmp_path: Path, passed: bool, code: int) -> None:
    path = tmp_path / "own.py"
    path.write_text(f"import sys\nsys.path.insert(0, {str(TOYS)!r})\n" + WORKLOAD.format(bar="<= 0.1", passed=passed))
    outcome = prove(("table", str(path), "--quick"), tmp_path)
    assert outcome.code == code, outcome.printed
    assert outcome.failed == ([] if passed else ["untrained", "table"])
    assert outcome.file["raw"]["tables"]["Ways"][0]["solved"] == 4
    assert "seed: 1" in outcome.printed
