"""The help pages: there at once, without torch, and complete."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ranks import __version__
from ranks.cli.main import COMMANDS, find, main

PAGES = [["--help"], ["--version"], ["train", "--help"], ["train", "graph-coloring", "--help"], ["prove", "--help"]]
PAGES += [["graph-coloring", "--help"]]
PAGES += [[name, "--help"] for name in COMMANDS if name not in ("train", "prove")]


@pytest.mark.parametrize("argv", PAGES, ids=" ".join)
def test_a_help_page_needs_no_torch(argv: list[str]) -> None:
    code = f"""
import sys
from ranks.cli.main import main
try:
    code = main({argv!r})
except SystemExit as end:
    code = end.code or 0
assert code == 0, code
assert "torch" not in sys.modules, "torch was imported"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("usage: ranks", f"ranks {__version__}", "Train a workload"))


def test_the_first_page_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    page = capsys.readouterr().out
    for name, (summary, place) in COMMANDS.items():
        assert name in page
        assert summary in page
        assert callable(find(place))


def test_a_train_page_shows_engine_and_workload_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["train", "graph-coloring", "--help"])
    assert not end.value.code
    page = capsys.readouterr().out
    for flag in ("--gpus", "--ranks", "--exact, --no-exact", "--shares", "--iterations", "--optim.lr", "--preset"):
        assert flag in page
    assert "--launch." not in page
    assert "--engine." not in page
    assert "--config." not in page
