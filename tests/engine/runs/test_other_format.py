"""A run folder that ranks 0.1.0 has made is refused in one line by every command that opens it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranks.cli.main import main

WORKLOAD = str(Path(__file__).parents[2] / "toys" / "images.py")
REFUSED = "was made by ranks 0.1.0, and this version does not read its format; use ranks 0.1.0 for it, or start under"


@pytest.fixture
def runs_dir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A run folder without the format number in run.json."""
    runs = tmp_path / "runs"
    assert main(["train", WORKLOAD, *training(runs)]) == 0
    path = runs / "old" / "run.json"
    facts = json.loads(path.read_text())
    assert facts.pop("format") == 2
    path.write_text(json.dumps(facts))
    capsys.readouterr()
    return runs


def training(runs: Path) -> list[str]:
    return [
        "--name",
        "old",
        "--runs-dir",
        str(runs),
        "--gpus",
        "none",
        "--ranks",
        "1",
        "--hang-timeout",
        "none",
        "--iterations",
        "2",
    ]


def test_every_command_that_opens_it_refuses_it_in_one_line(runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["train", WORKLOAD, *training(runs_dir)],
        ["train", WORKLOAD, *training(runs_dir), "--ranks", "2"],
        ["evaluate", "old", "--runs-dir", str(runs_dir)],
        ["export", "old", "--runs-dir", str(runs_dir)],
        ["fingerprint", "old", "--runs-dir", str(runs_dir)],
    ):
        assert main(command) == 2, command
        (line,) = capsys.readouterr().err.splitlines()
        assert REFUSED in line


def test_the_list_of_runs_shows_it(runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--runs-dir", str(runs_dir), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["name"], run["iterations"]) == ("old", 2)


def test_a_checkpoint_of_the_older_format_is_refused_too(runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ranks.engine.runs.checkpoints.manifest import sealed

    path = runs_dir / "old" / "checkpoints" / "00000002"
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_bytes(sealed({**manifest, "format": 1}))
    assert main(["fingerprint", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert REFUSED in line
