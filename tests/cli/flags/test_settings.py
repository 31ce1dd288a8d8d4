"""Flags override --config FILE, which overrides --preset; --config reads what --print-config prints."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from ranks.cli.flags.settings import resolve
from ranks.cli.main import main
from ranks.engine.config import OptimConfig, RunConfig
from ranks.engine.config_file import encode, overlay


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["train", "graph-coloring", *argv, "--print-config"]) == 0
    return json.loads(capsys.readouterr().out)


def test_order_of_settings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plain, preset = printed(capsys), printed(capsys, "--preset", "demo")
    assert preset["config"]["iterations"] != plain["config"]["iterations"]
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"config": {"iterations": 77, "optim": {"lr": 0.25}}, "engine": {"seed": 5}}))
    over_preset = printed(capsys, "--preset", "demo", "--config", str(file))
    assert over_preset["config"] == {
        **preset["config"],
        "iterations": 77,
        "optim": {**preset["config"]["optim"], "lr": 0.25},
    }
    assert over_preset["engine"]["seed"] == 5
    flags = printed(capsys, "--preset=demo", f"--config={file}", "--iterations", "9", "--seed", "6")
    assert flags["config"] == {**over_preset["config"], "iterations": 9}
    assert flags["engine"] == {**over_preset["engine"], "seed": 6}


def test_printed_settings_can_be_read_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    flags = ["--shares", "5,3", "--exact", "--optim.betas", "0.8,0.9", "--optim.clip-norm", "none", "--max-time", "90s"]
    first = printed(capsys, *flags, "--name", "mine", "--runs-dir", "elsewhere")
    assert first["engine"]["shares"] == [5, 3]
    assert first["config"]["optim"]["betas"] == [0.8, 0.9]
    assert first["config"]["optim"]["clip_norm"] is None
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(first))
    assert printed(capsys, "--config", str(file)) == first


def test_a_switch_that_a_file_turned_on_can_be_turned_off(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"engine": {"exact": true}}')
    assert printed(capsys, "--config", str(file))["engine"]["exact"] is True
    assert printed(capsys, "--config", str(file), "--no-exact")["engine"]["exact"] is False


def test_printed_settings_hold_no_environment_variable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "canary-7f3a")
    assert main(["train", "graph-coloring", "--print-config"]) == 0
    assert "canary" not in capsys.readouterr().out


def test_underscores_and_equals_signs_are_flags_too() -> None:
    settings = resolve("graph-coloring", ["--global_batch=16", "--micro-batch", "4"])
    assert (settings.config.global_batch, settings.engine.micro_batch) == (16, 4)


def test_a_run_is_named_after_its_workload() -> None:
    assert resolve("graph-coloring", []).engine.name == "graph-coloring"
    assert resolve("graph-coloring", ["--name", "other"]).engine.name == "other"


@dataclass(frozen=True)
class Everything:
    """One field of each kind that a config may hold."""

    count: int = 1
    ratio: float = 0.5
    switch: bool = False
    text: str = "a"
    path: Path = Path("a/b")
    maybe: int | None = None
    maybe_path: Path | None = None
    choice: Literal["x", "y"] = "x"
    many: tuple[int, ...] = (1, 2)
    pair: tuple[float, float] = (0.1, 0.2)
    optim: OptimConfig = field(default_factory=OptimConfig)


@pytest.mark.parametrize(
    "config",
    [
        Everything(),
        Everything(
            count=3, ratio=2.0, switch=True, text="b", path=Path("/c"), maybe=4, maybe_path=Path("d"), choice="y"
        ),
        Everything(many=(), pair=(1.0, 2.0), optim=OptimConfig(lr=7.0, clip_norm=None, schedule_updates=3)),
    ],
)
def test_every_kind_of_field_survives_json(config: Everything) -> None:
    values = json.loads(json.dumps(encode(config), allow_nan=False))
    assert overlay(Everything(), values, "a test", "config") == config


def test_the_settings_of_a_run_folder_can_be_read_back() -> None:
    resolved = RunConfig(exact=True, shares=(5, 3)).resolved()
    assert overlay(RunConfig(), json.loads(json.dumps(encode(resolved))), "a test", "engine") == resolved
