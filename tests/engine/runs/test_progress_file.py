"""progress.json: what it says, how often it is written, and that it never harms the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranks import Run, RunConfig, World
from ranks.engine.runs.progress_file import EVERY_S, ProgressFile
from tests.engine.update.test_faults import Nothing


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def content(folder: Path) -> dict[str, object]:
    return json.loads((folder / "progress.json").read_text())


def test_it_is_written_once_a_second_and_removed_at_the_end(tmp_path: Path) -> None:
    clock = Clock()
    file = ProgressFile(tmp_path, clock)
    file.write(3, "games", 0.1)
    assert not (tmp_path / "progress.json").exists(), "a part that takes less than a second leaves no trace"
    clock.now_s += EVERY_S
    file.write(3, "games", 0.25)
    file.write(3, "games", 0.5)
    assert content(tmp_path) == {"iteration": 3, "part": "games", "share": 0.25}
    clock.now_s += EVERY_S
    file.write(3, "labels", 1.5)
    assert content(tmp_path) == {"iteration": 3, "part": "labels", "share": 1.0}
    file.close()
    assert not any(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    clock = Clock()
    file = ProgressFile(tmp_path / "missing", clock)
    clock.now_s += EVERY_S
    file.write(0, "games", 0.5)
    file.close()


def test_the_progress_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranks.engine.runs.progress_file.EVERY_S", 0.0)
    config = RunConfig(name="r", runs_dir=tmp_path, threads=1, shards=8)
    world = World.join(config, device="cpu", workload="test")
    try:
        world.session.progress("games", 1, 4)  # without a run nobody hears it
        with Run.open(Nothing(), world, keep={}) as run:
            for iteration in run.iterations(2, long=True):
                world.session.progress("games", 0, 0)
                assert iteration or not (run.folder.path / "progress.json").exists(), "nothing of nothing is none"
                world.session.progress("games", 1, 4)
                assert content(run.folder.path) == {"iteration": iteration, "part": "games", "share": 0.25}
        run.finish()
        assert not (run.folder.path / "progress.json").exists()
    finally:
        world.leave()
