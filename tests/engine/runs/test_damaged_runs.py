"""Run folders that are damaged, deleted, tampered with, or without space: one clear error, or the
older good checkpoint. `python -m tests.damage` does this for 1,000 folders."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranks import Run, RunConfig, UserError, World
from ranks.engine.files.jsonl import read_rows
from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.history import History
from ranks.engine.runs.checkpoints.manifest import CHECKS, MANIFEST, read_manifest, sealed
from ranks.engine.runs.folder import RunFolder
from tests.damage import kinds, resealed
from tests.damage.cases import COMMANDS, Expected, in_this_process, make_base, run_case
from tests.engine.small_disk import mounted
from tests.toys import images

CONFIG = images.Config(iterations=8, eval_every=4, num_images=48)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the finished run r, of 8 iterations."""
    folder = tmp_path_factory.mktemp("trained")
    train(config_of(folder))
    return folder


@pytest.fixture
def runs(trained: Path, tmp_path: Path) -> RunConfig:
    """A copy of it, which a test may change."""
    shutil.copytree(trained / "runs", tmp_path / "runs")
    return config_of(tmp_path)


def config_of(folder: Path) -> RunConfig:
    return RunConfig(name="r", runs_dir=folder / "runs", threads=1, shards=8, save_every="2")


def train(config: RunConfig, iterations: int = 8) -> images.Summary:
    world = World.join(config, workload="images")
    optim = replace(CONFIG.optim, schedule_updates=12)
    try:
        return images.train(replace(CONFIG, iterations=iterations, optim=optim), world)
    finally:
        world.leave()


def folder_of(config: RunConfig) -> Path:
    return config.runs_dir / "r"


def warnings_of(config: RunConfig) -> list[str]:
    return [e["text"] for e in read_rows(folder_of(config) / "events.jsonl") if e["event"] == "warning"]


def leftovers(config: RunConfig) -> list[str]:
    """Hidden files and folders of a run, except its lock."""
    return [str(p) for p in config.runs_dir.rglob(".*") if p.name != ".r.lock"]


