"""The example that colours graphs with the ONNX file: its imports, features, output and errors."""

from __future__ import annotations

import ast
import gzip
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import networkx as nx
import numpy as np
import onnx
import pytest

from ranks.workloads.graph_coloring.data.families.hard_instances import hard_three_colourable
from ranks.workloads.graph_coloring.graphs.checker import check_sol
from ranks.workloads.graph_coloring.graphs.features import node_features
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx

EXAMPLE = Path(__file__).parents[3] / "examples" / "color_with_onnx.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("color_with_onnx", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def cycle(tmp_path: Path) -> Path:
    path = tmp_path / "cycle.col"
    path.write_text("c a cycle\np edge 5 5\ne 1 2\ne 2 3\ne 3 4\ne 4 5\ne 5 1\n")
    return path


@pytest.fixture
def hard(tmp_path: Path) -> Path:
    """A 3-colourable graph with 50 vertices; a random colouring of it has conflicts."""
    graph = hard_three_colourable(11, "example", 50, 0)
    edges = "".join(f"e {u + 1} {v + 1}\n" for u, v in graph.edges_E2.tolist())
    path = tmp_path / "hard.col.gz"
    path.write_bytes(gzip.compress(f"p edge 50 {graph.num_edges}\n{edges}".encode()))
    return path


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_example_imports_only_numpy_and_onnxruntime() -> None:
    tree = ast.parse(EXAMPLE.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    outside = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names)
    assert outside == {"numpy", "onnxruntime"}


@pytest.mark.parametrize(("n", "p"), [(1, 0.0), (5, 0.0), (30, 0.2), (60, 0.5), (50, 0.9), (100, 0.05)])
def test_the_example_computes_the_same_features(n: int, p: float, example: ModuleType) -> None:
    graph, _ = from_networkx(nx.gnp_random_graph(n, p, seed=n))
    adjacency = np.zeros((n, n), dtype=bool)
    u, v = graph.edges_E2.T
    adjacency[u, v] = adjacency[v, u] = True
    np.testing.assert_array_equal(example.node_features(adjacency), node_features(graph))


def test_the_example_colours_a_hard_graph(shipped: Path, hard: Path, tmp_path: Path) -> None:
    """The trained weights solve it; the same weights in random order do not."""
    done = run(shipped / "model.onnx", hard, "-k", 3, "--tries", 30)
    assert done.returncode == 0, done.stdout + done.stderr
    sol = tmp_path / "hard.sol"
    sol.write_text(done.stdout)
    assert check_sol(hard, sol) == []

    model, rng = onnx.load(shipped / "model.onnx"), np.random.default_rng(0)
    for weights in model.graph.initializer:
        values = onnx.numpy_helper.to_array(weights)
        if values.dtype == np.float32 and values.size > 1:
            shuffled = rng.permutation(values.ravel()).reshape(values.shape)
            weights.CopyFrom(onnx.numpy_helper.from_array(shuffled, weights.name))
    onnx.save(model, tmp_path / "shuffled.onnx")
    done = run(tmp_path / "shuffled.onnx", hard, "-k", 3, "--tries", 30)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "s UNKNOWN"), done.stderr


def test_without_a_proper_colouring_the_output_is_unknown(shipped: Path, cycle: Path) -> None:
    done = run(shipped / "model.onnx", cycle, "-k", 2, "--tries", 3)
    assert done.returncode == 1
    assert "c 2 colours: " in done.stdout
    assert done.stdout.endswith("s UNKNOWN\n")


BAD_GRAPHS = {
    "loop": ("p edge 2 2\ne 1 2\ne 2 2\n", "vertex 2 has an edge to itself"),
    "no p line": ("e 1 2\n", "one line 'p edge VERTICES EDGES'"),
    "two p lines": ("p edge 2 0\np edge 2 0\n", "one line 'p edge VERTICES EDGES'"),
    "no vertices": ("p edge 0 0\n", "one line 'p edge VERTICES EDGES'"),
    "words": ("p edge two 1\n", "not a DIMACS graph"),
    "half an edge": ("p edge 2 1\ne 1\n", "not a DIMACS graph"),
    "outside": ("p edge 2 1\ne 0 1\n", "edge 0 1 of a graph with vertices 1..2"),
}


@pytest.mark.parametrize("case", BAD_GRAPHS)
def test_bad_graphs_are_rejected(case: str, example: ModuleType, tmp_path: Path) -> None:
    text, message = BAD_GRAPHS[case]
    path = tmp_path / "g.col"
    path.write_text(text)
    with pytest.raises(SystemExit, match=message):
        example.read_col(path)


def test_missing_and_damaged_files_are_rejected(example: ModuleType, cycle: Path, tmp_path: Path) -> None:
    missing, damaged = tmp_path / "none.col", tmp_path / "g.col.gz"
    damaged.write_bytes(gzip.compress(cycle.read_bytes())[:-9])
    adjacency = example.read_col(cycle)
    for call in (
        lambda: example.read_col(missing),
        lambda: example.read_col(damaged),
        lambda: example.Model(missing, adjacency),
    ):
        with pytest.raises(SystemExit, match="cannot be read"):
            call()
    with pytest.raises(SystemExit, match="not a model that onnxruntime can run"):
        example.Model(cycle, adjacency)


@pytest.mark.parametrize("flags", [("-k", "0"), ("-k", "-1"), ("--tries", "0"), ("--seed", "-1")])
def test_numbers_below_the_minimum_are_rejected(
    flags: tuple[str, str], example: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["color_with_onnx.py", "model.onnx", "graph.col", *flags])
    with pytest.raises(SystemExit) as end:
        example.main()
    assert end.value.code == 2
    assert f"'{flags[1]}' is not an integer of at least" in capsys.readouterr().err


def test_a_closed_pipe_prints_one_line(shipped: Path, cycle: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, str(EXAMPLE), str(shipped / "model.onnx"), str(cycle)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "the output was closed before the program ended\n")
