"""Pictures: the coloured graph and the plots of results. The tests read the pixels of the files."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.pictures import canvas
from ranks.workloads.graph_coloring.pictures.coloured_graph import draw_colouring, palette
from ranks.workloads.graph_coloring.pictures.plots import NONE_FOUND, SHADES, SOLVED, plot_conflicts, plot_gaps


def share_of(path: Path, colour: str) -> float:
    """The share of a picture's pixels that have this colour."""
    pixels: npt.NDArray[Any] = imread(path)[:, :, :3]
    return float((np.abs(pixels - np.asarray(to_rgb(colour))).max(-1) < 0.01).mean())


def cycle(n: int) -> Graph:
    return Graph.of(n, [(v, (v + 1) % n) for v in range(n)])


@pytest.mark.parametrize("n", [1, 5, 101, 201])
def test_only_conflicts_are_red(n: int, tmp_path: Path) -> None:
    graph = cycle(n) if n > 2 else Graph.of(n, [])
    proper, clash = tmp_path / "proper.png", tmp_path / "clash.png"
    draw_colouring(graph, np.arange(n), proper, "proper")
    assert share_of(proper, canvas.CONFLICT) == 0
    if n > 2:
        draw_colouring(graph, np.zeros(n, dtype=np.int64), clash, "clash")
        assert share_of(clash, canvas.CONFLICT) > 0


def test_the_extension_selects_the_format(tmp_path: Path) -> None:
    draw_colouring(cycle(3), np.arange(3), tmp_path / "x.SVG", "a")
    assert "<svg" in (tmp_path / "x.SVG").read_text()
    for name, found in (("x.pdf", r"the extension '\.pdf' is not supported"), ("x", "the path has no extension")):
        with pytest.raises(UserError, match=found + r"\n.*\.png or \.svg"):
            draw_colouring(cycle(3), np.arange(3), tmp_path / name, "a")
        assert not (tmp_path / name).exists()


def test_the_colours_of_a_palette_are_distinct() -> None:
    assert len(set(palette(80))) == 80
    assert palette(0) == []
    assert canvas.CONFLICT not in palette(200)


def test_bars_have_the_lengths_of_their_shares(tmp_path: Path) -> None:
    path = tmp_path / "gaps.png"
    plot_gaps(path, {"even": [0, 1, np.nan, 9], "odd": [0, 0, 0, -1], "empty": []}, "gaps")
    shares = [share_of(path, colour) for colour in (*SHADES, NONE_FOUND)]
    assert shares[0] == pytest.approx(5 * shares[1], rel=0.15)
    assert shares[1] == pytest.approx(shares[4], rel=0.25)
    assert shares[1] == pytest.approx(shares[5], rel=0.25)
    assert max(shares[2:4]) < 0.25 * shares[1]


def test_only_solved_tries_have_a_dot(tmp_path: Path) -> None:
    open_, solved = tmp_path / "open.png", tmp_path / "solved.png"
    plot_conflicts(open_, [[9, 5, 2], [8, 6, 1]], "open")
    plot_conflicts(solved, [[9, 5, 2], [8, 0, -1]], "solved")
    assert share_of(solved, SOLVED) > 1.5 * share_of(open_, SOLVED)


def test_a_single_round_of_a_single_try_is_plotted(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    plot_conflicts(path, [3], "one")
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    assert (width, height) == (1275, 690)


def test_a_missing_folder_or_package_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="can be written"):
        plot_gaps(tmp_path / "no" / "x.png", {"a": [0]}, "a")
    with pytest.raises(UserError, match="can be written"):
        draw_colouring(cycle(3), np.arange(3), tmp_path / "no" / "x.png", "a")

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # as if it were not installed
    with pytest.raises(UserError, match=r"--draw .*\n.*matplotlib is not installed"):
        draw_colouring(cycle(3), np.arange(3), tmp_path / "x.png", "a")
