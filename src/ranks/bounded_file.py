"""Opens files of users within limits, so that no file is endless and none fills the memory.

    with open_file(path, "the games in mine.pgn.gz") as file:      a binary stream of the plain or unpacked content
        for line in io.TextIOWrapper(file, "utf-8"): ...

Only regular files are opened: a pipe or a device may never end. A file may hold 1 GiB in all and 1 MiB a line. A gzip
file may unpack to 64 MiB, and beyond that to 100 times its own size. RANKS_MAX_FILE_MIB replaces the first limit, and
the other two sizes grow with it. A file that is read line by line, and never held in memory, has no first limit:
`limits=FileLimits.streamed()`.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NoReturn

from ranks.errors import UserError

VARIABLE = "RANKS_MAX_FILE_MIB"
DEFAULT_MIB, LARGEST_MIB = 1024, 1 << 30
MAX_RATIO = 100
"""Text is packed to a tenth or so; what unpacks to more than 100 times its size is made to fill a memory."""
GZIP_MAGIC = b"\x1f\x8b"
BLOCK_BYTES = 1 << 16
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True)
class FileLimits:
    """How much of a file is read."""

    total_bytes: int = DEFAULT_MIB << 20
    has_total: bool = True
    """Whether a file may not be larger. The other limits depend on `total_bytes` in any case."""

    @property
    def line_bytes(self) -> int:
        """The longest line."""
        return self.total_bytes >> 10

    @property
    def unpacked_bytes(self) -> int:
        """What any gzip file may unpack to, however small it is."""
        return self.total_bytes >> 4

    @classmethod
    def of_this_process(cls, environ: Mapping[str, str] = os.environ) -> FileLimits:
        """The default limits, or those that RANKS_MAX_FILE_MIB sets. Raises UserError."""
        text = environ.get(VARIABLE, str(DEFAULT_MIB))
        if not (text.isascii() and text.isdecimal() and len(text) <= 10 and 1 <= int(text) <= LARGEST_MIB):
            do = f"give a number of MiB from 1 to {LARGEST_MIB}, or unset it"
            raise UserError(f"{VARIABLE}={text}", "not a size", do)
        return cls(int(text) << 20)

    @classmethod
    def streamed(cls) -> FileLimits:
        """Those of this process for a file of any size, of which memory holds a few lines. Raises UserError."""
        return replace(cls.of_this_process(), has_total=False)


class DamagedGzip(UserError):
    """A gzip file that ends early or cannot be unpacked."""


class BoundedContent(io.RawIOBase):
    """The content of an open file, unpacked if it is gzip. Reading past a limit raises UserError."""

    def __init__(self, file: IO[bytes], name: str, asked: str, limits: FileLimits, *, has_lines: bool) -> None:
        """`name`: how messages call the file. `has_lines`: whether the length of lines is limited."""
        super().__init__()
        self.name, self.asked, self.limits, self.has_lines = name, asked, limits, has_lines
        try:
            self._packed = _Counted(file)
        except OSError as error:
            file.close()
            self._cannot_read(error)
        self._is_gzip = self._packed.head == GZIP_MAGIC
        self._unpacked: Any = gzip.GzipFile(fileobj=self._packed) if self._is_gzip else self._packed  # pyright: ignore[reportArgumentType]
        self._total = self._line = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, less only at the end. Raises UserError and DamagedGzip."""
        view, filled = memoryview(buffer).cast("B"), 0
        while filled < len(view):
            block = self._read(len(view) - filled)
            if not block:
                break
            view[filled : filled + len(block)] = block
            filled += len(block)
        return filled

    def fail(self, found: str, do: str) -> NoReturn:
        """Raise UserError: what was found in this file, and what to do."""
        raise UserError(self.asked, f"{self.name}: {found}", do)

    def close(self) -> None:
        if not self.closed and self._packed.file is not sys.stdin.buffer:
            self._packed.file.close()
        super().close()

    def _read(self, size: int) -> bytes:
        try:
            block = self._unpacked.read(min(size, BLOCK_BYTES))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            found = f"{self.name}: a damaged gzip file: {error}"
            raise DamagedGzip(self.asked, found, "fetch it again, or unpack it by hand to see what is left") from None
        except OSError as error:
            self._cannot_read(error)
        self._total += len(block)
        self._check_total()
        if self.has_lines:
            self._check_line(block)
        return block

    def _cannot_read(self, error: OSError) -> NoReturn:
        self.fail(error.strerror or str(error), "give a file that can be read")

    def _check_total(self) -> None:
        limits = self.limits
        if limits.has_total and self._total > limits.total_bytes:
            found = f"more than {in_mib(limits.total_bytes)}, the limit of a file"
            self.fail(found, f"give a part of it, or raise the limit: {VARIABLE}={2 * limits.total_bytes >> 20}")
        packed = max(self._packed.count, 1)
        if self._is_gzip and self._total > limits.unpacked_bytes and self._total > MAX_RATIO * packed:
            found = f"{packed:,} packed bytes that unpack to more than {MAX_RATIO} times as many"
            do = f"check where it comes from, then give the unpacked file (gunzip), or {self._raised(16 * self._total)}"
            self.fail(found, do)

    def _check_line(self, block: bytes) -> None:
        first = min((at for at in (block.find(b"\n"), block.find(b"\r")) if at >= 0), default=len(block))
        if self._line + first > self.limits.line_bytes:
            found = f"a line of more than {in_mib(self.limits.line_bytes)}, the limit of a line"
            self.fail(found, f"give a text file with shorter lines, or {self._raised(2 * self.limits.total_bytes)}")
        last = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self._line = self._line + len(block) if last < 0 else len(block) - last - 1

    def _raised(self, total_bytes: int) -> str:
        return f"raise all limits of files: {VARIABLE}={max(2, total_bytes >> 20)}"


