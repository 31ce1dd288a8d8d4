"""The set-up script: which Python, which torch."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "environment.py"


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("environment_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_old_python_gets_one_clear_line(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 1, "final", 0))
    with pytest.raises(SystemExit) as end:
        tool.check_python()
    assert "3.11" in str(end.value)
    assert "3.9" in str(end.value)
    assert "\n" not in str(end.value)


def test_versions_are_compared_as_numbers(tool: ModuleType) -> None:
    assert tool.release("2.13.0+cpu") == (2, 13)
    assert tool.release("2.9.1") < tool.OLDEST_TORCH < tool.release("2.13.0")


def test_the_version_of_torch_is_the_one_that_pip_can_keep(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text('__version__ = "2.11.0+cu130"\n')
    about = tmp_path / "torch-2.11.0.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert tool.torch_of(sys.executable) == "2.11.0"


@pytest.mark.parametrize(
    ("offered", "nvidia", "reachable", "size", "index"),
    [
        (["2.15.0", "2.13.0+cpu", "2.13.0"], False, False, "200 MB", False),
        (["2.15.0", "2.13.0"], False, False, "3 GB", False),
        (["2.15.0", "2.13.0"], False, True, "200 MB", True),
        (["2.15.0", "2.13.0"], True, True, "3 GB", False),
        ([], True, False, "3 GB", False),
    ],
)
def test_the_size_is_printed_and_without_a_gpu_the_small_build_is_installed(
    tool: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    offered: list[str],
    nvidia: bool,
    reachable: bool,
    size: str,
    index: bool,
) -> None:
    installed: list[tuple[str, ...]] = []
    versions = json.dumps({"versions": offered})
    monkeypatch.setattr(tool, "output_of", lambda *command: versions if "index" in command else "2.13.0")
    monkeypatch.setattr(tool, "has_nvidia", lambda: nvidia)
    monkeypatch.setattr(tool, "reachable", lambda url: reachable)
    monkeypatch.setattr(tool, "pip", lambda what, *arguments: installed.append((what, *arguments)))
    monkeypatch.setattr(sys, "platform", "linux")
    assert tool.install_torch() == "2.13.0"
    ((what, *arguments),) = installed
    assert size in what
    assert ("--extra-index-url" in arguments) == index
    assert arguments[:2] == ["-c", str(TOOL.parent.parent / "constraints.txt")]
