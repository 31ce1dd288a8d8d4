"""The ONNX export: equal to torch, or not written."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch

from ranks.errors import GaveUp
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.data.families import FAMILIES
from ranks.workloads.graph_coloring.net import onnx_export

from .conftest import small_net


def test_it_equals_torch_on_every_shape(onnx_model: bytes) -> None:
    assert len(onnx_export.SHAPES) >= 5
    assert onnx_export.compare(small_net(), onnx_model) <= 1e-5


def test_it_bears_its_contract(onnx_model: bytes) -> None:
    model = onnx.load_from_string(onnx_model)
    assert [value.name for value in model.graph.input] == list(onnx_export.INPUTS)
    assert [value.name for value in model.graph.output] == list(onnx_export.OUTPUTS)
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert facts["ranks.type_names"].split(", ") == list(FAMILIES)
    assert facts["ranks.feature_names"].startswith("degree, core number, triangles, clique")
    assert set(facts) >= {"ranks.version", "ranks.git", "ranks.num_colours", "ranks.weights_sha256"}


def test_one_that_differs_is_refused(onnx_model: bytes) -> None:
    other = small_net()
    torch.nn.init.ones_(other.read_colour.weight)
    with pytest.raises(GaveUp, match="differs by"):
        onnx_export.compare(other, onnx_model)


def test_export_extra_writes_one_file(tmp_path: Path, onnx_model: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_export, "onnx_bytes", lambda model, sha256: onnx_model)
    paths = onnx_export.export_extra(small_net(), Config(), tmp_path)
    assert paths == [tmp_path / "model.onnx"] == list(tmp_path.iterdir())
