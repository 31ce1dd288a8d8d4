"""A net as a player of a ladder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ranks.cli.main import main
from ranks.engine.export.about import ExportAbout
from ranks.engine.export.export import export_model
from ranks.workloads.chess_value.config import ValueNetConfig
from ranks.workloads.chess_value.net.building import build_net


def export(folder: Path, net: ValueNetConfig, seed: int) -> None:
    """Write an untrained net as `ranks fetch` would."""
    torch.manual_seed(seed)
    export_model(build_net(net), folder)
    (folder / "ranks.json").write_bytes(ExportAbout("chess-value", "demo", 1, 0, {}, {}, {}).to_bytes())


@pytest.mark.parametrize(
    "net",
    [
        ValueNetConfig(kind="cnn", channels=(4, 4, 4), hidden=(8, 8)),
        ValueNetConfig(kind="resnet", blocks=1, block_channels=8),
        ValueNetConfig(width=16),
    ],
    ids=lambda net: net.kind,
)
def test_a_ladder_with_other_weights_under_the_same_name_is_refused(
    net: ValueNetConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["chess", "ladder", "pool", "--player", "model:net@2", "--player", "random"]
    command += ["--games-per-pair", "2", "--max-plies", "10"]
    for _ in range(2):
        export(tmp_path / "net", net, seed=1)
        assert main(command) == 0
    export(tmp_path / "net", net, seed=2)
    capsys.readouterr()
    assert main(command) == 2
    assert "model:net@2: sha256 was " in capsys.readouterr().err
