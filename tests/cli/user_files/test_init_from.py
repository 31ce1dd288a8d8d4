"""`--init-from EXPORT`: a run begins with the weights of another one. (On several ranks: test_workers.py.)"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import safetensors.torch
import torch

from ranks.cli.main import main
from tests.cli.conftest import HERE

EXPORT = "runs/spirals/export"
TRAIN = ["train", "./spirals.py", "--gpus", "none", "--ranks", "1", *HERE, "--name", "warm"]
FEW = ["--iterations", "2", "--optim.schedule", "constant"]


def weights_in(folder: Path) -> dict[str, torch.Tensor]:
    (file,) = folder.glob("*.safetensors")
    return safetensors.torch.load_file(file)


def identity(trained: Path) -> dict[str, object]:
    return json.loads((trained / "runs" / "warm" / "run.json").read_text())["identity"]


def test_a_run_begins_with_the_weights_and_resumes_with_and_without_the_export(
    trained: Path, capsys: pytest.CaptureFixture[str], refused: Callable[[Sequence[str]], str]
) -> None:
    assert main([*TRAIN, *FEW, "--init-from", EXPORT]) == 0
    weights, config = weights_in(trained / EXPORT), json.loads((trained / EXPORT / "config.json").read_text())
    assert f"begins with the weights of {EXPORT}, sha256 {config['weights_sha256'][:12]}" in capsys.readouterr().out
    assert identity(trained)["init_from"] == config["weights_sha256"]
    first = weights_in(trained / "runs" / "warm" / "checkpoints" / "00000000")
    assert all(torch.equal(first[f"model/{name}"], tensor) for name, tensor in weights.items()), list(first)
    reached = weights_in(trained / "runs" / "warm" / "checkpoints" / "00000002")
    assert not all(torch.equal(reached[f"model/{name}"], tensor) for name, tensor in weights.items())
    other = trained / "other"
    shutil.copytree(trained / "runs" / "warm" / "export", other)
    message = refused([*TRAIN, *FEW, "--iterations", "3", "--init-from", str(other)])
    assert f'init_from was "{config["weights_sha256"][:12]}", now' in message
    assert main([*TRAIN, *FEW, "--iterations", "3", "--init-from", EXPORT]) == 0
    assert "is not read: the run continues from its checkpoint" in capsys.readouterr().out
    shutil.rmtree(trained / EXPORT)
    assert main([*TRAIN, *FEW, "--iterations", "4", "--init-from", EXPORT]) == 0
    assert main([*TRAIN, *FEW, "--iterations", "5"]) == 0
    assert "resumed" in capsys.readouterr().out
    assert main(["evaluate", "warm", "--gpus", "none"]) == 0


def test_weights_of_another_model_are_refused_with_all_differences(
    trained: Path, refused: Callable[[Sequence[str]], str]
) -> None:
    message = refused([*TRAIN, *FEW, "--hidden", "32", "--init-from", EXPORT])
    assert f"asked: --init-from {EXPORT}\n" in message
    assert "layers.0.weight is (64, 2), the model needs (32, 2)" in message
    text = (trained / "spirals.py").read_text()
    (trained / "shorter.py").write_text(text.replace("nn.GELU(), nn.Linear(hidden, 3))", "nn.Linear(hidden, 3))"))
    message = refused(["train", "./shorter.py", *TRAIN[2:], *FEW, "--init-from", EXPORT])
    assert "missing layers.3.weight" in message
    assert "unexpected layers.4.weight" in message
    assert not (trained / "runs" / "warm").exists()


def damage(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda export: shutil.rmtree(export), "config.json"),
        (lambda export: damage(export / "model.safetensors"), "damaged, its sha256 is"),
        (lambda export: (export / "model.safetensors").unlink(), "model.safetensors"),
        (lambda export: (export / "config.json").write_text("{}"), "does not belong to an export"),
    ],
)
def test_an_export_that_is_damaged_is_refused(
    change: Callable[[Path], object], found: str, trained: Path, refused: Callable[[Sequence[str]], str]
) -> None:
    change(trained / EXPORT)
    message = refused([*TRAIN, *FEW, "--init-from", EXPORT])
    assert found in message
    assert "give the export folder of a run" in message
    assert not (trained / "runs" / "warm").exists()
