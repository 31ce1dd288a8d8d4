"""Files, JSON and rows that are not what they should be: a clear error or a skipped row, no hang."""

from __future__ import annotations

import json
import os
import resource
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ranks import UserError
from ranks.engine.files import lock
from ranks.engine.files.disk import real_folder, remove, writing
from ranks.engine.files.jsonl import JsonlFile, iter_rows, last_rows, number, read_rows
from ranks.engine.files.regular import MAX_BYTES, DamagedFile, open_regular, read_regular
from ranks.engine.files.strict_json import parse_object


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def make_link(path: Path) -> None:
    path.with_name("target").write_bytes(b"x")
    path.symlink_to("target")


NOT_REGULAR: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "missing"),
    "FIFO": (os.mkfifo, "not a regular file"),
    "folder": (Path.mkdir, "not a regular file"),
    "socket": (make_socket, "No such device"),
    "link": (make_link, "a link"),
    "link to itself": (lambda path: path.symlink_to(path.name), "a link"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "a link"),
}


@pytest.mark.parametrize("kind", NOT_REGULAR)
def test_only_regular_files_are_opened(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make, words = NOT_REGULAR[kind]
    path = Path("file")
    make(path)
    with pytest.raises(DamagedFile, match=f"^file: {words}"):
        read_regular(path)
    assert read_rows(path) == list(last_rows(path)) == []


def test_a_device_is_refused_also_where_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "good").symlink_to("file")
    (tmp_path / "file").write_bytes(b"content")
    assert read_regular(tmp_path / "good", follow=True) == b"content"
    with pytest.raises(DamagedFile, match="not a regular file"):
        open_regular(tmp_path / "zero", follow=True)


def test_a_file_of_another_size_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(DamagedFile, match="1099511627776 bytes, the manifest says 5"):
        read_regular(path, size=5)
    with pytest.raises(DamagedFile, match=f"more than {MAX_BYTES:,}"):
        read_regular(path)


BAD_JSON = {
    "NaN": b'{"a": NaN}',
    "infinity": b'{"a": [-Infinity]}',
    "an array": b"[{}]",
    "a number": b"3",
    "torn": b'{"a": ',
    "no UTF-8": b'{"a": "\xff"}',
    "zeros": bytes(100),
    "65 levels": b'{"a":' * 65 + b"1" + b"}" * 65,
    "65 levels of arrays": b'{"a":' + b"[" * 64 + b"]" * 64 + b"}",
    "endless levels": b'{"a":' * 500_000,
    "a number of 5,000 digits": b'{"a": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_what_is_no_strict_json_object_is_refused(case: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_object(BAD_JSON[case])


def test_strict_json_objects_are_read() -> None:
    for value in (
        {"a": [1.5, None, "x"], "b": {"c": True}},
        {"a": [[]] * 1000},
        json.loads('{"a":' * 64 + "1" + "}" * 64),
    ):
        assert parse_object(json.dumps(value).encode()) == value


# Rows -----------------------------------------------------------------------------------------------------------------


def test_torn_and_odd_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    odd = [
        b"[1]",
        b"x",
        b"",
        b'{"a": NaN}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"y" * 3_000_000,
        b'{"a": "' + b"z" * 3_000_000 + b'"}',
    ]
    path.write_bytes(b"".join(b'{"n": %d}\n%s\n' % (n, line) for n, line in enumerate(odd)) + b'{"n": 99')
    assert [row["n"] for row in iter_rows(path)] == list(range(len(odd)))
    path.write_bytes(b'{"n": 1}\n{"n": 2}\nx\n{"n": 3')
    assert [row["n"] for row in last_rows(path)] == [2, 1]


def test_a_row_after_a_torn_line_has_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"n": 1}\n{"n": 2, "torn')
    file = JsonlFile(path)
    file.append({"n": 3})
    file.close()
    assert [row["n"] for row in read_rows(path)] == [1, 3]


def test_a_file_is_cut_to_its_length_or_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"n": 1}\n{"n": 2}\n')
    file = JsonlFile(path, 9)
    assert (file.sync(), file.missing_bytes) == (9, 0)
    file.close()
    file = JsonlFile(path, 20)
    assert (file.sync(), file.missing_bytes) == (9, 11)
    file.close()


