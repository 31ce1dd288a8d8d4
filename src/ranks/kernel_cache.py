"""The cache of compiled kernels on disk: one file per kernel and signature, read only when it is safe and whole.

    ~/.cache/ranks/kernels-0123456789abcdef/       one folder per version of the source; mode 0700
        simulate.step-41-9f86d081884c7d65.kernel   sha256 of the rest, then a pickle of Numba's compile result

A pickle can run code, so nothing is unpickled that another user could have written: neither the folder nor a folder
above it may be replaceable by others, and a file must be our own. A file whose sha256 does not match is removed, and
the kernel is compiled again. When there is no usable folder, kernels are compiled at each start, and one line says so.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

SHA256_BYTES = 32
MAX_ENTRY_BYTES = 64 * 2**20
"""Larger files are not read; the largest kernel of the package is below 2 MiB."""
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


@functools.cache
def usable(folder: Path) -> bool:
    """Whether kernels may be read from and written to a folder; creates it. Otherwise prints one line, once."""
    try:
        for place in reversed((folder, *folder.parents)):
            place.mkdir(exist_ok=True, mode=0o700)  # also folders above it: a umask of 002 would let the group write
        problem = unsafe(folder)
        if problem is None:
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(b"0")
    except OSError as error:
        problem = f"{folder}: {error.strerror or error}"
    if problem is not None:
        say(
            f"asked: the kernel cache {folder}; found: {problem}; do: give a private folder with NUMBA_CACHE_DIR. "
            "Until then kernels are compiled at each start (some seconds)"
        )
    return problem is None


def unsafe(folder: Path) -> str | None:
    """Why another user could change the files of a folder, or None.

    The folder must be ours, and only we may write to it. A folder above it may be ours or root's; others may write to
    it only if its sticky bit keeps them from renaming what is ours, as in /tmp.
    """
    real = folder.resolve()
    for place in (real, *real.parents):
        found = place.stat()
        owners = {os.geteuid()} if place == real else {os.geteuid(), 0}
        if found.st_uid not in owners:
            return f"{place} belongs to user {found.st_uid}, and this is user {os.geteuid()}"
        sticky = place != real and found.st_mode & stat.S_ISVTX
        if found.st_mode & OTHERS_MAY_WRITE and not sticky:
            return f"other users may write to {place} (mode {stat.S_IMODE(found.st_mode):04o})"
    return None


class KernelCache:
    """Numba's cache interface for one function: `load_overload` and `save_overload`, as its dispatcher calls them."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self.function, self.folder = function, folder
        cells: tuple[Any, ...] = tuple(cell.cell_contents for cell in function.__closure__ or ())
        self._content = hashlib.sha256(function.__code__.co_code + dumps(cells)).digest()

    @property
    def cache_path(self) -> str:
        return str(self.folder)

    def path_of(self, signature: Any, codegen: Any) -> Path:
        """The file of one signature on this processor."""
        key = repr((signature, codegen.magic_tuple(), self._content)).encode()
        module = self.function.__module__.rpartition(".")[2]
        name = self.function.__qualname__.replace("<", "").replace(">", "")
        line = self.function.__code__.co_firstlineno
        return self.folder / f"{module}.{name}-{line}-{hashlib.sha256(key).hexdigest()[:16]}.kernel"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compile result, or None when the kernel must be compiled. Never raises: a damaged file is removed."""
        target_context.refresh()
        path = self.path_of(sig, target_context.codegen())
        try:
            payload = read(path)
            return CompileResult._rebuild(target_context, *pickle.loads(payload))  # pyright: ignore[reportPrivateUsage]
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever a torn or foreign file raises, compiling again is right
            say(f"the cached kernel {path} is damaged ({error}): it is removed and compiled again")
            with contextlib.suppress(OSError):
                path.unlink()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compile result. Never raises: where it cannot be written, one line says so."""
        try:
            payload: bytes = dumps(data._reduce())
            write(self.path_of(sig, data.codegen), hashlib.sha256(payload).digest() + payload)
        except Exception as error:  # a full disk, or a kernel that Numba cannot store
            say_unsaved(self.folder, str(error))

    def flush(self) -> None:
        """Remove the files of this function."""
        for path in self.folder.glob(f"*.{self.function.__qualname__}-*.kernel"):
            path.unlink(missing_ok=True)

    def enable(self) -> None:
        """Part of Numba's interface; this cache is always on."""

    def disable(self) -> None:
        """Part of Numba's interface; this cache is always on."""


def read(path: Path) -> bytes:
    """The verified content of an entry. Raises FileNotFoundError, or ValueError and OSError where it is not safe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("not a regular file")
        if found.st_uid != os.geteuid() or found.st_mode & OTHERS_MAY_WRITE:
            raise ValueError(f"user {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}")
        if found.st_size > MAX_ENTRY_BYTES:
            raise ValueError(f"{found.st_size:,} bytes")
        content = file.read()
    if hashlib.sha256(content[SHA256_BYTES:]).digest() != content[:SHA256_BYTES]:
        raise ValueError("its sha256 does not match")
    return content[SHA256_BYTES:]


def write(path: Path, content: bytes) -> None:
    """Write a file of mode 0600 next to `path` and rename it. Raises OSError, and leaves nothing behind."""
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


@functools.cache
def say_unsaved(folder: Path, problem: str) -> None:
    """Print once that kernels cannot be written."""
    say(f"kernels could not be written to {folder} ({problem}): they are compiled again at the next start")


def say(text: str) -> None:
    """Print a line on stderr."""
    print(f"ranks: {text}", file=sys.stderr, flush=True)
