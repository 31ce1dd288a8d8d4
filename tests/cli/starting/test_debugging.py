"""Where one rank trains: in a process of its own that is watched, or in the process of the command for a debugger."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ranks.cli import debugging
from ranks.cli.main import main
from ranks.engine.config import RunConfig
from ranks.errors import UserError
from ranks.launch.supervision.config import HangRules

TRAIN = ["train", "./spirals.py", "--gpus", "none", "--ranks", "1", "--iterations", "2", "--name", "new"]
BATCH = "    points_BD, class_B = batch"


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the launcher was asked for; it starts nothing."""
    calls: list[dict[str, Any]] = []

    def launch_run(argv: Any, placement: Any, run_dir: Path, *, lock_fd: int, **asked: Any) -> int:
        calls.append({"placement": placement, **asked})
        return 0

    monkeypatch.setattr("ranks.launch.run.launch_run", launch_run)
    return calls


@pytest.fixture
def untraced() -> Iterator[None]:
    """Without the trace function of a coverage tool."""
    before = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(before)


def with_line(folder: Path, line: str) -> int:
    """Add a line to the loss function of spirals.py; its number."""
    path = folder / "spirals.py"
    path.write_text(path.read_text().replace(BATCH, f"    {line}\n{BATCH}"))
    return path.read_text().splitlines().index(f"    {line}") + 1


def run(folder: Path, *flags: str, python: tuple[str, ...] = (), typed: str = "") -> subprocess.CompletedProcess[str]:
    command, env = [sys.executable, *python, "-m", "ranks", *TRAIN, *flags], {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=env, input=typed, capture_output=True, text=True, timeout=300)


def test_one_rank_is_watched_without_a_flag(
    trained: Path, launched: list[dict[str, Any]], untraced: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert main(TRAIN) == 0
    (asked,) = launched
    assert asked["hangs"] == HangRules() == HangRules(300.0, "restart", 60.0)
    assert (asked["placement"].ranks, asked["placement"].threads) == (1, 3)


def test_several_ranks_without_a_limit_are_launched(trained: Path, launched: list[dict[str, Any]]) -> None:
    assert main([*TRAIN, "--ranks", "2", "--hang-timeout", "none"]) == 0
    assert launched[0]["hangs"].timeout_s == RunConfig(hang_timeout=None).hang_timeout_s == float("inf")


def test_a_debugger_or_profiler_is_noticed(monkeypatch: pytest.MonkeyPatch, untraced: None) -> None:
    assert not debugging.traced()
    sys.settrace(lambda *event: None)
    assert debugging.traced()
    sys.settrace(None)
    monkeypatch.setitem(sys.modules, "debugpy", sys)
    assert debugging.traced()


def test_a_run_under_a_debugger_is_in_its_process(trained: Path) -> None:
    with_line(trained, "assert 'RANK' not in __import__('os').environ")
    done = run(trained, python=("-m", "pdb", "-c", "continue"), typed="q\n")
    assert "a debugger or profiler follows this process" in done.stdout
    assert "iteration 2/2" in done.stdout, done.stdout + done.stderr


def test_a_breakpoint_stops_in_the_workload(trained: Path) -> None:
    with_line(trained, "breakpoint()")
    done = run(trained, "--hang-timeout", "none", typed="p len(batch)\nq\n")
    stops_at = "breakpoint()" if sys.version_info >= (3, 13) else BATCH.strip()  # older versions: at the next line
    assert f"-> {stops_at}" in done.stdout
    assert "(Pdb) 2" in done.stdout


def test_a_breakpoint_in_a_rank_says_how_to_debug(trained: Path) -> None:
    line = with_line(trained, "breakpoint()")
    done = run(trained)
    assert done.returncode == 2
    asked, found, do = done.stderr.splitlines()
    assert asked == f"asked: breakpoint() in {trained / 'spirals.py'}, line {line}"
    assert "without a terminal" in found
    assert "--ranks 1 --hang-timeout none" in do


def test_a_debugger_in_a_rank_says_how_to_debug(trained: Path) -> None:
    with_line(trained, "import pdb; pdb.set_trace()")
    done = run(trained)
    assert done.returncode == 2
    assert [line.partition(":")[0].strip() for line in done.stderr.splitlines()] == ["asked", "found", "do"]


def test_a_workload_that_exits_ends_the_command_as_in_its_own_process(trained: Path) -> None:
    """With its exit code and all that it has printed, after a handled exception too."""
    with_line(
        trained, "import sys, traceback; e = KeyError('handled'); traceback.print_exception(e); sys.exit('no data')"
    )
    watched, here = run(trained), run(trained, "--hang-timeout", "none")
    assert (
        (watched.returncode, watched.stderr) == (here.returncode, here.stderr) == (1, "KeyError: 'handled'\nno data\n")
    )


def test_the_only_rank_reads_what_comes_through_a_pipe(trained: Path) -> None:
    with_line(trained, "import sys; sys.exit(repr((input(), sys.stdin.readline(), sys.stdin.buffer.read())))")
    done = run(trained, typed="one\ntwo é\nthree\n")
    assert done.stderr == "('one', 'two é\\n', b'')\n"


def test_input_in_a_rank_says_how_to_type() -> None:
    note = debugging.explained(EOFError("EOF when reading a line")).__notes__
    assert "--hang-timeout none" in note[0]
    assert not hasattr(debugging.explained(EOFError("Compressed file ended")), "__notes__")


def test_a_breakpoint_that_is_switched_off_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="breakpoint"):
        debugging.breakpoint_in_a_rank()
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    debugging.breakpoint_in_a_rank()
