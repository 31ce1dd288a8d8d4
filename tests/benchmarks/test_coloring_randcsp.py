"""benchmarks/coloring_randcsp.py: what is impossible, one cell, and a file that is continued."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ranks.workloads.graph_coloring.classical.exact import chromatic_number
from ranks.workloads.graph_coloring.net.weights_file import load_net

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
IDENTITY = {"graphs": 2, "weights_sha256": "a"}
SESSION = {"command": "python benchmarks/coloring_randcsp.py", "hardware": {"cpu": "one"}}


@pytest.fixture
def randcsp(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("cell_file", "instances", "methods"):
        importlib.import_module(f"randcsp.{name}")
    yield sys.modules["randcsp"]
    for name in [name for name in sys.modules if name.split(".")[0] in ("randcsp", "measure")]:
        del sys.modules[name]


def test_impossible_graphs_are_those_of_the_exact_search(randcsp: Any) -> None:
    found = set()
    for k, degree in ((3, 4.94), (5, 9.9), (5, 13.5)):
        for test in randcsp.instances.graphs_of(randcsp.instances.Cell(16, k, degree), 25):
            found.add(decision := randcsp.methods.decide(test, k))
            assert decision == ("colourable" if chromatic_number(test.graph) <= k else "impossible")
    assert found == {"colourable", "impossible"}


def test_a_cell(randcsp: Any) -> None:
    """No method runs on impossible graphs, and a published method that coloured one is counted."""
    cell, names = randcsp.instances.Cell(16, 3, 4.4), randcsp.instances.PUBLISHED
    tests = randcsp.instances.graphs_of(cell, 12)
    decisions = [randcsp.methods.decide(test, 3) for test in tests]
    published = {
        test.key: dict.fromkeys(names, int(one == "impossible")) for test, one in zip(tests, decisions, strict=True)
    }
    net = load_net(None).model
    row = randcsp.methods.of_cell(net, cell, 12, published)
    assert row["impossible"] == decisions.count("impossible") > 0
    assert row["colourable"] == decisions.count("colourable") > 0
    assert all(0 < solved <= row["colourable"] for solved in row["solved"].values())
    assert row["published"] == dict.fromkeys(names, row["colourable"])
    assert row["contradictions"] == 0
    published[tests[decisions.index("impossible")].key]["sa"] = 0
    assert randcsp.methods.of_cell(net, cell, 12, published)["contradictions"] == 1


def test_a_file_is_continued_and_never_mixed(randcsp: Any, tmp_path: Path) -> None:
    path, (first, second, *_) = tmp_path / "cells.json", randcsp.instances.cells()
    open_file = randcsp.cell_file.CellFile.open
    open_file(path, IDENTITY, SESSION).add(first, {**vars(first), "solved": 1})
    again = open_file(path, IDENTITY, {**SESSION, "hardware": {"cpu": "two"}})
    assert list(again.rows) == [first]
    assert [session["hardware"]["cpu"] for session in again.sessions] == ["one"], "a start without a cell is not listed"
    again.add(second, {**vars(second), "solved": 2})
    written = json.loads(path.read_text(encoding="utf-8"))
    assert [(row["solved"], row["session"]) for row in written["cells"]] == [(1, 0), (2, 1)]
    assert [session["hardware"]["cpu"] for session in written["sessions"]] == ["one", "two"]
    for change in ({"weights_sha256": "b"}, {"graphs": 3}):
        with pytest.raises(randcsp.cell_file.Refused, match=rf"{next(iter(change))}.*give another --result"):
            open_file(path, IDENTITY | change, SESSION)
    assert json.loads(path.read_text(encoding="utf-8")) == written


def test_two_processes_fill_one_file(randcsp: Any, tmp_path: Path) -> None:
    path, (first, second, *_) = tmp_path / "cells.json", randcsp.instances.cells()
    one, two = (randcsp.cell_file.CellFile.open(path, IDENTITY, {**SESSION, "command": name}) for name in "ab")
    one.add(first, {**vars(first), "solved": 1})
    two.add(second, {**vars(second), "solved": 2})
    written = json.loads(path.read_text(encoding="utf-8"))
    assert [(row["solved"], row["session"]) for row in written["cells"]] == [(1, 0), (2, 1)]
    assert [session["command"] for session in written["sessions"]] == ["a", "b"]
