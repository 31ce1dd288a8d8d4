"""A workload of one's own: the file that `ranks new` writes, and what programs read of its run.

The whole way, from that file through a kill to weights in plain torch, is a page of the docs: tests/docs/test_pages.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranks.cli.main import main


def test_the_file_is_short_and_reads_as_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-task"]) == 0
    text = (tmp_path / "my_task.py").read_text()
    assert len(text.splitlines()) < 100
    assert "ranks train ./my_task.py" in text
    assert "ranks evaluate my_task" in text
    assert "template" not in text


def test_evaluation_and_export_as_json(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "spirals", "--gpus", "none", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["run"], found["workload"], found["iteration"]) == ("spirals", "./spirals.py", 20)
    assert 1 / 3 < found["metrics"]["accuracy"] <= 1
    assert main(["export", "spirals", "--json"]) == 0
    files = [Path(entry["path"]) for entry in json.loads(capsys.readouterr().out)["files"]]
    assert [path.name for path in files] == ["model.safetensors", "config.json", "model.py"]
    assert all((trained / path).is_file() for path in files)
