"""Kept files: written once, named by checkpoints, verified on resume, deleted when no checkpoint names them."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranks import KeptFile, KeptFiles, Run, RunConfig, Stopped, Summary, UserError, World
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.manifest import read_manifest, sealed
from ranks.engine.runs.folder import listing
from ranks.engine.runs.kept import kept_folder
from tests.damage import kinds
from tests.damage.cases import in_this_process
from tests.engine.group import FORKED
from tests.engine.runs.kept_run import check_resumed, config_of, kept, train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary, Summary]:
    """A folder with a run of 8 iterations; its summary, and that of an undisturbed run of 10."""
    folder = tmp_path_factory.mktemp("trained")
    return folder, train(config_of(folder)), train(config_of(folder / "straight"), 10)


@pytest.fixture
def runs(trained: tuple[Path, Summary, Summary], tmp_path: Path) -> RunConfig:
    """A copy of the run, which a test may change."""
    shutil.copytree(trained[0] / "runs", tmp_path / "runs")
    return config_of(tmp_path)


# What a run leaves ----------------------------------------------------------------------------------------------------


def test_checkpoints_name_the_window_and_older_parts_are_deleted(runs: RunConfig) -> None:
    manifests = {int(p.name): read_manifest(p) for p in listing(runs.runs_dir / "r" / "checkpoints")}
    names = {n: sorted(int(KeptFile(p, s).iteration) for p, s in m.kept.items()) for n, m in manifests.items()}
    assert names == {4: [1, 2, 3], 6: [3, 4, 5], 8: [5, 6, 7]}
    assert list(kept(runs)) == [1, 2, 3, 4, 5, 6, 7]


def test_the_best_checkpoint_keeps_its_parts(tmp_path: Path) -> None:
    original = Run.log

    def log(self: Run, *args: Any, **details: Any) -> None:
        original(self, *args, **details)
        if self.iteration == 1:
            self.save(score=-1.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "log", log)
        train(config_of(tmp_path), 12)
    assert list(kept(config_of(tmp_path))) == [0, 1, 5, 6, 7, 8, 9, 10, 11]


# Kills ----------------------------------------------------------------------------------------------------------------


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_training(config: RunConfig, where: str) -> None:
    """Train to 10 iterations in this process, which is killed in iteration 9, or behind the save after it."""
    write_durably, write = kept_folder.write_durably, KeptFiles.write
    delete_unnamed = kept_folder.KeptFolder.delete_unnamed

    def half(path: Path, content: bytes) -> None:
        if "/.tmp-00000009" in str(path):
            path.write_bytes(content[: len(content) // 2])
            die()
        write_durably(path, content)

    def then_die(self: KeptFiles, iteration: int, arrays: Any) -> KeptFile:
        file = write(self, iteration, arrays)
        if iteration == 9:
            die()
        return file

    def not_deleted(self: Any, names: Any, before: int) -> None:
        if before == 10:
            die()
        delete_unnamed(self, names, before)

    if where == "half of the part":
        kept_folder.write_durably = half
    elif where == "before the save":
        KeptFiles.write = then_die  # type: ignore[method-assign]
    else:
        kept_folder.KeptFolder.delete_unnamed = not_deleted  # type: ignore[method-assign]
    train(config, 10)


@pytest.mark.parametrize("where", ["half of the part", "before the save", "behind the save"])
def test_a_killed_process_loses_nothing(where: str, runs: RunConfig, trained: tuple[Path, Summary, Summary]) -> None:
    process = FORKED.Process(target=killed_training, args=(runs, where))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    before = kept(runs).get(9) if where != "half of the part" else None
    inode = before.stat().st_ino if before is not None else None
    assert any(p.name.startswith(".tmp-") for p in (runs.runs_dir / "r" / "kept" / "window").iterdir()) == (
        where == "half of the part"
    )
    check_resumed(runs, trained[2])
    if inode is not None:
        assert kept(runs)[9].stat().st_ino == inode, "it was equal, so it was kept"


def test_a_part_of_a_killed_process_that_differs_is_replaced(
    runs: RunConfig, trained: tuple[Path, Summary, Summary]
) -> None:
    """The same name with other content (a disk that lost it), and another content of the same iteration."""
    good = next(iter((trained[0] / "straight" / "runs" / "r" / "kept" / "window").glob("00000009-*")))
    folder = kept(runs)[7].parent
    (folder / good.name).write_bytes(b"\0" * good.stat().st_size)
    (folder / f"00000009-{'0' * 64}.safetensors").write_bytes(b"x")
    check_resumed(runs, trained[2])
    assert kept(runs)[9].read_bytes() == good.read_bytes()


def test_of_two_files_of_an_iteration_the_one_that_was_written_again_comes_last(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    folder = kept_folder.KeptFolder(tmp_path / "r" / "kept")
    one, other = (folder.write("window", 3, {"x": np.arange(n)}) for n in (5, 6))
    for file, age_s in ((one, 200), (other, 100)):
        then_s = time.time() - age_s
        os.utime(folder.path / file.path, (then_s, then_s))
    assert folder.listing("window") == [one, other]
    assert folder.write("window", 3, {"x": np.arange(5)}) == one
    assert folder.listing("window") == [other, one]


def test_a_stop_inside_an_iteration_saves_names_alone(
    runs: RunConfig, trained: tuple[Path, Summary, Summary], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part of the iteration that will be repeated stays, and is found equal."""
    check_stop = World.check_stop
    asked: list[int] = []

    def stop(self: World) -> None:
        if asked or 8 in kept(runs):
            asked.append(1)
            raise Stopped(15)
        check_stop(self)

    with monkeypatch.context() as patch:
        patch.setattr(World, "check_stop", stop)
        with pytest.raises(Stopped):
            train(runs, 10)
    inode = kept(runs)[8].stat().st_ino
    check_resumed(runs, trained[2])
    assert kept(runs)[8].stat().st_ino == inode


