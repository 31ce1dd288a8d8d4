"""A small untrained net and its export, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ranks.engine.export import export_model
from ranks.workloads.graph_coloring.data.families import FAMILIES
from ranks.workloads.graph_coloring.net import onnx_export
from ranks.workloads.graph_coloring.net.model import ColouringNet


def small_net() -> ColouringNet:
    torch.manual_seed(0)
    return ColouringNet(width=4, rounds=2, reader_width=4, reader_rounds=1, num_types=len(FAMILIES)).eval()


@pytest.fixture
def run(tmp_path: Path) -> str:
    """The folder of a run that has exported the net."""
    export_model(small_net(), tmp_path / "run" / "export")
    return str(tmp_path / "run")


@pytest.fixture(scope="session")
def onnx_model() -> bytes:
    """The net as ONNX."""
    return onnx_export.onnx_bytes(small_net(), "0" * 64)
