"""Kept files: written once, named by checkpoints, verified on resume, deleted when no checkpoint names them."""

from __future__ import annotations

import builtins
import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranks import KeptFile, KeptFiles, Run, RunConfig, Stopped, Summary, UserError, World
from ranks.engine.files.jsonl import read_rows
from ranks.engine.files.mapped import map_arrays
from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.checkpoints import checkpoint, checkpoint_writer
from ranks.engine.runs.checkpoints.manifest import read_manifest, sealed
from ranks.engine.runs.folder import listing
from ranks.engine.runs.kept import kept_folder
from ranks.engine.runs.kept.kept_file import named_in
from tests.damage import kinds
from tests.damage.cases import in_this_process
from tests.engine.group import FORKED, run_ranks
from tests.engine.small_disk import mounted
from tests.toys import window

CONFIG = window.Config(iterations=8)
WORKLOAD = str(Path(window.__file__))


def config_of(folder: Path) -> RunConfig:
    return RunConfig(name="r", runs_dir=folder / "runs", threads=1, shards=8, exact=True, save_every="2")


def train(config: RunConfig, iterations: int = 8) -> Summary:
    world = World.join(config, workload=WORKLOAD)
    try:
        return window.train(replace(CONFIG, iterations=iterations), world)
    finally:
        world.leave()


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


def kept(config: RunConfig) -> dict[int, Path]:
    """The files on disk by the iteration in their name."""
    return {int(p.name[:8]): p for p in sorted((config.runs_dir / "r" / "kept" / "window").iterdir())}


def named(config: RunConfig) -> set[str]:
    """The files that the manifests name."""
    found = [read_manifest(path).kept for path in listing(config.runs_dir / "r" / "checkpoints")]
    return {path for names in found for path in names}


def check_resumed(config: RunConfig, trained: tuple[Path, Summary, Summary]) -> None:
    """Train to 10 iterations: as the undisturbed run, and nothing is left that no checkpoint names."""
    assert train(config, 10).fingerprint == trained[2].fingerprint
    assert {f"window/{path.name}" for path in kept(config).values()} == named(config)
    folder = config.runs_dir / "r"
    assert [str(p) for p in folder.rglob(".*")] == []
    for path in named(config):
        kept_folder.KeptFolder(folder / "kept").verify(KeptFile(path, (folder / "kept" / path).stat().st_size))


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


def test_arrays_are_mapped_read_only_and_outlive_their_file(tmp_path: Path) -> None:
    folder = kept_folder.KeptFolder(tmp_path / "kept")
    arrays = {
        "x": np.arange(6, dtype=np.float64).reshape(2, 3).T,
        **{"flag": np.array([True, False]), "none": np.zeros((0, 3), np.int8), "one": np.array(7, np.uint16)},
    }
    file = folder.write("replay", 3, arrays)
    descriptors = len(os.listdir("/proc/self/fd"))
    opened = [folder.open(file) for _ in range(20)][-1]
    assert len(os.listdir("/proc/self/fd")) == descriptors
    folder.delete_unnamed({file.path}, before=4)
    folder.delete_unnamed(set(), before=3)
    assert (tmp_path / "kept" / file.path).exists()
    folder.delete_unnamed(set(), before=4)
    assert not (tmp_path / "kept" / file.path).exists()
    for name, array in arrays.items():
        assert (opened[name].dtype, opened[name].shape) == (array.dtype, array.shape)
        assert (opened[name] == array).all()
        with pytest.raises(ValueError, match="read-only"):
            opened[name][...] = 0


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
        checkpoint_writer.KeptFolder.delete_unnamed = not_deleted  # type: ignore[method-assign]
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
    check_resumed(runs, trained)
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
    check_resumed(runs, trained)
    assert kept(runs)[9].read_bytes() == good.read_bytes()


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
    check_resumed(runs, trained)
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
    check_resumed(runs, trained)
    events = read_rows(runs.runs_dir / "r" / "events.jsonl")
    skipped = [e["text"] for e in events if e["event"] == "warning" and "a kept file that it names" in e["text"]]
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


@pytest.mark.parametrize(
    "found",
    [
        {"kept_file": "../x", "bytes": 1},
        {"kept_file": 3, "bytes": 1},
        {"kept_file": f"a/{1:08d}-{'0' * 64}.safetensors", "bytes": -1},
        {"kept_file": f"a/{1:08d}-{'0' * 64}.safetensors"},
        {"kept_file": f"a/../{1:08d}-{'0' * 64}.safetensors", "bytes": 1},
    ],
)
def test_an_odd_name_is_refused(found: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="kept file"):
        named_in({"a": [{"b": found}]})