def test_a_row_that_does_not_fit_on_the_disk_leaves_no_part(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    file = JsonlFile(path)
    file.append({"n": 1})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))  # the next row ends in the middle
    try:
        with pytest.raises(UserError, match=r"File too large \(.* free\); older checkpoints are intact"):
            file.append({"n": 2, "text": "x" * 50})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b'{"n": 1}\n'
    file.append({"n": 3})
    file.close()
    assert [row["n"] for row in read_rows(path)] == [1, 3]


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_a_file_that_was_deleted_is_noticed(what: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    file = JsonlFile(path)
    file.check_present()
    path.unlink()
    if what == "replaced":
        path.touch()
    with pytest.raises(UserError, match="deleted or replaced while the run trained"):
        file.check_present()
    file.close()


@pytest.mark.parametrize("kind", ["FIFO", "folder", "link", "device"])
def test_rows_are_written_only_to_a_regular_file(kind: str, tmp_path: Path) -> None:
    NOT_REGULAR[kind][0](tmp_path / "rows.jsonl")
    with pytest.raises(UserError, match="to write"):
        JsonlFile(tmp_path / "rows.jsonl")


def test_numbers_of_a_row_are_finite() -> None:
    row = {"a": 1, "b": 2.5, "c": True, "d": "3", "e": 10**400, "f": float("inf"), "g": None}
    assert {name: number(row, name) for name in row if number(row, name) is not None} == {"a": 1.0, "b": 2.5}


# The disk -------------------------------------------------------------------------------------------------------------


def test_what_does_not_read_back_is_an_error_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not read back") as error, writing("to save", tmp_path):
        raise DamagedFile("state.json: its sha256 is not the manifest's")
    assert "check the disk and the memory" in error.value.do


def test_a_link_is_removed_and_what_it_points_to_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "link").symlink_to("kept")
    real_folder(tmp_path / "link")
    assert (tmp_path / "link").is_dir()
    assert not (tmp_path / "link").is_symlink()
    remove(tmp_path / "link")
    remove(tmp_path / "missing")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


# The lock -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [None, 0o644, 0o666])
def test_only_its_owner_can_open_the_lock_of_a_run(before: int | None, tmp_path: Path) -> None:
    path = tmp_path / ".r.lock"
    if before is not None:
        path.touch()
        path.chmod(before)
    descriptor = lock.lock(path, "to train")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lock.is_locked(path)
    with pytest.raises(UserError, match=f"in use by process {os.getpid()}"):
        lock.lock(path, "to train")
    os.close(descriptor)
    assert not lock.is_locked(path)


def test_only_a_process_here_that_has_the_lock_open_holds_it(tmp_path: Path) -> None:
    path = tmp_path / ".r.lock"
    descriptor = lock.lock(path, "to train")
    holder = lock.holder_of(path)
    assert holder is not None
    assert holder.pid == os.getpid()
    assert lock.is_held_by(path, holder)
    assert not lock.is_held_by(path, holder._replace(host="elsewhere"))
    if sys.platform == "linux":
        assert not lock.is_held_by(path, holder._replace(pid=os.getppid()))
    os.close(descriptor)
    assert not lock.is_held_by(path, holder) or sys.platform != "linux"


@pytest.mark.parametrize("kind", ["FIFO", "folder", "link", "socket"])
def test_a_lock_that_is_no_file_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    NOT_REGULAR[kind][0](Path(".r.lock"))
    with pytest.raises(UserError, match="the lock file"):
        lock.lock(Path(".r.lock"), "to train")
    assert not lock.is_locked(Path(".r.lock"))
