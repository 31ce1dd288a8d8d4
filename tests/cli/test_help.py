"""The help pages: there at once, without torch or numba, and complete."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from ranks import __version__
from ranks.cli.main import COMMANDS, ROOMS, find, first_line, main
from ranks.workloads import WORKLOADS

PAGES = [["--help"], ["--version"], ["train", "--help"], ["train", "graph-coloring", "--help"], ["prove", "--help"]]
PAGES += [["graph-coloring", "--help"], ["chess", "--help"]]
PAGES += [[name, "--help"] for name in COMMANDS if name not in ("train", "prove")]


@pytest.mark.parametrize("argv", PAGES, ids=" ".join)
def test_a_help_page_needs_no_heavy_package(argv: list[str]) -> None:
    code = f"""
import sys
from ranks.cli.main import main
try:
    code = main({argv!r})
except SystemExit as end:
    code = end.code or 0
assert code == 0, code
assert "torch" not in sys.modules, "torch was imported"
assert "numba" not in sys.modules, "numba was imported"
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
    for name, (summary, _) in ROOMS.items():
        assert f"{name:<12} {summary}" in page


@pytest.mark.parametrize("name", ["chess", "graph-coloring"])
def test_a_room_lists_its_commands_with_a_line_each(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = ROOMS[name][1] if name in ROOMS else WORKLOADS[name]
    commands: dict[str, str] = import_module(module).COMMANDS
    assert main([name]) == 0
    alone = capsys.readouterr().out
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out == alone
    for command, place in commands.items():
        assert len(first_line(place)) > 20
        assert f"  {command:<12} {first_line(place)}\n" in alone
        assert first_line(place) == (find(place).__doc__ or "").split("\n")[0]


def test_a_room_without_its_packages_says_what_to_install() -> None:
    code = """
import sys
sys.modules["numba"] = None  # as if it were not installed
from ranks.cli.main import main
sys.exit(main(["chess", "perft", "1"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "asked: ranks chess perft",
        "found: the package numba is not installed",
        "   do: pip install 'ranks[chess]'",
    ]


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
