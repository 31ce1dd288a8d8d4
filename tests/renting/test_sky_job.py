"""The commands of SkyPilot's file, run by bash with a `ranks` that notes what it is asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ranks.renting.request import Machine, Request
from ranks.renting.sky.task import SkyTask, run_commands

RANKS = """#!/bin/sh
ls runs/.mine.results 2> /dev/null >> "$HOME/marks"
echo "$1" >> "$HOME/asked"
[ "$1" != "$END_DURING" ] || kill -TERM $PPID
[ "$1" != "$FAILS" ]
"""
"""`timeout` starts the doctor, and the shell of the job all others."""


@pytest.mark.parametrize(
    ("variables", "code", "asked"),
    [
        ({"END_DURING": "evaluate"}, 0, "doctor autodown train evaluate export then"),
        ({"END_DURING": "train"}, 1, "doctor autodown train"),
        ({"FAILS": "doctor"}, 1, "doctor"),
        ({"FAILS": "autodown"}, 1, "doctor autodown"),
    ],
)
def test_the_results_are_made_also_when_the_watcher_ends_the_job_meanwhile(
    variables: dict[str, str], code: int, asked: str, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "ranks").write_text(RANKS)
    (tmp_path / "ranks").chmod(0o755)
    request = Request(
        "graph-coloring", (), "mine", "runs", Machine.of("none", 1), 1, 2.0, 1, (), None, 'echo then >> "$HOME/asked"'
    )
    task = SkyTask("lambda", "", "me/ranks:1", (), "", None, False, 200, None, 60, None, ())
    env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin", **variables}
    job = subprocess.run(["bash", "-c", run_commands(request, task)], env=env)
    assert job.returncode == code
    assert (tmp_path / "asked").read_text().split() == asked.split()
    if code == 0:
        assert not (work / "runs" / ".mine.results").exists()
        assert len((tmp_path / "marks").read_text().split()) == 4  # from the watcher's start to the export
