"""Where the flags of `ranks launch` end and those of the script begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranks.cli.commands.launch import before_script, is_workload
from ranks.cli.main import main


@pytest.mark.parametrize(
    ("argv", "ours"),
    [
        (["train.py", "--ranks", "2"], 0),
        (["--ranks", "2", "train.py", "--lr", "3"], 2),
        (["--ranks=2", "--gpus", "none", "train.py"], 3),
        (["--help"], 1),
        (["--ranks"], 1),
    ],
)
def test_the_script_is_the_first_word_that_is_not_a_flag(argv: list[str], ours: int) -> None:
    assert before_script(argv) == ours


def test_the_script_gets_its_own_flags(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from ranks.launch import script as launch_module

    seen: list[object] = []
    monkeypatch.setattr(launch_module, "launch_script", lambda *args, **kwargs: seen.append((args, kwargs)) or 7)
    assert main(["launch", "--ranks", "2", "train.py", "--ranks", "5"]) == 7
    ((script, rest), flags) = seen[0]  # type: ignore[misc]
    assert (str(script), rest, flags["ranks"]) == ("train.py", ["--ranks", "5"], 2)


def test_a_workload_is_answered_with_ranks_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text("class Config: ...\ndef build(cfg): ...\ndef evaluate(model): ...\nfrom other import train\n")
    assert main(["launch", "--ranks", "2", str(file), "--iterations", "5"]) == 2
    assert capsys.readouterr().err.endswith(f"do: train it: ranks train {file} --ranks 2 --iterations 5\n")
    assert main(["launch", "graph-coloring"]) == 2
    assert capsys.readouterr().err.endswith("do: train it: ranks train graph-coloring\n")


@pytest.mark.parametrize(
    "text",
    [
        "class Config: ...\ndef build(cfg): ...\ndef train(cfg): ...\nif __name__ == '__main__':\n    ...\n",
        "def train(cfg): ...\n",
        "not Python",
    ],
)
def test_a_script_is_not_taken_for_a_workload(tmp_path: Path, text: str) -> None:
    file = tmp_path / "script.py"
    file.write_text(text)
    assert not is_workload(str(file))
