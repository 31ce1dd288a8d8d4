"""The example consumer of the ONNX file: only onnxruntime and NumPy, the same features, honest colourings."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import networkx as nx
import numpy as np
import pytest

from ranks.workloads.graph_coloring.graphs.checker import check_sol
from ranks.workloads.graph_coloring.graphs.features import node_features
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx

EXAMPLE = Path(__file__).parents[2] / "examples" / "color_with_onnx.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("color_with_onnx", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def model(onnx_model: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "model.onnx"
    path.write_bytes(onnx_model)
    return path


@pytest.fixture
def cycle(tmp_path: Path) -> Path:
    path = tmp_path / "cycle.col"
    path.write_text("c a cycle\np edge 5 5\ne 1 2\ne 2 3\ne 3 4\ne 4 5\ne 5 1\n")
    return path


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_it_imports_only_what_it_promises() -> None:
    tree = ast.parse(EXAMPLE.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    outside = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names)
    assert outside == {"numpy", "onnxruntime"}


@pytest.mark.parametrize(("n", "p"), [(1, 0.0), (5, 0.0), (30, 0.2), (60, 0.5), (50, 0.9), (100, 0.05)])
def test_its_features_are_those_of_the_net(n: int, p: float, example: ModuleType) -> None:
    graph, _ = from_networkx(nx.gnp_random_graph(n, p, seed=n))
    near = np.zeros((n, n), dtype=bool)
    u, v = graph.edges_E2.T
    near[u, v] = near[v, u] = True
    np.testing.assert_array_equal(example.node_features(near), node_features(graph))


def test_it_colours_a_graph_that_torch_never_saw(model: Path, cycle: Path, tmp_path: Path) -> None:
    done = run(model, cycle, "--tries", 200, "-k", 5)
    assert done.returncode == 0, done.stderr
    sol = tmp_path / "cycle.sol"
    sol.write_text(done.stdout)
    assert check_sol(cycle, sol) == []


def test_it_says_when_it_found_nothing(model: Path, cycle: Path) -> None:
    done = run(model, cycle, "-k", 2, "--tries", 3)
    assert done.returncode == 1
    assert "c 2 colours: " in done.stdout
    assert done.stdout.endswith("s UNKNOWN\n")


def test_it_refuses_self_loops(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "loop.col"
    path.write_text("p edge 2 2\ne 1 2\ne 2 2\n")
    done = run(model, path)
    assert done.returncode == 1
    assert "vertex 2 is joined with itself" in done.stderr
