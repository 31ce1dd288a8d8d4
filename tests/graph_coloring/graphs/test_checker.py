"""The checker of .sol files, and how they are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.checker import check_sol, problems
from ranks.workloads.graph_coloring.graphs.dimacs import write_sol
from tests.graph_coloring.graphs.test_formats import PATH_OF_3


def test_the_checker_reads_written_sol_files(tmp_path: Path) -> None:
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


BAD_SOLUTIONS = {
    "conflict": ("s col 2\nl 1 1\nl 2 1\nl 3 2\n", "both ends have colour 1"),
    "missing vertex": ("s col 2\nl 1 1\nl 2 2\n", "2 vertices are coloured"),
    "colour out of range": ("s col 2\nl 1 1\nl 2 3\nl 3 1\n", "outside 1..2"),
    "twice": ("s col 2\nl 1 1\nl 1 2\nl 2 2\nl 3 1\n", "coloured twice"),
}


@pytest.mark.parametrize("case", BAD_SOLUTIONS)
def test_checker_finds(case: str, tmp_path: Path) -> None:
    text, found = BAD_SOLUTIONS[case]
    col, sol = tmp_path / "g.col", tmp_path / "g.sol"
    col.write_text(PATH_OF_3)
    sol.write_text(text)
    assert any(found in line for line in check_sol(col, sol))


def test_problems_counts_colours() -> None:
    assert problems(3, [(0, 1), (1, 2)], [0, 1, 2], 2) == ["3 colours are used, 2 are allowed"]
    assert problems(3, [(0, 1)], [0, 1], None) == ["2 colours for 3 nodes"]
    assert problems(2, [], [0, 0], 1) == []
