"""The cache of compiled kernels: nothing of another user is unpickled, and no damage stops a start."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranks import jit, kernel_cache

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def triple(x: int) -> int:
    return 3 * x


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A private folder for the cache, which does not exist yet."""
    kernel_cache.usable.cache_clear()
    return tmp_path / "cache" / "kernels"


def start(folder: Path) -> tuple[int, int]:
    """(cache hits, misses) of a new dispatcher of `triple`, which must compute the right number."""
    rule: Any = jit.compiled(triple, "int64(int64)", folder)
    assert rule(7) == 21
    return sum(rule.stats.cache_hits.values()), sum(rule.stats.cache_misses.values())


def entry(folder: Path) -> Path:
    (path,) = folder.glob("*.kernel")
    return path


class Canary:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[Path], object], tuple[Path]]:
        return Path.touch, (self.path,)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def plant_a_pickle(path: Path) -> None:
    path.write_bytes(bytes(32) + pickle.dumps(Canary(path.with_name("canary"))))


def seal_another_pickle(path: Path) -> None:
    """The sha256 matches, and the content is something that is no compile result."""
    payload = pickle.dumps({"not": "a kernel"})
    path.write_bytes(hashlib.sha256(payload).digest() + payload)


def make_a_pipe(path: Path) -> None:
    """Opening it for reading would wait for a writer."""
    path.unlink()
    os.mkfifo(path)


def link_elsewhere(path: Path) -> None:
    real = path.with_name("elsewhere")
    path.rename(real)
    path.symlink_to(real)


def let_others_write(path: Path) -> None:
    path.chmod(0o666)


@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        flip_a_bit,
        empty,
        plant_a_pickle,
        seal_another_pickle,
        make_a_pipe,
        link_elsewhere,
        let_others_write,
    ],
    ids=lambda damage: damage.__name__,
)
def test_a_damaged_entry_is_removed_and_compiled_again(
    damage: Callable[[Path], None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(folder) == (0, 1)
    assert start(folder) == (1, 0)
    damage(entry(folder))
    capsys.readouterr()
    assert start(folder) == (0, 1)
    assert "is removed and compiled again" in capsys.readouterr().err
    assert not (folder / "canary").exists()
    assert start(folder) == (1, 0)
    assert capsys.readouterr().err == ""


def test_files_are_private(folder: Path) -> None:
    start(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert entry(folder).stat().st_mode & 0o777 == 0o600
    assert list(folder.iterdir()) == [entry(folder)]


@pytest.mark.parametrize("place", ["kernels", "cache"])
def test_a_folder_that_others_may_write_to_is_not_used(
    place: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(folder)
    (folder if place == "kernels" else folder.parent).chmod(0o777)
    kernel_cache.usable.cache_clear()
    assert start(folder) == (0, 1)
    assert start(folder) == (0, 1)
    said = capsys.readouterr().err
    assert "other users may write to" in said
    assert "do: give a private folder with NUMBA_CACHE_DIR" in said
    assert said.count("\n") == 1


@as_root
@pytest.mark.parametrize("place", ["kernels", "cache", "entry"])
def test_what_another_user_owns_is_not_read(place: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(folder)
    os.chown({"kernels": folder, "cache": folder.parent, "entry": entry(folder)}[place], NOBODY, NOBODY)
    kernel_cache.usable.cache_clear()
    assert start(folder) == (0, 1)
    assert "user 65534" in capsys.readouterr().err


def test_a_sticky_folder_above_is_fine(tmp_path: Path, folder: Path) -> None:
    tmp_path.chmod(0o1777)
    assert start(folder) == (0, 1)
    assert start(folder) == (1, 0)


def test_no_place_for_a_cache(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder's name is taken by a file, as it is where a home folder is missing or cannot be written."""
    folder.parent.mkdir()
    folder.touch()
    assert start(folder) == (0, 1)
    assert start(folder) == (0, 1)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "compiled at each start" in said


FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
from pathlib import Path
from tests.search.test_kernel_cache import start
print(start(Path({folder!r})), start(Path({folder!r})))
"""


def test_a_disk_that_fills_up(folder: Path) -> None:
    """Writing fails after 1,000 bytes: the kernel works, one line says so, and no part of a file stays."""
    root = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    script = FULL.format(limit=1000, folder=str(folder))
    # -B: this process must leave no module cut to 1,000 bytes in a __pycache__ that all others read.
    command = [sys.executable, "-B", "-c", script]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "(0, 1) (0, 1)\n"
    assert ended.stderr.count("could not be written") == 1
    assert list(folder.iterdir()) == []


def test_a_umask_that_lets_the_group_write_does_not_open_the_cache(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = os.umask(0o002)
    try:
        assert start(folder) == (0, 1)
        assert start(folder) == (1, 0)
    finally:
        os.umask(before)
    assert capsys.readouterr().err == ""
    assert folder.parent.stat().st_mode & 0o777 == 0o700


NO_HOME = """
import os, tempfile
from ranks.cache_home import cache_home
os.environ = {"PATH": os.environ["PATH"]}
os.setuid(54321)
print(os.path.relpath(cache_home(), tempfile.gettempdir()))
"""


@as_root
def test_a_user_without_a_home_folder() -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    ended = subprocess.run(
        [sys.executable, "-c", NO_HOME], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.stdout == "cache-54321\n", ended.stderr
