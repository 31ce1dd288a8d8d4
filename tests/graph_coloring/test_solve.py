"""Solving, drawing, exporting, and the table, with a small untrained net."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ranks.engine.export import export_model
from ranks.errors import GaveUp, UserError
from ranks.workloads import WORKLOADS, load
from ranks.workloads.graph_coloring import hard_table, onnx_export
from ranks.workloads.graph_coloring.checker import check_sol
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.draw import draw_colouring, palette
from ranks.workloads.graph_coloring.generators import random_graph
from ranks.workloads.graph_coloring.model import ColouringNet
from ranks.workloads.graph_coloring.solve import solve
from ranks.workloads.graph_coloring.weights_file import load_net


@pytest.fixture
def run(tmp_path: Path) -> str:
    torch.manual_seed(0)
    export_model(ColouringNet(width=8, rounds=6), tmp_path / "run" / "export")
    return str(tmp_path / "run")


@pytest.fixture
def queen5(tmp_path: Path) -> Path:
    cells = list(itertools.product(range(1, 6), repeat=2))
    edges = [
        f"e {i} {j}"
        for (i, a), (j, b) in itertools.combinations(enumerate(cells, 1), 2)
        if a[0] == b[0] or a[1] == b[1] or abs(a[0] - b[0]) == abs(a[1] - b[1])
    ]
    path = tmp_path / "queen.col"
    path.write_text("\n".join([f"p edge 25 {len(edges)}", *edges, ""]))
    return path


def test_solves_and_says_how(queen5: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sol = tmp_path / "q.sol"
    assert solve(str(queen5), run=run, budget="2s", out=sol) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"weights: run run, sha256 {load_net(run).sha256[:12]}"
    assert check_sol(queen5, sol) == []
    assert any(line.startswith("raw: ") for line in lines)
    k = int(sol.read_text().split("s col ")[1].split()[0])
    assert 5 <= k <= 17
    assert f"s col {k}" in lines


def test_k_out_of_reach_is_unknown(queen5: Path, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sol = tmp_path / "q.sol"
    assert solve(str(queen5), run=run, k=4, budget="0.2s", out=sol) == 1
    assert "s UNKNOWN" in capsys.readouterr().out
    assert check_sol(queen5, sol) == ["the .sol file holds no colouring"]


def test_no_net_is_dsatur_by_name(queen5: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert solve(str(queen5), no_net=True) == 0
    out = capsys.readouterr().out
    assert out.startswith("DSATUR, no net")
    assert "s col 5" in out
    assert solve(str(queen5), no_net=True, k=4) == 1
    assert "s UNKNOWN" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "k"), [("p edge 1 0\n", 1), ("p edge 4 0\n", 1), ("p edge 2 1\ne 1 2\n", 2)])
def test_smallest_graphs(text: str, k: int, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.col"
    path.write_text(text)
    assert solve(str(path), run=run, budget="1s", draw=tmp_path / "g.png") == 0
    assert f"s col {k}" in capsys.readouterr().out
    assert (tmp_path / "g.png").read_bytes()[:4] == b"\x89PNG"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "k 0": ({"k": 0}, "at least one colour"),
    "budget": ({"budget": "ten"}, "no length of time"),
    "run and no net": ({"no_net": True, "run": "x"}, "uses no weights"),
    "no such run": ({"run": "nowhere"}, "holds a net"),
}


@pytest.mark.parametrize("case", BAD)
def test_refuses(case: str, queen5: Path) -> None:
    flags, found = BAD[case]
    with pytest.raises(UserError, match=found):
        solve(str(queen5), **flags)


def test_damaged_and_foreign_weights_are_refused(run: str) -> None:
    export = Path(run) / "export"
    raw = bytearray((export / "model.safetensors").read_bytes())
    raw[-1] ^= 1
    (export / "model.safetensors").write_bytes(raw)
    with pytest.raises(UserError, match="is damaged"):
        load_net(run)
    (export / "config.json").write_text("{}")
    with pytest.raises(UserError, match="does not describe a net"):
        load_net(run)


def test_large_graphs_are_drawn_by_class(tmp_path: Path) -> None:
    graph = random_graph(np.random.default_rng(0), 210, 900)
    draw_colouring(graph, np.arange(210) % 12, tmp_path / "g.png", "conflicts")
    assert (tmp_path / "g.png").stat().st_size > 10_000
    assert len(set(palette(60))) == 60
    with pytest.raises(UserError, match="can be written"):
        draw_colouring(graph, np.zeros(210, dtype=np.int64), tmp_path / "no" / "g.png", "nowhere")


@pytest.fixture(scope="module")
def exported() -> tuple[ColouringNet, bytes]:
    torch.manual_seed(0)
    model = ColouringNet(width=4, rounds=2).eval()
    return model, onnx_export.onnx_bytes(model, "0" * 64)


def test_onnx_equals_torch_on_every_shape(exported: tuple[ColouringNet, bytes]) -> None:
    model, content = exported
    assert len(onnx_export.SHAPES) >= 5
    assert onnx_export.compare(model, content) <= 1e-5


def test_onnx_that_differs_is_refused(exported: tuple[ColouringNet, bytes]) -> None:
    _, content = exported
    other = ColouringNet(width=4, rounds=2).eval()
    with pytest.raises(GaveUp, match="differs by"):
        onnx_export.compare(other, content)


def test_export_extra_writes_one_file(tmp_path: Path) -> None:
    paths = onnx_export.export_extra(ColouringNet(width=4, rounds=2), Config(), tmp_path)
    assert paths == [tmp_path / "model.onnx"] == list(tmp_path.iterdir())


def test_table_says_fail_for_an_untrained_net(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard_table, "NUM_GRAPHS_QUICK", 3)
    monkeypatch.setattr(hard_table, "SIZES", (50,))
    result = hard_table.table(quick=True, net=load_net(run))
    assert result["passed"] is False
    ways = [row["way"] for row in result["rows"]]
    assert len(ways) == 7
    assert ways[4] == "DSATUR"
    raw, untrained = result["rows"][:2]
    assert (raw["passed"], untrained["passed"]) == (False, False)
    assert all(0 <= row["solved"] <= row["graphs"] == 3 for row in result["rows"])


def test_a_claimed_colouring_that_is_wrong_is_not_counted(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard_table, "dsatur", lambda graph: np.zeros(graph.n, dtype=np.int64))
    monkeypatch.setattr(hard_table, "NUM_GRAPHS_QUICK", 2)
    monkeypatch.setattr(hard_table, "SIZES", (50,))
    rows = hard_table.table(quick=True, net=replace(load_net(run), name="test"))["rows"]
    assert rows[4]["solved"] == 0


def test_workloads_are_found_by_name_or_path(tmp_path: Path) -> None:
    for name in WORKLOADS:
        assert load(name).Config is not None
    with pytest.raises(UserError, match="did you mean graph-coloring"):
        load("graph-colouring")
    with pytest.raises(UserError, match="no such file"):
        load("./nothing.py")
    path = tmp_path / "mine.py"
    path.write_text("Config = build = train = None\n")
    with pytest.raises(UserError, match="does not define evaluate"):
        load(str(path))
    path.write_text("Config = build = train = evaluate = 1\n")
    assert load(str(path)) is load(str(path))
