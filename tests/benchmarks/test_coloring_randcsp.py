"""benchmarks.graph_coloring.randcsp: what is impossible, one cell, and a file that is continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.graph_coloring.randcsp import instances, methods
from benchmarks.graph_coloring.randcsp.cell_file import CellFile, Refused
from ranks.workloads.graph_coloring.classical.exact import chromatic_number
from ranks.workloads.graph_coloring.net.weights_file import load_net

IDENTITY = {"graphs": 2, "weights_sha256": "a"}
SESSION = {"command": "python -m benchmarks.graph_coloring.randcsp", "hardware": {"cpu": "one"}}


def test_impossible_graphs_are_those_of_the_exact_search() -> None:
    found = set()
    for k, degree in ((3, 4.94), (5, 9.9), (5, 13.5)):
        for test in instances.graphs_of(instances.Cell(16, k, degree), 25):
            found.add(decision := methods.decide(test, k))
            assert decision == ("colourable" if chromatic_number(test.graph) <= k else "impossible")
    assert found == {"colourable", "impossible"}


def test_a_cell() -> None:
    """No method runs on impossible graphs, and a published method that coloured one is counted."""
    cell, names = instances.Cell(16, 3, 4.4), instances.PUBLISHED
    tests = instances.graphs_of(cell, 12)
    decisions = [methods.decide(test, 3) for test in tests]
    published: dict[tuple[int, int, int], dict[str, int]] = {
        test.key: dict.fromkeys(names, int(one == "impossible")) for test, one in zip(tests, decisions, strict=True)
    }
    net = load_net(None).model
    row = methods.of_part(net, instances.Part(cell, 0, 12), published)
    assert row["impossible"] == decisions.count("impossible") > 0
    assert row["colourable"] == decisions.count("colourable") > 0
    assert all(0 < solved <= row["colourable"] for solved in row["solved"].values())
    assert row["published"] == dict.fromkeys(names, row["colourable"])
    assert row["contradictions"] == 0
    published[tests[decisions.index("impossible")].key]["sa"] = 0
    rows = [methods.of_part(net, part, published) for part in instances.parts_of(cell, 12, 5)]
    assert [one["graphs"] for one in rows] == [5, 5, 2]
    whole = methods.merged(rows, cell)
    assert whole["contradictions"] == 1
    same = ("graphs", "graphs_sha256", "colourable", "impossible", "unknown")
    assert [whole[name] for name in same] == [row[name] for name in same]
    assert whole["solved"]["net + repair"] == row["solved"]["net + repair"]


def row_of(part: Any, solved: int) -> dict[str, Any]:
    """A row as `of_part` makes it."""
    counts = {"graphs": part.count, "colourable": part.count, "impossible": 0, "unknown": 0, "contradictions": 0}
    by_method = {"solved": {"HEAD": solved}, "cpu_s": {"HEAD": 0.5}, "published": {"sa": 0}}
    return {**vars(part.cell), **counts, "decide_cpu_s": 1.0, "limit_s": 0.25, **by_method}


def test_a_file_is_continued_and_never_mixed(tmp_path: Path) -> None:
    path, (first, second, *_) = tmp_path / "cells.json", instances.cells()
    open_file, parts_of = CellFile.open, instances.parts_of
    (whole,), (one, two) = parts_of(first, 2, 2), parts_of(second, 2, 1)
    open_file(path, IDENTITY, SESSION).add(whole, row_of(whole, 1))
    again = open_file(path, IDENTITY, {**SESSION, "hardware": {"cpu": "two"}})
    assert again.missing([whole, one, two]) == [one, two]
    assert [session["hardware"]["cpu"] for session in again.sessions] == ["one"], "a start without a part is not listed"
    again.add(two, row_of(two, 1))
    again = open_file(path, IDENTITY, {**SESSION, "hardware": {"cpu": "two"}})
    assert again.missing([whole, one, two]) == [one]
    again.add(one, row_of(one, 0))
    written = json.loads(path.read_text(encoding="utf-8"))
    assert [(row["solved"]["HEAD"], row["graphs"], row["session"]) for row in written["cells"]] == [
        (1, 2, 0),
        (1, 2, 1),
    ]
    assert written["parts"] == []
    assert [session["hardware"]["cpu"] for session in written["sessions"]] == ["one", "two"]
    for change in ({"weights_sha256": "b"}, {"graphs": 3}):
        with pytest.raises(Refused, match=rf"{next(iter(change))}.*give another --result"):
            open_file(path, IDENTITY | change, SESSION)
    assert json.loads(path.read_text(encoding="utf-8")) == written


def test_several_processes_fill_one_file(tmp_path: Path) -> None:
    path, (cell, *_) = tmp_path / "cells.json", instances.cells()
    first, second = instances.parts_of(cell, 2, 1)
    one, two = (CellFile.open(path, IDENTITY, {**SESSION, "command": name}) for name in "ab")
    with one.claim(first) as is_ours, two.claim(first) as is_theirs, two.claim(second) as is_free:
        assert (is_ours, is_theirs, is_free) == (True, False, True)
    one.add(first, row_of(first, 1))
    assert two.missing([first, second]) == [second]
    two.add(second, row_of(second, 1))
    (row,) = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert (row["solved"], row["session"]) == ({"HEAD": 2}, [0, 1])
