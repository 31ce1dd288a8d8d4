"""Exported weights load where only torch is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from ranks import UserError
from ranks.engine.export import export_model
from tests.toys import cartpole, images

CHECK = """
import sys
class NoRanks:
    def find_spec(self, name, path=None, target=None):
        assert name.split(".")[0] not in ("ranks", "safetensors"), f"{name} must not be needed"
sys.meta_path.insert(0, NoRanks())
sys.path.insert(0, sys.argv[1])
import torch, model
net = model.load(sys.argv[1])
print(float(net(torch.ones(2, 8, 8)).detach().double().sum()))
"""


def test_the_exported_file_builds_the_net_with_torch_alone(tmp_path: Path) -> None:
    net = images.Net(16, 0.1)
    export_model(net, tmp_path / "export")
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(tmp_path / "export")], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) == pytest.approx(float(net.eval()(torch.ones(2, 8, 8)).detach().double().sum()), abs=1e-6)


def test_exporting_again_replaces_the_weights_and_keeps_other_files(tmp_path: Path) -> None:
    export_model(images.Net(16, 0.0), tmp_path / "export")
    (tmp_path / "export" / "model.onnx").write_bytes(b"kept")
    first = (tmp_path / "export" / "model.safetensors").read_bytes()
    export_model(images.Net(16, 0.0), tmp_path / "export")
    assert (tmp_path / "export" / "model.safetensors").read_bytes() != first
    assert (tmp_path / "export" / "model.onnx").read_bytes() == b"kept"


def test_a_recurrent_policy_exports_too(tmp_path: Path) -> None:
    export_model(cartpole.RecurrentPolicy(8), tmp_path / "export")
    assert "class RecurrentPolicy" in (tmp_path / "export" / "model.py").read_text()


class Forgetful(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, 1)


def test_an_argument_that_is_not_kept_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'width' is not stored"):
        export_model(Forgetful(3), tmp_path / "export")
