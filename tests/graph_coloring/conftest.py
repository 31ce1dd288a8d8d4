"""Fixtures: the export of a small untrained network, the export of the shipped network, a graph's
file, a data cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from ranks.data.prepared.file_lock import file_lock
from ranks.engine.export.export import export_model
from ranks.jit import JITTED, cache_folder
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.data.families.training import FAMILIES
from ranks.workloads.graph_coloring.net import onnx_export
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.weights_file import load_net
from tests.graph_coloring.example_graphs import queen, write_col


def small_net() -> ColouringNet:
    torch.manual_seed(0)
    return ColouringNet(width=4, rounds=2, encoder_width=4, encoder_rounds=1, num_types=len(FAMILIES)).eval()


@pytest.fixture
def run(tmp_path: Path) -> str:
    """The folder of a run whose export is `small_net`."""
    export_model(small_net(), tmp_path / "run" / "export")
    return str(tmp_path / "run")


@pytest.fixture
def queen5(tmp_path: Path) -> Path:
    """The file of the queen graph of 5 x 5 squares."""
    return write_col(tmp_path / "queen.col", queen(5, 5))


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an export of the shipped network, with model.onnx.

    The export takes long, so the first test process makes it and the others wait for it.
    """
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # the folder that all workers share
    folder = base / "shipped" / "export"
    with file_lock(base / "shipped.lock", "the export of the shipped network"):
        if not (folder / "model.onnx").exists():
            model = load_net(None).model
            export_model(model, folder)
            assert onnx_export.export_onnx(model, Config(), folder) == folder / "model.onnx"
    return folder


@pytest.fixture(scope="module")
def data_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the data sets of one test module. Compiled kernels stay in their usual
    folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(cache_folder(JITTED[1]).parent))
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder
