"""Reading .col files, by the rules of the format; writing .sol files; the checker."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads.graph_coloring.checker import check_sol, problems
from ranks.workloads.graph_coloring.formats import memory_estimate, read_col, write_sol

PATH_OF_3 = "c a path\np edge 3 2\ne 1 2\ne 2 3\n"

GOOD = {
    "plain": (PATH_OF_3, 3, 2),
    "p col": ("p col 3 2\ne 1 2\ne 2 3\n", 3, 2),
    "CRLF": (PATH_OF_3.replace("\n", "\r\n"), 3, 2),
    "blank lines, tabs, no final newline": ("\n p  edge\t3 2\n\n e 1\t2 \ne 3 2", 3, 2),
    "both directions, each counted": ("p edge 3 4\ne 1 2\ne 2 1\ne 2 3\ne 3 2\n", 3, 2),
    "both directions, edges counted once": ("p edge 3 2\ne 1 2\ne 2 1\ne 2 3\ne 3 2\n", 3, 2),
    "each edge once, both directions counted": ("p edge 3 4\ne 1 2\ne 2 3\n", 3, 2),
    "duplicates, lines counted": ("p edge 3 3\ne 1 2\ne 1 2\ne 2 3\n", 3, 2),
    "one vertex": ("p edge 1 0\n", 1, 0),
    "no edges": ("p edge 5 0\n", 5, 0),
    "node lines": ("p edge 3 2\nn 1 4\ne 1 2\ne 2 3\n", 3, 2),
    "comment after the edges": (PATH_OF_3 + "c end\n", 3, 2),
}

BAD = {
    "no p line": ("c nothing\n", "no p line"),
    "empty file": ("", "no p line"),
    "edge before p line": ("e 1 2\np edge 3 1\n", "line 1: an edge before the p line"),
    "two p lines": ("p edge 3 1\np edge 3 1\ne 1 2\n", "line 2: a second p line"),
    "too few edges": ("p edge 3 5\ne 1 2\ne 2 3\n", "line 1: 5 edges are promised"),
    "too many edges": ("p edge 3 1\ne 1 2\ne 2 3\n", "line 1: 1 edges are promised"),
    "vertex 0": ("p edge 3 1\ne 0 1\n", "line 2: vertex 0"),
    "vertex above n": ("c\np edge 3 1\ne 1 4\n", "line 3: vertex 4"),
    "negative vertex": ("p edge 3 1\ne -1 2\n", "vertex -1"),
    "self-loop": ("p edge 3 2\ne 1 2\ne 3 3\n", "line 3: a self-loop at vertex 3"),
    "empty graph": ("p edge 0 0\n", "a graph without vertices"),
    "words for numbers": ("p edge 3 1\ne one two\n", "'one' where a number belongs"),
    "a fraction": ("p edge 3 1\ne 1.5 2\n", "'1.5' where a number belongs"),
    "a number too long": ("p edge 99999999999999999999 1\n", "where a number belongs"),
    "three ends": ("p edge 3 1\ne 1 2 3\n", "line 2: an edge line with 3 numbers"),
    "short p line": ("p edge 3\n", "line 1: a p line that reads 'p edge 3'"),
    "another problem": ("p cnf 3 1\n", "a p line that reads"),
    "strange line": ("p edge 3 1\nz 1 2\n", "line 2: a line that begins with 'z'"),
    "too large": ("p edge 1000000 90000000\n", "line 1: 1,000,000 vertices, 90,000,000 edges: about"),
}


@pytest.mark.parametrize("case", GOOD)
@pytest.mark.parametrize("packed", [False, True])
def test_reads(case: str, packed: bool, tmp_path: Path) -> None:
    text, n, num_edges = GOOD[case]
    path = tmp_path / ("g.col.gz" if packed else "g.col")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    graph = read_col(path)
    assert (graph.n, graph.num_edges) == (n, num_edges)


@pytest.mark.parametrize("case", BAD)
def test_refuses_and_names_file_and_line(case: str, tmp_path: Path) -> None:
    text, found = BAD[case]
    path = tmp_path / "g.col"
    path.write_text(text)
    with pytest.raises(UserError) as refusal:
        read_col(path)
    assert found in refusal.value.found
    assert str(path) in refusal.value.found


def test_other_refusals(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"binary DIMACS"):
        read_col(tmp_path / "g.col.b")
    with pytest.raises(UserError, match=r"No such file"):
        read_col(tmp_path / "missing.col")
    packed = tmp_path / "g.col.gz"
    packed.write_bytes(gzip.compress(PATH_OF_3.encode())[:-12])
    with pytest.raises(UserError, match=r"damaged gzip"):
        read_col(packed)
    packed.write_bytes(b"PK\x00\x00")
    with pytest.raises(UserError, match=r"bytes that are no text"):
        read_col(packed)


def test_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(PATH_OF_3.encode()))))
    assert read_col("-").num_edges == 2


def test_drops_self_loops_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "g.col"
    path.write_text("p edge 3 6\ne 1 2\ne 2 1\ne 2 3\ne 3 2\ne 3 3\ne 3 3\n")
    with pytest.warns(UserWarning, match="2 self-loop lines dropped"):
        graph = read_col(path, drop_self_loops=True)
    assert graph.num_edges == 2


def test_a_million_vertices_pass_the_estimate_where_memory_allows(tmp_path: Path) -> None:
    assert memory_estimate(1_000_000, 1_000) < 2 * 2**30
    path = tmp_path / "g.col"
    path.write_text("p edge 1000000 1\ne 1 1000000\n")
    assert read_col(path).n == 1_000_000


def test_sol_is_read_back_by_the_checker(tmp_path: Path) -> None:
    col, sol = tmp_path / "g.col", tmp_path / "g.sol"
    col.write_text(PATH_OF_3)
    write_sol(sol, np.array([7, 3, 7]), ["two\nlines"])
    assert sol.read_text() == "c two\nc lines\ns col 2\nl 1 1\nl 2 2\nl 3 1\n"
    assert check_sol(col, sol) == []
    write_sol(sol, None)
    assert sol.read_text() == "s UNKNOWN\n"
    assert check_sol(col, sol) == ["the .sol file holds no colouring"]
    with pytest.raises(UserError, match="give a path that can be written"):
        write_sol(tmp_path / "no" / "g.sol", None)


SOL_FAULTS = {
    "conflict": ("s col 2\nl 1 1\nl 2 1\nl 3 2\n", "both ends have colour 1"),
    "missing vertex": ("s col 2\nl 1 1\nl 2 2\n", "2 vertices are coloured"),
    "colour out of range": ("s col 2\nl 1 1\nl 2 3\nl 3 1\n", "outside 1..2"),
    "twice": ("s col 2\nl 1 1\nl 1 2\nl 2 2\nl 3 1\n", "coloured twice"),
}


@pytest.mark.parametrize("case", SOL_FAULTS)
def test_checker_finds(case: str, tmp_path: Path) -> None:
    text, found = SOL_FAULTS[case]
    col, sol = tmp_path / "g.col", tmp_path / "g.sol"
    col.write_text(PATH_OF_3)
    sol.write_text(text)
    assert any(found in line for line in check_sol(col, sol))


def test_problems_counts_colours() -> None:
    assert problems(3, [(0, 1), (1, 2)], [0, 1, 2], 2) == ["3 colours are used, 2 are allowed"]
    assert problems(3, [(0, 1)], [0, 1], None) == ["2 colours for 3 nodes"]
    assert problems(2, [], [0, 0], 1) == []
