"""The label cache: hits, several runs at once, its limit, and files that cannot be used."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from ranks.errors import UserError
from ranks.workloads.chess_value.labels import label_cache
from ranks.workloads.chess_value.labels.cache_export import caches_in, export_labels, import_labels
from ranks.workloads.chess_value.labels.cache_file import BYTES_PER_LABEL, CacheAbout
from ranks.workloads.chess_value.labels.label import NO_SCORE
from ranks.workloads.chess_value.labels.label_cache import DEFAULT_BYTES, MOST_FILES, LabelCache, folder_name
from tests.chess_value.boards import random_boards

ABOUT = CacheAbout("Small 1.0", "nodes:5")
BOARDS, MORE_BOARDS = random_boards(300, seed=1), random_boards(300, seed=2)
CP = np.arange(-150, 150, dtype=np.int16)


def files(cache: LabelCache) -> list[Path]:
    return sorted((cache.path / "labels").iterdir())


def cache_of(root: Path, said: list[str] | None = None, most_bytes: int | None = None) -> LabelCache:
    return LabelCache(root, ABOUT, most_bytes, (said if said is not None else []).append)


def test_labels_are_found_by_position_and_not_by_key_alone(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    assert (cache.look_up(BOARDS) == NO_SCORE).all()
    cache.add(BOARDS[:200], np.where(np.arange(200) == 7, NO_SCORE, CP[:200]).astype(np.int16))
    wanted = np.where((np.arange(300) < 200) & (np.arange(300) != 7), CP, NO_SCORE)
    assert np.array_equal(cache.look_up(BOARDS), wanted)
    assert np.array_equal(cache_of(tmp_path).look_up(BOARDS[::-1]), wanted[::-1])
    same_key = BOARDS[:1].copy()
    same_key[0, 0] ^= np.uint64(1 << 20)  # a pawn more, and the key of the other position
    assert cache.look_up(same_key).tolist() == [NO_SCORE]
    older = BOARDS[:1].copy()
    older[0, 11] += np.uint64(5)
    assert cache.look_up(older).tolist() == [CP[0]]
    assert len(LabelCache(tmp_path, CacheAbout("Small 1.0", "nodes:6"))) == 0


def test_several_runs_see_the_labels_of_each_other(tmp_path: Path) -> None:
    caches = [cache_of(tmp_path) for _ in range(3)]
    for start in range(0, 300, 5):  # more files than are left unmerged
        caches[start // 5 % 3].add(BOARDS[start : start + 5], CP[start : start + 5])
    for cache in caches:
        cache.refresh()
        assert np.array_equal(cache.look_up(BOARDS), CP)
        assert len(cache.all_labels().key_N) == 300
    assert len(files(caches[0])) <= MOST_FILES + 1


def test_the_oldest_labels_are_dropped_at_the_limit(tmp_path: Path) -> None:
    most_bytes = 100 * BYTES_PER_LABEL + 5_000
    cache = cache_of(tmp_path, most_bytes=most_bytes)
    for start in range(0, 300, 60):
        cache.add(BOARDS[start : start + 60], CP[start : start + 60])
        assert sum(path.stat().st_size for path in files(cache)) <= most_bytes
    found_before = cache.look_up(BOARDS) != NO_SCORE
    assert found_before[240:].all()
    assert not found_before[:60].any()


def test_an_import_keeps_to_the_limit_and_is_not_lost_at_the_next_label(tmp_path: Path) -> None:
    """Whole files are dropped, so a large import is several of them."""
    exported = tmp_path / "labels.safetensors"
    source = cache_of(tmp_path / "there")
    source.add(BOARDS[:200], CP[:200])
    export_labels(source, exported)
    with pytest.raises(UserError, match="200 labels take "):
        import_labels(tmp_path / "here", exported, 100 * BYTES_PER_LABEL)
    said, most_bytes = list[str](), 250 * BYTES_PER_LABEL + 8_000
    import_labels(tmp_path / "here", exported, most_bytes)
    cache = LabelCache(tmp_path / "here", ABOUT, most_bytes, said.append)
    assert (cache.look_up(BOARDS[:200]) != NO_SCORE).all()
    newest = BOARDS[:0]
    for start in range(0, 300, 30):
        if not said:
            newest = MORE_BOARDS[start : start + 30]
            cache.add(newest, CP[:30])
        assert sum(path.stat().st_size for path in files(cache)) <= most_bytes
    assert ["oldest labels are dropped" in line for line in said] == [True]
    assert (cache.look_up(newest) != NO_SCORE).all()
    assert 50 < (cache.look_up(BOARDS[:200]) != NO_SCORE).sum() < 200, "some of the import, not all of it"


def test_a_label_is_kept_once(tmp_path: Path) -> None:
    here, other = cache_of(tmp_path), cache_of(tmp_path)
    for start in range(0, 160, 10):
        here.add(BOARDS[start : start + 10], CP[start : start + 10])
    other.refresh()
    here.add(BOARDS[160:170], CP[160:170])  # merges files that the other one still maps
    other.add(BOARDS[170:180], CP[170:180])
    exported = tmp_path / "labels.safetensors"
    export_labels(other, exported)
    import_labels(tmp_path, exported, None)
    assert len(cache_of(tmp_path)) == 180


def test_a_limit_holds_for_all_who_name_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_of(tmp_path, most_bytes=DEFAULT_BYTES).add(BOARDS, CP)  # ranks chess-value label --cache-mib
    monkeypatch.setattr(label_cache, "DEFAULT_BYTES", 100 * BYTES_PER_LABEL)
    said: list[str] = []
    LabelCache(tmp_path, ABOUT, report=said.append).add(MORE_BOARDS[:1], CP[:1])  # ranks train chess-value
    assert (LabelCache(tmp_path, ABOUT).look_up(BOARDS) != NO_SCORE).all()
    assert said == []


def test_a_limit_that_another_run_raises_holds_for_the_runs_that_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_cache, "DEFAULT_BYTES", 100 * BYTES_PER_LABEL + 5_000)
    said: list[str] = []
    is_open, with_its_own = cache_of(tmp_path, said), cache_of(tmp_path / "other", said, 100 * BYTES_PER_LABEL + 5_000)
    is_open.add(BOARDS[:50], CP[:50])
    for root in (tmp_path, tmp_path / "other"):
        cache_of(root, most_bytes=1 << 20).add(MORE_BOARDS, CP)
    is_open.add(BOARDS[50:], CP[50:])  # more than it was opened with
    assert said == []
    assert len(cache_of(tmp_path)) == 600
    with_its_own.add(BOARDS, CP)
    assert ["oldest labels are dropped" in line for line in said] == [True]


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-300] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def of_another_engine(path: Path) -> None:
    other = LabelCache(path.parents[2], CacheAbout("Large 2.0", "nodes:5"))
    other.add(BOARDS[:10], np.full(10, 77, np.int16))
    files(other)[0].rename(path.parent / files(other)[0].name)
    path.unlink()


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("harm", [damaged, cut, of_another_engine, a_link])
def test_a_file_that_cannot_be_used_is_named_and_gives_no_labels(harm: object, tmp_path: Path) -> None:
    cache_of(tmp_path).add(BOARDS[:10], CP[:10])
    cache_of(tmp_path).add(BOARDS[10:20], CP[10:20])
    assert callable(harm)
    harm(files(cache_of(tmp_path))[0])
    said: list[str] = []
    cache = cache_of(tmp_path, said)
    assert np.array_equal(cache.look_up(BOARDS[:20]), np.where(np.arange(20) < 10, NO_SCORE, CP[:20]))
    assert len(said) == 1
    assert "it is removed, its labels are computed again" in said[0]
    cache.add(BOARDS[:10], CP[:10])
    said.clear()
    assert np.array_equal(cache_of(tmp_path, said).look_up(BOARDS[:20]), CP[:20])
    assert said == []


def test_a_file_that_the_system_does_not_open_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_of(tmp_path).add(BOARDS[:10], CP[:10])
    (file,) = files(cache_of(tmp_path))
    opened = os.open

    def refuse(path: Path, flags: int) -> int:
        if path == file:
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(path, flags)

    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr("ranks.engine.files.regular.os.open", refuse)
        cache = cache_of(tmp_path, said)
        cache.refresh()
        assert (cache.look_up(BOARDS[:10]) == NO_SCORE).all()
    assert ["Too many open files; it is left alone" in line for line in said] == [True]
    assert np.array_equal(cache_of(tmp_path).look_up(BOARDS[:10]), CP[:10])


def test_a_cache_of_another_version_is_named_and_left_alone(tmp_path: Path) -> None:
    newer = tmp_path / folder_name(ABOUT).replace("v1-", "v2-")
    newer.mkdir(parents=True)
    (newer / "labels").write_text("of the future")
    said: list[str] = []
    cache = cache_of(tmp_path, said)
    cache.add(BOARDS, CP)
    assert np.array_equal(cache.look_up(BOARDS), CP)
    assert [str(newer) in line and "of another version" in line for line in said] == [True]
    assert (newer / "labels").read_text() == "of the future"


def test_an_exported_cache_is_imported(tmp_path: Path) -> None:
    cache = cache_of(tmp_path / "here")
    cache.add(BOARDS[:150], CP[:150])
    cache.add(BOARDS[100:], CP[100:])
    assert export_labels(cache, tmp_path / "labels.safetensors") == 300
    there = tmp_path / "there"
    assert import_labels(there, tmp_path / "labels.safetensors", DEFAULT_BYTES) == (ABOUT, 300)
    assert np.array_equal(LabelCache(there, ABOUT).look_up(BOARDS), CP)
    assert [(one.about, len(one)) for one in caches_in(there)] == [(ABOUT, 300)]


ODD_LIMITS = ("x/../../../../tmp/evil", "/tmp/evil", "a\0", "nodes:5/..", "nodes:05", "nodes:5\n", "")
"""The limit is part of the name of a folder."""


def with_limit(path: Path, limit: str) -> None:
    """Write labels of another limit, complete with their sha256."""
    arrays = safetensors.numpy.load_file(path)
    about = json.loads(arrays["about_B"].tobytes()) | {"limit": limit}
    arrays["about_B"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    safetensors.numpy.save_file(arrays, path)


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        (lambda path: path.write_bytes(b"x" * 100), "not a safetensors file"),
        (lambda path: path.write_bytes(b""), "not a safetensors file"),
        (lambda path: path.unlink(), "No such file"),
        (lambda path: damaged(path), "its content is not that of its sha256"),
        (lambda path: safetensors.numpy.save_file({"weights": np.zeros(3)}, path), "no file of labels"),
        (
            lambda path: safetensors.numpy.save_file(
                {"about_B": np.frombuffer(json.dumps({"format": 9, "engine": "x"}).encode(), np.uint8)}, path
            ),
            "labels of format 9, this version reads 1",
        ),
        *((lambda path, limit=limit: with_limit(path, limit), "labels of the limit ") for limit in ODD_LIMITS),
    ],
)
def test_a_file_that_is_no_export_is_refused(harm: object, found: str, tmp_path: Path) -> None:
    cache = cache_of(tmp_path / "here")
    cache.add(BOARDS, CP)
    path = tmp_path / "labels.safetensors"
    export_labels(cache, path)
    assert callable(harm)
    harm(path)
    with pytest.raises(UserError) as error:
        import_labels(tmp_path / "there", path, DEFAULT_BYTES)
    assert found in error.value.found
    assert str(path) in error.value.asked
    assert not (tmp_path / "there").exists()


def test_merged_labels_are_not_one_file_that_the_limit_drops_whole(tmp_path: Path) -> None:
    most_bytes = 280 * BYTES_PER_LABEL + 8_000
    cache = cache_of(tmp_path, most_bytes=most_bytes)
    for start in range(0, 270, 15):  # more files than are left unmerged
        cache.add(BOARDS[start : start + 15], CP[start : start + 15])
    assert len(files(cache)) < MOST_FILES
    assert max(path.stat().st_size for path in files(cache)) < most_bytes / 4
    for start in range(0, 60, 15):
        cache.add(MORE_BOARDS[start : start + 15], CP[start : start + 15])
    assert (cache.look_up(BOARDS[:270]) != NO_SCORE).sum() > 150


def test_half_written_files_of_killed_runs_are_removed_and_fresh_ones_stay(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    cache.add(BOARDS[:5], CP[:5])
    old, fresh = (cache.path / "labels" / f".tmp-00000001-{pid}" for pid in (4000000, 4000001))
    for path in (old, fresh):
        path.write_bytes(b"half a file")
    os.utime(old, (1e9, 1e9))
    for start in range(5, 300, 5):
        cache.add(BOARDS[start : start + 5], CP[start : start + 5])
    assert (old.exists(), fresh.exists()) == (False, True)
