"""The commands of the demo and their order; they are printed, not run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ranks.cli.commands import demo
from ranks.cli.main import main


def record_commands(monkeypatch: pytest.MonkeyPatch, fails: str | None = None) -> list[list[str]]:
    """Replace the demo's commands by ones that do nothing; `fails` names one that ends with exit
    code 143."""
    done: list[list[str]] = []

    def pretend(command: Sequence[str]) -> int:
        done.append(list(command))
        return 143 if command[0] == fails else 0

    monkeypatch.setattr(demo, "run_command", pretend)
    return done


def test_all_commands_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = record_commands(monkeypatch)
    assert main(["demo"]) == 0
    assert [command[0] for command in done] == ["train", "evaluate", "export", "graph-coloring"]
    lines = capsys.readouterr().out.strip().splitlines()
    assert "minutes" in lines[0]
    assert "runs/demo/export" in lines[-4]
    assert lines[-1].startswith("next: ")
    assert (tmp_path / "runs/demo/solve/graph.col").read_text() == demo.example_graph()


def test_in_a_clone_the_demo_colours_the_graph_of_the_examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("examples").mkdir()
    Path("examples/graph.col").write_text("c one that is there\n")
    done = record_commands(monkeypatch)
    assert main(["demo"]) == 0
    assert done[-1][:3] == ["graph-coloring", "solve", "examples/graph.col"]
    assert Path("examples/graph.col").read_text() == "c one that is there\n"


def test_the_example_is_the_graph_that_its_comment_says() -> None:
    text = (Path(__file__).parents[2] / "examples" / "graph.col").read_text()
    assert text == demo.example_graph()
    lines = text.splitlines()
    assert lines[2] == f"p edge 50 {len(lines) - 3}"


def test_a_command_that_fails_ends_the_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    done = record_commands(monkeypatch, fails="evaluate")
    assert main(["demo"]) == 143
    assert [command[0] for command in done] == ["train", "evaluate"]


def test_a_command_is_printed_and_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert demo.run_command(["runs", "--runs-dir", str(tmp_path)]) == 0
    assert demo.run_command(["runs", "--nonsense"]) == 2
    out, err = capfd.readouterr()
    assert f"$ ranks runs --runs-dir {tmp_path}" in out
    assert "no runs" in out
    assert "--nonsense" in err
