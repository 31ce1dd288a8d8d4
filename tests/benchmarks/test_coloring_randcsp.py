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
    for name in ("instances", "methods", "cell_file"):
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
    row = randcsp.methods.of_part(net, randcsp.instances.Part(cell, 0, 12), published)
    assert row["impossible"] == decisions.count("impossible") > 0
    assert row["colourable"] == decisions.count("colourable") > 0
    assert all(0 < solved <= row["colourable"] for solved in row["solved"].values())
    assert row["published"] == dict.fromkeys(names, row["colourable"])
    assert row["contradictions"] == 0
    published[tests[decisions.index("impossible")].key]["sa"] = 0
    rows = [randcsp.methods.of_part(net, part, published) for part in randcsp.instances.parts_of(cell, 12, 5)]
    assert [one["graphs"] for one in rows] == [5, 5, 2]
    whole = randcsp.methods.merged(rows, cell)
    assert whole["contradictions"] == 1
    same = ("graphs", "graphs_sha256", "colourable", "impossible", "unknown")
    assert [whole[name] for name in same] == [row[name] for name in same]
    assert whole["solved"]["net + repair"] == row["solved"]["net + repair"]


def row_of(randcsp: Any, part: Any, solved: int) -> dict[str, Any]:
    """A row as `of_part` makes it."""
    counts = {"graphs": part.count, "colourable": part.count, "impossible": 0, "unknown": 0, "contradictions": 0}
    by_method = {"solved": {"HEAD": solved}, "cpu_s": {"HEAD": 0.5}, "published": {"sa": 0}}
    return {**vars(part.cell), **counts, "decide_cpu_s": 1.0, "limit_s": 0.25, **by_method}


def test_a_file_is_continued_and_never_mixed(randcsp: Any, tmp_path: Path) -> None:
    path, (first, second, *_) = tmp_path / "cells.json", randcsp.instances.cells()
    open_file, parts_of = randcsp.cell_file.CellFile.open, randcsp.instances.parts_of
    (whole,), (one, two) = parts_of(first, 2, 2), parts_of(second, 2, 1)
    open_file(path, IDENTITY, SESSION).add(whole, row_of(randcsp, whole, 1))
    again = open_file(path, IDENTITY, {**SESSION, "hardware": {"cpu": "two"}})
    assert again.missing([whole, one, two]) == [one, two]
    assert [session["hardware"]["cpu"] for session in again.sessions] == ["one"], "a start without a part is not listed"
    again.add(two, row_of(randcsp, two, 1))
    again = open_file(path, IDENTITY, {**SESSION, "hardware": {"cpu": "two"}})
    assert again.missing([whole, one, two]) == [one]
    again.add(one, row_of(randcsp, one, 0))
    written = json.loads(path.read_text(encoding="utf-8"))
    assert [(row["solved"]["HEAD"], row["graphs"], row["session"]) for row in written["cells"]] == [
        (1, 2, 0),
        (1, 2, 1),
    ]
    assert written["parts"] == []
    assert [session["hardware"]["cpu"] for session in written["sessions"]] == ["one", "two"]
    for change in ({"weights_sha256": "b"}, {"graphs": 3}):
        with pytest.raises(randcsp.cell_file.Refused, match=rf"{next(iter(change))}.*give another --result"):
            open_file(path, IDENTITY | change, SESSION)
    assert json.loads(path.read_text(encoding="utf-8")) == written


def test_several_processes_fill_one_file(randcsp: Any, tmp_path: Path) -> None:
    path, (cell, *_) = tmp_path / "cells.json", randcsp.instances.cells()
    first, second = randcsp.instances.parts_of(cell, 2, 1)
    one, two = (randcsp.cell_file.CellFile.open(path, IDENTITY, {**SESSION, "command": name}) for name in "ab")
    with one.claim(first) as is_ours, two.claim(first) as is_theirs, two.claim(second) as is_free:
        assert (is_ours, is_theirs, is_free) == (True, False, True)
    one.add(first, row_of(randcsp, first, 1))
    assert two.missing([first, second]) == [second]
    two.add(second, row_of(randcsp, second, 1))
    (row,) = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert (row["solved"], row["session"]) == ({"HEAD": 2}, [0, 1])
