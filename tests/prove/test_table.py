"""`ranks prove table` prints a workload's table and compares each row with its bar."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranks.cli.main import main

from .conftest import TOYS

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


@pytest.mark.parametrize(("passed", "code"), [(True, 0), (False, 1)])
def test_rows_are_compared_with_their_bars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], passed: bool, code: int
) -> None:
    monkeypatch.syspath_prepend(TOYS)
    path = tmp_path / "own.py"
    path.write_text(WORKLOAD.format(bar="<= 0.1", passed=passed))
    assert main(["prove", "table", str(path), "--quick", "--out", str(tmp_path)]) == code
    (file,) = tmp_path.glob("*.json")
    found = json.loads(file.read_text())
    assert [check["name"] for check in found["checks"] if not check["ok"]] == ([] if passed else ["untrained", "table"])
    assert found["raw"]["tables"]["Ways"][0]["solved"] == 4
    assert "seed: 1" in capsys.readouterr().out
