"""Reads a file only where it is a regular file of a known size: no link, FIFO or device, and no
endless content."""

from __future__ import annotations

import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path

MAX_BYTES = 16 << 20
"""Of a file whose size no manifest says: settings, manifests, source files."""


class DamagedFile(Exception):
    """A file that is missing, is not a regular file, or does not hold what it should; the text
    names it."""


class UnreadableFile(DamagedFile):
    """A file that the system does not let us read now. Its content may be intact."""


def open_regular(path: Path, *, follow: bool = False) -> BufferedReader:
    """Open a regular file for reading. Raises DamagedFile. `follow`: the path may be a link.

    The open file is checked, not its name, so it cannot be replaced after the check. A FIFO without
    a writer does not block.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise DamagedFile(f"{path}: missing") from None
    except (OSError, ValueError) as error:
        if path.is_symlink():
            raise DamagedFile(f"{path}: a link") from None
        raise UnreadableFile(f"{path}: {reason(error)}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedFile(f"{path}: not a regular file")
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, *, size: int | None = None, follow: bool = False) -> bytes:
    """The content of a regular file of exactly `size` bytes, or where no size is given, of at most
    MAX_BYTES. Raises DamagedFile, before anything is read where the size is wrong."""
    with open_regular(path, follow=follow) as file:
        found = os.fstat(file.fileno()).st_size
        if size is not None:
            check_size(file, path, size)
        elif found > MAX_BYTES:
            raise DamagedFile(f"{path}: {found:,} bytes, more than {MAX_BYTES:,}")
        try:
            content = file.read(found + 1)
        except OSError as error:
            raise UnreadableFile(f"{path}: {reason(error)}") from None
    if len(content) != found:
        raise DamagedFile(f"{path}: it changed while it was read")
    return content


def sha256_regular(path: Path, *, size: int) -> str:
    """The sha256 of a regular file of exactly `size` bytes, which need not fit in memory. Raises
    DamagedFile."""
    with open_regular(path) as file:
        check_size(file, path, size)
        try:
            return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise UnreadableFile(f"{path}: {reason(error)}") from None


def check_size(file: BufferedReader, path: Path, size: int) -> None:
    """Raises DamagedFile where an open file does not have exactly `size` bytes."""
    found = os.fstat(file.fileno()).st_size
    if found != size:
        raise DamagedFile(f"{path}: {found} bytes, the manifest says {size}")


def reason(error: Exception) -> str:
    """What an error of the system says, without the path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
