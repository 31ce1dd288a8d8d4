"""ONNX files of any model: names, free sizes, and the comparison with torch before writing."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest
import torch
from torch import Tensor, nn

from ranks.engine.export.export import export_model
from ranks.errors import GaveUp, UserError
from ranks.onnx_export.layout import examples_of, layout_of
from ranks.onnx_export.write import compare, write_onnx


class Answer(NamedTuple):
    value: Tensor
    logits: Tensor


class Small(nn.Module):
    """A net with two outputs."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.hidden, self.value, self.policy = nn.Linear(3, width), nn.Linear(width, 1), nn.Linear(width, 4)

    def forward(self, points: Tensor) -> Answer:
        hidden = self.hidden(points).relu()
        return Answer(self.value(hidden)[:, 0], self.policy(hidden))


EXAMPLE = (torch.zeros(2, 3),)


def test_a_model_is_written_with_names_a_free_number_of_rows_and_its_weights(tmp_path: Path) -> None:
    model = Small(8)
    layout = layout_of(model, EXAMPLE, {"ranks.workload": "small"})
    assert layout.inputs == {"points": ("B", 3)}
    assert layout.outputs == {"value": ("B",), "logits": ("B", 4)}
    folder = export_model(model, tmp_path / "export")
    path = write_onnx(model, folder, layout, examples_of(EXAMPLE))
    proto = onnx.load(path)
    sizes = [size.dim_param or size.dim_value for size in proto.graph.input[0].type.tensor_type.shape.dim]
    assert sizes == ["B", 3]
    assert {entry.key for entry in proto.metadata_props} >= {"ranks.workload", "ranks.version", "ranks.weights_sha256"}
    assert compare(model, path.read_bytes(), layout, [(torch.randn(77, 3),)]) < 1e-5

    other = Small(8)
    with pytest.raises(GaveUp, match="differs by"):
        compare(other, path.read_bytes(), layout, examples_of(EXAMPLE))
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(GaveUp, match="not written"):
        write_onnx(other, folder, layout, examples_of(EXAMPLE), to_onnx=lambda model, sha256: content)
    assert not [file.name for file in folder.iterdir() if "onnx" in file.name]


def test_the_comparison_has_other_numbers_of_rows_and_other_values() -> None:
    examples = examples_of((torch.zeros(2, 3), torch.tensor([4, 5])))
    assert [len(points) for points, _ in examples] == [2, 1, 2, 5]
    assert all(points.abs().sum() > 0 for points, _ in examples[1:])
    assert [index.tolist() for _, index in examples] == [[4, 5], [4], [4, 5], [4, 5, 4, 5, 4]]  # whole numbers stay


def test_a_model_that_returns_no_tensors_is_refused() -> None:
    class Text(nn.Module):
        def forward(self, points: Tensor) -> str:
            return "three"

    with pytest.raises(UserError, match="returns str"):
        layout_of(Text(), EXAMPLE, {})


class Branch(nn.Module):
    """torch's exporter cannot follow a branch that depends on a value."""

    def forward(self, points: Tensor) -> Tensor:
        if points.sum() > 0:
            return points + 1
        return points - 1


class Fixed(nn.Module):
    """The number of rows is fixed, and not free."""

    def forward(self, points: Tensor) -> Tensor:
        return points.reshape(2, 3)


class Eigenvalues(nn.Module):
    """ONNX has no such operation."""

    def forward(self, points: Tensor) -> Tensor:
        return torch.linalg.eigvals(points.T @ points).real


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Branch(), rf"data-dependent expression .*\({__file__}, line \d+\)"),
        (Fixed(), "inferred a static shape of 2"),
        (Eigenvalues(), "No ONNX function found for .*linalg_eig"),
    ],
    ids=["branch", "fixed", "eigenvalues"],
)
def test_a_model_that_torch_s_exporter_rejects_is_a_user_s_error_of_three_lines(
    model: nn.Module, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "model.onnx").write_bytes(b"of older weights")
    with pytest.raises(UserError, match="rejects the model") as caught:
        write_onnx(model, tmp_path, layout_of(model, EXAMPLE, {}), [EXAMPLE])
    assert re.search(reason, caught.value.found)
    assert len(str(caught.value).splitlines()) == 3
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_an_older_file_stays_where_a_package_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as if it were not installed
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "model.onnx").write_bytes(b"of these weights")
    model = Small(8)
    with pytest.raises(UserError, match="onnxruntime is not installed"):
        write_onnx(model, tmp_path, layout_of(model, EXAMPLE, {}), [EXAMPLE])
    assert (tmp_path / "model.onnx").read_bytes() == b"of these weights"


def test_a_file_that_onnxruntime_does_not_load() -> None:
    model = Small(8)
    with pytest.raises(GaveUp, match="does not load the file"):
        compare(model, b"no file", layout_of(model, EXAMPLE, {}), examples_of(EXAMPLE))
