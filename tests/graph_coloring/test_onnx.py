"""The ONNX export of the shipped net: equal to torch, or not written; and what it says of itself."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
import torch

import ranks
from ranks.engine.runs import provenance
from ranks.errors import GaveUp
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.data.families import FAMILIES
from ranks.workloads.graph_coloring.net import onnx_export
from ranks.workloads.graph_coloring.net.weights_file import load_net

from .conftest import small_net


def test_it_equals_torch_on_every_shape(shipped: Path) -> None:
    assert len(onnx_export.SHAPES) >= 5
    assert onnx_export.compare(load_net(None).model, (shipped / "model.onnx").read_bytes()) <= 1e-4


def test_it_says_what_it_is(shipped: Path) -> None:
    told = {entry.key: entry.value for entry in onnx.load(shipped / "model.onnx").metadata_props}
    assert told["ranks.type_names"].split(", ") == list(FAMILIES)
    assert told["ranks.feature_names"].startswith("degree, core number, triangles, clique")
    assert (told["ranks.version"], told["ranks.format"]) == (ranks.__version__, onnx_export.FORMAT)
    assert set(told) >= {"ranks.workload", "ranks.num_colours"}


def test_its_weights_are_those_of_the_file_beside_it(shipped: Path) -> None:
    told = {entry.key: entry.value for entry in onnx.load(shipped / "model.onnx").metadata_props}
    weights = hashlib.sha256((shipped / "model.safetensors").read_bytes()).hexdigest()
    config = json.loads((shipped / "config.json").read_text())
    assert told["ranks.weights_sha256"] == weights == config["weights_sha256"] == load_net(None).sha256


def test_the_commit_is_that_of_the_package_wherever_it_is_called(tmp_path: Path) -> None:
    """In a repository of somebody else, which holds a copy of the package that it does not keep."""

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "theirs")
    theirs = git("rev-parse", "HEAD").strip()
    copy = tmp_path / "facts.py"
    copy.write_text(Path(provenance.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    code = "import importlib.util as u; s = u.spec_from_file_location('facts', {!r}); m = u.module_from_spec(s); "
    code += "s.loader.exec_module(m); print(m.git_commit(), m.source_commit())"
    for path, repository in ((str(copy), None), (provenance.__file__, provenance.source_commit())):
        said = subprocess.run([sys.executable, "-c", code.format(path)], cwd=tmp_path, capture_output=True, text=True)
        assert said.stdout.split() == [theirs, str(repository)], said.stderr


def test_one_that_differs_is_refused(shipped: Path) -> None:
    other = load_net(None).model
    torch.nn.init.ones_(other.colour_head.weight)
    with pytest.raises(GaveUp, match="differs by"):
        onnx_export.compare(other, (shipped / "model.onnx").read_bytes())


def test_nothing_is_written_where_the_two_disagree(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_export, "onnx_bytes", lambda model, sha256: (shipped / "model.onnx").read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(GaveUp):
        onnx_export.export_extra(small_net(), Config(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