def with_header(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"1234567", b"\xff" * 64, (99).to_bytes(8, "little") + b"{}"),
        *(with_header(b"[]"), with_header(b'{"a":3}'), with_header(b'{"a":{"dtype":"U8","shape":[1]}}')),
        with_header(b'{"a":{"dtype":"X","shape":[],"data_offsets":[0,0]}}'),
        with_header(b'{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}'),
        with_header(b'{"a":{"dtype":"U8","shape":["x"],"data_offsets":["y",9]}}'),
    ],
)
def test_a_file_of_no_arrays_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DamagedFile, match="not a safetensors file"):
        map_arrays(tmp_path / "file", size=len(content))


# Ranks ----------------------------------------------------------------------------------------------------------------


def train_on_ranks(world: World, iterations: int) -> str:
    return window.train(replace(CONFIG, iterations=iterations), world).fingerprint


def test_two_ranks_then_three_give_the_run_of_one(trained: tuple[Path, Summary, Summary], tmp_path: Path) -> None:
    config = config_of(tmp_path)
    run_ranks(2, train_on_ranks, 5, config=config, tmp_path=tmp_path)
    part = kept(config)[2]
    inode = part.stat().st_ino
    found = run_ranks(3, train_on_ranks, 8, config=config, tmp_path=tmp_path)
    assert set(found) == {trained[1].fingerprint}
    assert part.name == kept(config_of(trained[0]))[2].name
    assert part.stat().st_ino == inode
    assert {f"window/{path.name}" for path in kept(config).values()} == named(config)


def refused_write(world: World) -> str:
    original = kept_folder.write_durably

    def full(path: Path, content: bytes) -> None:
        original(path, content[:10])
        raise OSError(28, "No space left on device")

    kept_folder.write_durably = full
    with pytest.raises(UserError) as error:
        window.train(CONFIG, world)
    return error.value.found


def test_a_part_that_cannot_be_written_is_one_error_on_all_ranks(tmp_path: Path) -> None:
    found = run_ranks(2, refused_write, config=config_of(tmp_path), tmp_path=tmp_path)
    assert found[0] == found[1]
    assert "No space left on device" in found[0]
    assert "older checkpoints are intact" in found[0]
    assert kept(config_of(tmp_path)) == {}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "small", "700k")


def test_a_full_disk_is_one_error_and_the_run_continues_with_space(disk: Path, tmp_path: Path) -> None:
    config = replace(config_of(tmp_path), runs_dir=disk)
    train(config, 2)
    (disk / "ballast").write_bytes(b"\0" * max(0, shutil.disk_usage(disk).free - 4096))
    with pytest.raises(UserError, match=r"No space left on device"):
        train(config, 4)
    (disk / "ballast").unlink()
    assert train(config, 4).complete


# Cost -----------------------------------------------------------------------------------------------------------------


def bytes_moved() -> int:
    """Bytes that this process has read and written by system calls (Linux)."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"]) + int(fields["wchar"])


def cost_of(folder: Path, num_parts: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, list[str]]:
    """Bytes of (the start of an iteration, a save) with a window of parts of 100 kB; the kept files that were
    opened."""
    world = World.join(replace(config_of(folder), save_every="1000"), workload=WORKLOAD)
    parts = KeptFiles(world, "window")
    moved, opened = [0, 0], list[str]()
    os_open, builtin_open = os.open, builtins.open

    def watched_os(path: Any, *args: Any, **more: Any) -> int:
        opened.append(str(path))
        return os_open(path, *args, **more)

    def watched(path: Any, *args: Any, **more: Any) -> Any:
        opened.append(str(path))
        return builtin_open(path, *args, **more)

    try:
        with Run.open(CONFIG, world, keep=dict(parts=parts)) as run:
            for iteration in run.iterations(4, long=True):
                if iteration == 0:
                    for number in range(num_parts):
                        parts.write(iteration, {"x": np.full(25_000, number, np.float32)})
                    before = bytes_moved()
                elif iteration == 1:
                    moved[0] = bytes_moved() - before  # from one iteration to the next
                    run.save()
                    monkeypatch.setattr(os, "open", watched_os)
                    monkeypatch.setattr(builtins, "open", watched)
                    before = bytes_moved()
                elif iteration == 2:
                    moved[1] = bytes_moved() - before
                    monkeypatch.undo()
        run.finish()
    finally:
        world.leave()
    return moved[0], moved[1], [path for path in opened if "/kept/" in path]


def test_an_iteration_and_a_save_cost_the_same_with_any_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """30 MB in 300 parts cost the bytes of one part, but for the names: about 100 bytes each, in the state and in
    the manifests, which are written, read back and read to find what no checkpoint names."""
    one = cost_of(tmp_path / "one", 1, monkeypatch)
    many = cost_of(tmp_path / "many", 300, monkeypatch)
    assert one[2] == many[2] == []
    assert many[0] - one[0] < 1000
    assert many[1] - one[1] < 299 * 2000 < 300 * 100_000 / 40
