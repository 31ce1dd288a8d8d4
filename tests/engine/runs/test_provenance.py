"""The commit that a result names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ranks.engine.runs import provenance


def git(folder: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_new_result_is_no_change_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, result = tmp_path / "code.py", tmp_path / "benchmarks" / "results" / "speed.json"
    result.parent.mkdir(parents=True)
    code.write_text("a = 1\n")
    result.write_text("{}")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    monkeypatch.chdir(result.parent)
    clean = provenance.git_commit()
    assert clean is not None
    assert len(clean) == 40
    result.write_text('{"speed": 2}')
    assert provenance.git_commit() == clean
    code.write_text("a = 2\n")
    assert provenance.git_commit() == f"{clean}+changes"
