"""`ranks new` checks the name and the environment before it writes; a missing package is named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ranks.cli.main import main


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ("CartPol-v1", "did you mean CartPole-v1?"),
        ("ALF/Pong-v5", "install the package that registers it"),
        ("no_such_module:Env-v0", "install the package that the message names"),
        ('x", evil="', "pprint_registry"),
    ],
)
def test_no_file_is_written_for_an_environment_that_cannot_be_made(
    env: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[[Sequence[str]], str]
) -> None:
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    assert said in refused(["new", "mine", "--shape", "on-policy", "--env", env])
    assert not list(tmp_path.iterdir())


def test_the_written_file_is_named_where_the_name_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-task"]) == 0
    assert "wrote my_task.py (a Python name has no '-', so it is my_task)" in capsys.readouterr().out
    assert main(["new", "second.py"]) == 0
    assert capsys.readouterr().out.startswith("wrote second.py; it trains as it is\n")


def test_without_gymnasium_the_message_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    env = 'Odd"-v0'
    assert main(["new", "mine", "--shape", "on-policy", "--env", env]) == 0
    assert "pip install 'ranks[gymnasium]'" in capsys.readouterr().out
    assert r'env: str = "Odd\"-v0"' in Path("mine.py").read_text()


@pytest.mark.parametrize(
    ("package", "said"),
    [
        ("gymnasium", "pip install 'ranks[gymnasium]'"),
        ("numba", "pip install 'ranks[selfplay]'"),
        ("lacking", "pip install lacking"),
    ],
)
def test_a_missing_package_is_named(
    package: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[[Sequence[str]], str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    Path("mine.py").write_text(f"import {package}\n")
    message = refused(["train", "./mine.py"])
    assert f"it imports {package}, which is not installed" in message
    assert said in message