class _Counted:
    """Counts the bytes that are read from a file. `head`: its first two bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.head = self._ahead = file.read(2)
        self.count = 0

    def read(self, size: int) -> bytes:
        ahead, self._ahead = self._ahead[:size], self._ahead[size:]
        data = ahead + self.file.read(size - len(ahead))
        self.count += len(data)
        return data


def open_file(
    path: str | Path, asked: str, *, has_lines: bool = True, limits: FileLimits | None = None
) -> io.BufferedReader:
    """The content of a regular file, plain or gzip, as a binary stream. Raises UserError, also while it is read.

    `asked`: what the user asked for, as the first line of errors. `has_lines`: whether lines are limited too, which
    they are in formats that are read line by line.
    """
    limits = limits or FileLimits.of_this_process()
    file = _open_regular(path, asked)
    size = os.fstat(file.fileno()).st_size
    if limits.has_total and size > limits.total_bytes:
        file.close()
        found = f"{path}: {in_mib(size)}, and the limit of a file is {in_mib(limits.total_bytes)}"
        raise UserError(asked, found, f"give a part of it, or raise the limit: {VARIABLE}={(size >> 20) + 1}")
    return io.BufferedReader(BoundedContent(file, str(path), asked, limits, has_lines=has_lines), BLOCK_BYTES)


def open_stdin(asked: str, *, has_lines: bool = True) -> io.BufferedReader:
    """The content of standard input, plain or gzip, within the limits of files. Raises UserError while it is read."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UserError(asked, "standard input is closed", "give a file, or pipe one to standard input")
    limits = FileLimits.of_this_process()
    content = BoundedContent(sys.stdin.buffer, "standard input", asked, limits, has_lines=has_lines)
    return io.BufferedReader(content, BLOCK_BYTES)


def read_text(path: str | Path, asked: str, *, has_lines: bool = True) -> str:
    """The text of a UTF-8 file, with or without a byte order mark. Raises UserError."""
    with open_file(path, asked, has_lines=has_lines) as file:
        try:
            return file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UserError(asked, f"{path}: bytes that are not UTF-8 text", "save it as UTF-8 text") from None


def _open_regular(path: str | Path, asked: str) -> IO[bytes]:
    """Open a regular file. Raises UserError for what is none, without a wait for what never answers."""
    do = "give a file that can be read"
    try:
        check_regular(path, asked)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe might have replaced the file
    except OSError as error:
        raise UserError(asked, f"{path}: {error.strerror or error}", do) from None
    except ValueError:  # a null character
        raise UserError(asked, "a name that no file can have", do) from None
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise UserError(asked, f"{path}: not a regular file", do)
    return file


def check_regular(path: str | Path, asked: str) -> None:
    """Raise UserError for a folder, pipe, device or socket; OSError where there is nothing."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        kind = next((kind for is_kind, kind in KINDS if is_kind(mode)), "not a regular file")
        raise UserError(asked, f"{path}: {kind}, not a regular file", "give a regular file: write its content into one")


def in_mib(size: int) -> str:
    """1048576 -> '1 MiB'."""
    return f"{size / 2**20:,.6g} MiB"