# Damage ---------------------------------------------------------------------------------------------------------------

DAMAGE: list[Callable[[Path, random.Random], None]] = [
    *(kinds.flipped_bit, kinds.truncated, kinds.empty, kinds.missing, kinds.longer, kinds.sparse),
    *(kinds.fifo, kinds.socket_file, kinds.folder, kinds.link_out, kinds.link_to_itself, kinds.link_to_zero),
]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda kind: kind.__name__)
def test_a_damaged_part_disqualifies_the_checkpoints_that_name_it(
    damage: Callable[[Path, random.Random], None], runs: RunConfig, trained: tuple[Path, Summary, Summary]
) -> None:
    """Part 5 is named by checkpoints 6 and 8; part 7 by checkpoint 8."""
    part = kept(runs)[random.Random(damage.__name__).choice([5, 7])]
    newest = 4 if part.name.startswith("00000005") else 6
    damage(part, random.Random(0))
    outside = {p: p.read_bytes() for p in (runs.runs_dir.parent / "outside").rglob("*")}
    check_resumed(runs, trained[2])
    events = read_rows(runs.runs_dir / "r" / "events.jsonl")
    skipped = [e["text"] for e in events if e["event"] == "warning" and "kept files damaged" in e["text"]]
    assert len(skipped) == (8 - newest) // 2
    assert all(str(part) in text for text in skipped)
    assert [e["checkpoint_iteration"] for e in events if e["event"] == "resumed"] == [newest]
    assert {p: p.read_bytes() for p in outside} == outside


@pytest.mark.parametrize("place", ["kept", "kept/window"])
def test_a_link_in_the_place_of_a_folder_is_damage(place: str, runs: RunConfig) -> None:
    folder = runs.runs_dir / "r" / place
    shutil.move(folder, runs.runs_dir / "moved")
    folder.symlink_to(runs.runs_dir / "moved")
    with pytest.raises(UserError, match=rf"no intact checkpoint: .*{place}: a link"):
        train(runs, 10)
    assert len(list((runs.runs_dir / "moved").rglob("0*"))) == 7


def test_commands_that_only_read_do_not_need_the_parts(runs: RunConfig, trained: tuple[Path, Summary, Summary]) -> None:
    shutil.rmtree(runs.runs_dir / "r" / "kept")
    at = ["r", "--runs-dir", str(runs.runs_dir)]
    assert in_this_process(["fingerprint", *at])[1].strip() == trained[1].fingerprint
    for argv in (["evaluate", *at, "--gpus", "none"], ["export", *at]):
        code, _, err = in_this_process(argv)
        assert code == 0, err


@pytest.mark.parametrize("change", ["removed", "fewer", "odd"])
def test_a_manifest_that_names_other_parts_than_the_state_is_damage(change: str, runs: RunConfig) -> None:
    path = listing(runs.runs_dir / "r" / "checkpoints")[-1] / "manifest.json"
    manifest = json.loads(path.read_text())
    if change == "removed":
        del manifest["kept"]
    elif change == "fewer":
        manifest["kept"].popitem()
    else:
        manifest["kept"]["../../run.json"] = 1
    path.write_bytes(sealed(manifest))
    damaged: list[str] = []
    found = checkpoint.newest(path.parents[1], damaged)
    assert found is not None
    assert found.iteration == 6
    assert ("it has no valid kept" if change == "odd" else "its kept files are not those") in damaged[0]
