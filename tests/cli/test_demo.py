"""The demo's order of commands, without the minutes that they take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ranks.cli import demo
from ranks.cli.main import main


def carry_out(monkeypatch: pytest.MonkeyPatch, fails: str | None = None) -> list[list[str]]:
    """Let the demo run on commands that do nothing; `fails` names one that ends with 143."""
    done: list[list[str]] = []

    def pretend(command: Sequence[str]) -> int:
        done.append(list(command))
        return 143 if command[0] == fails else 0

    monkeypatch.setattr(demo, "carry_out", pretend)
    return done


def test_the_whole_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    done = carry_out(monkeypatch)
    assert main(["demo"]) == 0
    assert [command[0] for command in done] == ["train", "evaluate", "export", "graph-coloring"]
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 5
    assert "runs/demo/export" in lines[1]
    assert lines[4].startswith("next: ")
    graph = (tmp_path / "runs/demo/solve/graph.col").read_text().splitlines()
    assert graph[1] == f"p edge 50 {len(graph) - 2}"


def test_it_ends_where_a_command_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    done = carry_out(monkeypatch, fails="evaluate")
    assert main(["demo"]) == 143
    assert [command[0] for command in done] == ["train", "evaluate"]


def test_commands_are_carried_out_as_typed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert demo.carry_out(["runs", "--runs-dir", str(tmp_path)]) == 0
    assert demo.carry_out(["runs", "--nonsense"]) == 2
    out, err = capfd.readouterr()
    assert f"$ ranks runs --runs-dir {tmp_path}" in out
    assert "no runs" in out
    assert "--nonsense" in err