# Rows -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sessions.jsonl", "metrics.jsonl", "events.jsonl"])
def test_a_torn_line_or_odd_lines_never_stop_a_run(name: str, runs: RunConfig) -> None:
    path = folder_of(runs) / name
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*kinds.ODD_LINES[:-1], *lines[:-1], lines[-1][: len(lines[-1]) // 2]]))
    assert train(runs, 10).iteration == 10
    last = {"sessions.jsonl": "finished", "events.jsonl": "finished", "metrics.jsonl": None}[name]
    assert read_rows(path)[-1].get("event") == last
    assert train(runs, 12).complete


@pytest.mark.parametrize("name", ["metrics.jsonl", "events.jsonl"])
def test_rows_that_are_missing_are_reported(name: str, runs: RunConfig) -> None:
    path = folder_of(runs) / name
    lost = path.stat().st_size // 2
    os.truncate(path, lost)
    train(runs, 10)
    assert any(text.startswith(f"{name} is ") and "rows are missing" in text for text in warnings_of(runs))


# Checkpoints ----------------------------------------------------------------------------------------------------------


def newest(config: RunConfig) -> Path:
    return max((folder_of(config) / "checkpoints").glob("[0-9]*"))


@pytest.mark.parametrize("fact", [name for name in CHECKS if name not in ("sha256", "kept")])
def test_a_manifest_without_a_fact_is_damage(fact: str, runs: RunConfig) -> None:
    path = newest(runs) / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest[fact]
    path.write_bytes(sealed(manifest))
    damaged: list[str] = []
    found = checkpoint.newest(path.parents[1], damaged)
    assert found is not None
    assert found.iteration == 6
    assert f"it has no valid {fact}" in damaged[0]


class Drawn:
    """Replaces random numbers where a test wants one of two branches."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number

    def choice(self, values: Any) -> Any:
        return values[0]


def test_a_number_that_no_float_holds_is_damage(tmp_path: Path) -> None:
    """`json` reads 1e999 as infinity, which the checksum cannot be computed of."""
    (tmp_path / MANIFEST).write_bytes(b'{"time_s":1e999}')
    with pytest.raises(DamagedFile, match="its checksum is wrong"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(("number", "words"), [(0.9, "does not have the fingerprint"), (0.1, "recorded another")])
def test_a_resealed_manifest_with_other_weights_is_not_believed(number: float, words: str, runs: RunConfig) -> None:
    """Without and with the fingerprint of the other weights in the manifest."""
    straight = train(replace(runs, runs_dir=runs.runs_dir / "straight"), 10)
    path = newest(runs) / "manifest.json"
    resealed.other_weights(path, Drawn(number))  # type: ignore[arg-type]
    assert train(runs, 10).fingerprint == straight.fingerprint
    assert any(words in text and str(path.parent) in text for text in warnings_of(runs))


def test_a_checkpoint_of_another_run_is_not_believed(runs: RunConfig) -> None:
    other = replace(runs, runs_dir=runs.runs_dir / "other", seed=1)
    train(other)
    shutil.rmtree(newest(runs))
    shutil.copytree(newest(other), newest(runs).with_name("00000008"))
    damaged: list[str] = []
    found = checkpoint.newest(folder_of(runs) / "checkpoints", damaged)
    assert found is not None
    assert (found.iteration, len(damaged)) == (6, 1)


def test_a_flipped_bit_in_the_record_of_a_checkpoint_does_not_disqualify_it(runs: RunConfig) -> None:
    path = folder_of(runs) / "events.jsonl"
    manifest = read_manifest(newest(runs))
    assert manifest.fingerprint in History.of(path).recorded[8]
    path.write_text(path.read_text().replace(manifest.fingerprint, "0" * 64))
    assert History.of(path).agrees(manifest)
    path.write_text(path.read_text().replace(manifest.sha256, "0" * 64))
    assert not History.of(path).agrees(manifest)
    path.write_text("")
    assert History.of(path).agrees(manifest)


def test_the_record_of_a_checkpoint_outlives_a_resume_from_it(runs: RunConfig) -> None:
    """A resume cuts events.jsonl, and with it the event of the save."""
    shutil.rmtree(newest(runs))
    train(runs, 8)
    recorded = History.of(folder_of(runs) / "events.jsonl").recorded
    found = {int(p.name): read_manifest(p).fingerprint for p in newest(runs).parent.glob("[0-9]*")}
    assert {n: f in recorded[n] for n, f in found.items()} == dict.fromkeys(found, True)


# Deleted while it trains ----------------------------------------------------------------------------------------------


def delete_at(iteration: int, path: Path, patch: pytest.MonkeyPatch) -> None:
    """Delete a file or folder in the middle of the training."""
    original = Run.every

    def every(self: Run, num_iterations: int) -> bool:
        if self.iteration == iteration:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return original(self, num_iterations)

    patch.setattr(Run, "every", every)


def test_a_run_folder_that_is_deleted_is_one_error_and_the_name_is_free_again(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        delete_at(4, folder_of(config), patch)
        with pytest.raises(UserError, match="checkpoints does not exist; was it deleted"):
            train(config)
    assert not folder_of(config).exists()
    assert train(config).complete


@pytest.mark.parametrize("name", ["metrics.jsonl", "sessions.jsonl"])
def test_a_file_of_rows_that_is_deleted_is_one_error_and_no_work_is_lost(name: str, runs: RunConfig) -> None:
    with pytest.MonkeyPatch.context() as patch:
        delete_at(8, folder_of(runs) / name, patch)
        with pytest.raises(UserError, match=f"{name}\nfound: the file was deleted or replaced"):
            train(runs, 12)
    assert int(newest(runs).name) == 10
    assert train(runs, 12).complete


def test_a_folder_that_is_no_run_is_not_written_to(runs: RunConfig) -> None:
    (folder_of(runs) / "run.json").unlink()
    before = sorted(path.name for path in folder_of(runs).iterdir())
    with pytest.raises(UserError, match=r"it exists and has no run\.json"):
        train(runs)
    assert sorted(path.name for path in folder_of(runs).iterdir()) == before
    assert leftovers(runs) == []


# The disk -------------------------------------------------------------------------------------------------------------


def test_a_save_that_does_not_read_back_is_one_error(runs: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk changes a byte of each tensor file when it is synced."""
    sync = os.fsync

    def bad_sync(descriptor: int) -> None:
        sync(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if path.endswith(".safetensors"):
            os.pwrite(descriptor, b"\xff", 200)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", bad_sync)
        with pytest.raises(UserError, match=r"does not read back \(.*learner.safetensors: its sha256") as error:
            train(runs, 10)
        assert "older checkpoints are intact" in error.value.found
        with pytest.raises(UserError, match="nothing was saved"):
            train(replace(runs, name="another"))
    assert leftovers(runs) == [str(runs.runs_dir / ".another.lock")]
    assert train(runs, 10).complete


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "small", "64k")


@pytest.mark.parametrize("free", [0, 4096, 16384])
def test_no_space_at_the_start_is_one_error_and_leaves_nothing(free: int, disk: Path) -> None:
    """No space for the name of the lock's owner; for a file; for checkpoint 0."""
    config = config_of(disk)
    config.runs_dir.mkdir()
    with (disk / "ballast").open("wb", buffering=0) as file:
        while left := shutil.disk_usage(disk).free - free:
            file.write(b"\0" * min(left, 4096))
    with pytest.raises(UserError, match=r"No space left on device \(\d+ KiB free\); nothing was saved"):
        train(config)
    assert leftovers(config) == []
    assert not folder_of(config).exists()


def test_what_killed_processes_left_is_removed_by_the_next_start(runs: RunConfig) -> None:
    folder = folder_of(runs)
    left = [folder.parent / name for name in (".r.tmp-1", ".r.logs-1")]
    left += [folder / name for name in (".export.tmp-1", ".run.json.tmp-1", "checkpoints/.tmp-00000009-1")]
    for path in left:
        path.mkdir()
        (path / "half").touch()
    other = folder.parent / ".r2.tmp-1"
    other.mkdir()
    assert train(runs, 10).complete
    assert leftovers(runs) == [str(other)]


@pytest.mark.parametrize("name", ["r.tmp-b", "r.logs-b", "r.tmp-1"])
def test_a_start_keeps_the_files_of_a_run_whose_name_has_a_dot(name: str, tmp_path: Path) -> None:
    """They look like temporary files of the run `r`."""
    other = RunFolder(tmp_path / name)
    files = [tmp_path / f".{name}.autodown.json", tmp_path / f".{name}.logs-7"]
    descriptors = [other.lock()]
    try:
        for file in files:
            file.touch()
        folder = RunFolder(tmp_path / "r")
        descriptors.append(folder.lock())
        folder.remove_temporaries()
        assert other.in_use()
        assert all(file.exists() for file in files)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


# Every command --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Expected]:
    folder = tmp_path_factory.mktemp("base")
    return folder, make_base(folder)


@pytest.mark.parametrize("seed", [1])
def test_sixty_damaged_folders(seed: int, base: tuple[Path, Expected], tmp_path: Path) -> None:
    folder, expected = base
    for case in range(60):
        command = COMMANDS[case % len(COMMANDS)]
        result = run_case(folder, tmp_path / "work", expected, command, case, seed, in_this_process)
        assert not result["problem"], result
