"""A run's folder: locked by one owner, never half written, and read only where it is intact."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ranks import RunConfig, UserError
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.folder import RunFolder, listing
from tests.engine.image_run import Crash, small_runs, train
from tests.engine.small_disk import mounted


@pytest.fixture
def runs(tmp_path: Path) -> RunConfig:
    return small_runs(tmp_path)


def test_a_run_is_free_again_once_it_has_ended_or_was_refused(runs: RunConfig) -> None:
    train(runs)
    with pytest.raises(UserError, match="it is another run"):
        train(replace(runs, seed=1))
    with pytest.raises(Crash):
        train(replace(runs, name="crashed"), crash_at=3)
    for name in ("r", "crashed"):
        os.close(RunFolder(runs.runs_dir / name).lock())


def test_a_run_in_use_is_refused_by_its_owner(runs: RunConfig) -> None:
    train(runs)
    held = subprocess.Popen(["flock", "-x", str(runs.runs_dir / ".r.lock"), "sleep", "60"], stdout=subprocess.DEVNULL)
    try:
        while subprocess.run(["flock", "-n", str(runs.runs_dir / ".r.lock"), "true"], check=False).returncode == 0:
            pass
        with pytest.raises(UserError, match=r"the run is in use by process \d+ on"):
            RunFolder(runs.runs_dir / "r").lock()
    finally:
        subprocess.run(["pkill", "-P", str(held.pid)], check=False)
        held.wait()


def test_a_damaged_checkpoint_is_named_and_the_older_one_taken(runs: RunConfig) -> None:
    straight = train(replace(runs, runs_dir=runs.runs_dir / "straight"))
    with pytest.raises(Crash):
        train(runs, crash_at=10)
    newest = sorted((runs.runs_dir / "r" / "checkpoints").iterdir())[-1]
    (newest / "learner.safetensors").write_bytes(b"\0" * 100)
    assert train(runs).fingerprint == straight.fingerprint
    warnings = [e["text"] for e in read_rows(runs.runs_dir / "r" / "events.jsonl") if e["event"] == "warning"]
    assert any(f"{newest.name}/learner.safetensors: 100 bytes" in text for text in warnings)


def test_no_intact_checkpoint_is_an_error_that_names_the_files(runs: RunConfig) -> None:
    train(runs)
    for path in (runs.runs_dir / "r" / "checkpoints").iterdir():
        (path / "state.json").unlink()
    with pytest.raises(UserError, match=r"no intact checkpoint: .*state.json: missing"):
        train(runs)


def test_a_bad_name_is_refused(runs: RunConfig) -> None:
    for name in ("../elsewhere", "a/b", "", ".hidden", "x" * 101):
        with pytest.raises(UserError, match="not a valid folder name"):
            RunFolder.of(runs.runs_dir, name)


def test_a_run_is_not_started_in_a_link_but_continues_where_its_folder_was_moved(
    runs: RunConfig, tmp_path: Path
) -> None:
    big, link = tmp_path / "big", runs.runs_dir / "r"
    big.mkdir()
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(big)
    with pytest.raises(UserError, match=f"it is a link to the empty folder {big}"):
        train(runs)
    assert link.is_symlink()
    link.unlink()
    with pytest.raises(Crash):
        train(runs, crash_at=4)
    big.rmdir()
    link.rename(big)
    link.symlink_to(big)
    assert train(runs).complete


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "small", "700k")


def test_a_full_disk_is_one_error_and_older_checkpoints_stay(small_disk: Path, runs: RunConfig) -> None:
    config = replace(runs, runs_dir=small_disk)
    with pytest.raises(Crash):
        train(config, crash_at=4)
    free = shutil.disk_usage(small_disk).free
    (small_disk / "ballast").write_bytes(b"\0" * max(0, free - 8192))
    with pytest.raises(UserError, match="older checkpoints are intact") as error:
        train(config)
    assert re.search(r"\(\d+ KiB free\)", error.value.found)
    checkpoints = small_disk / "r" / "checkpoints"
    assert [p.name for p in checkpoints.iterdir() if p.name.startswith(".")] == []
    (small_disk / "ballast").unlink()
    assert train(config).complete


def test_a_folder_that_cannot_be_written_is_one_error(runs: RunConfig, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UserError, match="choose a writable folder"):
        train(replace(runs, runs_dir=tmp_path / "file"))


def test_damaged_checkpoints_do_not_push_verified_ones_out(runs: RunConfig) -> None:
    with pytest.raises(Crash):
        train(runs, crash_at=10)
    checkpoints = runs.runs_dir / "r" / "checkpoints"
    newer = [p for p in checkpoints.iterdir() if int(p.name) > 6]
    for path in newer:
        (path / "learner.safetensors").write_bytes(b"")
    with pytest.raises(Crash):
        train(runs, crash_at=9)
    verified = [int(p.name) for p in listing(checkpoints) if checkpoint.read(p)]
    assert verified == [6, 8, 9]
    assert len(newer) == 2
    assert {p.name for p in checkpoints.iterdir() if p.name.startswith("damaged-")} == {
        f"damaged-{p.name}" for p in newer
    }
