"""Kept files on several ranks and hosts, on a full disk, what they cost, and odd ones alone."""

from __future__ import annotations

import builtins
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranks import KeptFiles, Run, UserError, World
from ranks.engine.distributed import agree
from ranks.engine.files.mapped import map_arrays
from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.kept import kept_folder
from ranks.engine.runs.kept.kept_file import named_in
from tests.engine.group import run_ranks
from tests.engine.runs.kept_run import CONFIG, WORKLOAD, config_of, kept, named, train
from tests.engine.small_disk import mounted
from tests.toys import window

# Files ----------------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "found",
    [
        {"kept_file": "../x", "bytes": 1},
        {"kept_file": 3, "bytes": 1},
        {"kept_file": f"a/{1:08d}-{'0' * 64}.safetensors", "bytes": -1},
        {"kept_file": f"a/{1:08d}-{'0' * 64}.safetensors"},
        {"kept_file": f"a/{1:08d}-{'0' * 64}.safetensors", "bytes": 1, "archived": False},
        {"kept_file": f"a/{1:08d}-{'0' * 64}.safetensors", "bytes": 1, "other": True},
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


def test_two_ranks_then_three_give_the_run_of_one(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    run_ranks(2, train_on_ranks, 5, config=config, tmp_path=tmp_path)
    part = kept(config)[2]
    inode = part.stat().st_ino
    found = run_ranks(3, train_on_ranks, 8, config=config, tmp_path=tmp_path)
    straight = config_of(tmp_path / "straight")
    assert set(found) == {train(straight).fingerprint}
    assert part.name == kept(straight)[2].name
    assert part.stat().st_ino == inode
    assert {f"window/{path.name}" for path in kept(config).values()} == named(config)


def train_on_two_hosts(world: World, blind: bool) -> str:
    """As if each rank were on a host of its own; `blind`: the second one does not see the first one's files."""
    world.process_env = replace(world.process_env, one_host=False)
    agree.SEEN_S = 0.1
    if blind and world.rank == 1:
        KeptFiles._sees = lambda self, file: False  # type: ignore[method-assign]
    try:
        return window.train(CONFIG, world).fingerprint
    except UserError as error:
        return error.found


def test_a_host_that_does_not_see_a_part_is_named(tmp_path: Path) -> None:
    same = run_ranks(2, train_on_two_hosts, False, config=config_of(tmp_path / "same"), tmp_path=tmp_path)
    assert set(same) == {train(config_of(tmp_path / "straight")).fingerprint}
    found = run_ranks(2, train_on_two_hosts, True, config=config_of(tmp_path / "blind"), tmp_path=tmp_path)
    assert found[0] == found[1]
    assert "sees: rank 1 on" in found[0]


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
                    assert run._snapshot is not None
                    assert run._snapshot.flat() == {}, "the copy for a stop holds names alone"
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
