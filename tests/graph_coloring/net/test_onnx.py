"""The ONNX export of the shipped network: its output equals torch's, its metadata, and failures."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch.fx.experimental import _config as fx_config

import ranks
from ranks.engine.runs import provenance
from ranks.errors import GaveUp
from ranks.onnx_export.write import compare
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.data.families.training import FAMILIES
from ranks.workloads.graph_coloring.graphs.features import FEATURES
from ranks.workloads.graph_coloring.net import onnx_export
from ranks.workloads.graph_coloring.net.weights_file import load_net
from tests.graph_coloring.conftest import small_net


def compared(model: torch.nn.Module, folder: Path) -> float:
    return compare(model, (folder / "model.onnx").read_bytes(), onnx_export.LAYOUT, onnx_export.examples())


def test_onnxruntime_equals_torch_on_every_shape(shipped: Path) -> None:
    assert len(onnx_export.SHAPES) >= 5
    assert compared(load_net(None).model, shipped) <= 1e-4


def test_torch_export_traces_the_network_without_dynamo() -> None:
    """torch 2.11 rejects the network where int() reads the number of graphs, or where a slice of a free size leaves the
    number of features open. Newer versions accept the one with the help of dynamo, and the other as Min(4, size)."""
    inputs = onnx_export.random_inputs(((5, 4), (9, 12)), 3, 0)
    free = onnx_export.LAYOUT.free_sizes
    settings: Any = fx_config
    with settings.patch(backed_size_oblivious=True):  # as torch.onnx.export does
        program = torch.export.export(small_net(), inputs, dynamic_shapes=free, strict=False)
    tensors = [node.meta["val"] for node in program.graph.nodes if isinstance(node.meta.get("val"), torch.Tensor)]
    sizes = {str(size) for tensor in tensors for size in tensor.shape}
    assert str(len(FEATURES)) in sizes
    assert not [size for size in sizes if "Min" in size or "Max" in size]


def metadata_of(path: Path) -> dict[str, str]:
    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}


def test_the_metadata_describes_the_model(shipped: Path) -> None:
    metadata = metadata_of(shipped / "model.onnx")
    assert metadata["ranks.type_names"].split(", ") == list(FAMILIES)
    assert metadata["ranks.feature_names"].startswith("degree, core number, triangles, clique")
    assert (metadata["ranks.version"], metadata["ranks.format"]) == (ranks.__version__, onnx_export.FORMAT)
    assert set(metadata) >= {"ranks.workload", "ranks.num_colours"}


def test_the_metadata_has_the_sha256_of_the_weights(shipped: Path) -> None:
    metadata = metadata_of(shipped / "model.onnx")
    weights = hashlib.sha256((shipped / "model.safetensors").read_bytes()).hexdigest()
    config = json.loads((shipped / "config.json").read_text())
    assert metadata["ranks.weights_sha256"] == weights == config["weights_sha256"] == load_net(None).sha256


def test_the_commit_is_that_of_the_package_in_any_working_directory(tmp_path: Path) -> None:
    """The working directory is another repository, with an untracked copy of the module."""

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "theirs")
    theirs = git("rev-parse", "HEAD").strip()
    copy = tmp_path / "provenance_copy.py"
    copy.write_text(Path(provenance.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    code = (
        "import importlib.util, sys\n"
        "for path in sys.argv[1:]:\n"
        "    spec = importlib.util.spec_from_file_location('provenance_copy', path)\n"
        "    module = importlib.util.module_from_spec(spec)\n"
        "    spec.loader.exec_module(module)\n"
        "    print(module.git_commit(), module.source_commit())\n"
    )
    command = [sys.executable, "-c", code, str(copy), provenance.__file__]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == [theirs, "None", theirs, str(provenance.source_commit())], done.stderr


def test_a_file_that_differs_from_torch_is_rejected(shipped: Path) -> None:
    other = load_net(None).model
    torch.nn.init.ones_(other.colour_head.weight)
    with pytest.raises(GaveUp, match="differs by"):
        compared(other, shipped)


def test_nothing_is_written_if_onnxruntime_and_torch_disagree(shipped: Path, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    content = (shipped / "model.onnx").read_bytes()
    with pytest.raises(GaveUp):
        onnx_export.export_onnx(small_net(), Config(), tmp_path, to_onnx=lambda model, sha256: content)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
