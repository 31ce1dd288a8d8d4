"""A lock file: held with flock by a process and all that inherit its descriptor, and gone with the
last of them. It also holds between containers that share the file system."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import stat
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ranks.engine.files.disk import NOTHING_SAVED, writing
from ranks.engine.files.regular import DamagedFile, open_regular
from ranks.errors import UserError

OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def lock(path: Path, asked: str, patience_s: float = 0.0) -> int:
    """Take a lock and write down who holds it; the descriptor, which children can inherit. Raises
    UserError naming the owner.

    Only this user can open the file: any user who can open it could hold the lock.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | OPEN, 0o600)
    except OSError as error:
        found = f"{path.parent}: {error.strerror}"
        if os.path.lexists(path):
            found = f"the lock file {path} of {owner_of(path)}: {error.strerror}"
        raise UserError(asked, found, "choose a writable folder with --runs-dir") from error
    with ExitStack() as on_error:
        on_error.callback(os.close, descriptor)
        file = os.fstat(descriptor)
        if not stat.S_ISREG(file.st_mode):
            raise UserError(asked, f"the lock file {path} is not a regular file", f"remove {path}")
        deadline = time.monotonic() + patience_s
        while not taken(descriptor):
            if time.monotonic() > deadline:
                raise _in_use(path, asked, descriptor)
            time.sleep(0.05)
        with writing(asked, path.parent, NOTHING_SAVED):
            if file.st_uid == os.geteuid() and stat.S_IMODE(file.st_mode) != 0o600:
                os.fchmod(descriptor, 0o600)  # older versions let everybody read it
            os.ftruncate(descriptor, 0)
            started = time.strftime("%Y-%m-%d %H:%M:%S")
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()} since {started}".encode(), 0)
        os.set_inheritable(descriptor, True)
        on_error.pop_all()
    return descriptor


def is_locked(path: Path) -> bool | None:
    """Whether a process holds a lock now; None where the file belongs to another user."""
    try:
        descriptor = os.open(path, os.O_RDONLY | OPEN)
    except PermissionError:
        return None
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class Holder(NamedTuple):
    """The process that has taken a lock."""

    pid: int
    host: str


def holder_of(path: Path) -> Holder | None:
    """Who holds a lock now, as it wrote into the file; None where nobody does, or the file cannot be read."""
    if not is_locked(path):
        return None
    try:
        with open_regular(path) as file:
            text = file.read(1000).decode(errors="replace")
    except (DamagedFile, OSError):
        return None
    found = re.match(r"process ([0-9]{1,7}) on (\S+) since ", text)
    return Holder(int(found[1]), found[2]) if found else None


def is_held_by(path: Path, holder: Holder) -> bool:
    """Whether the process with this id on this host has the lock file open. The process that wrote its id may be in
    another container, which has ids of its own, or have ended; its id may then belong to any other process.

    Where there is no /proc, as on macOS, it is enough that a process with this id exists."""
    if holder.host != socket.gethostname():
        return False
    if not os.path.isdir("/proc/self/fd"):
        return process_exists(holder.pid)
    folder = f"/proc/{holder.pid}/fd"
    try:
        file, descriptors = os.stat(path), os.listdir(folder)
    except OSError:
        return False
    for descriptor in descriptors:
        with suppress(OSError):  # it was closed since
            if os.path.samestat(file, os.stat(f"{folder}/{descriptor}")):
                return True
    return False


def process_exists(pid: int) -> bool:
    """Whether this host has a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True


def taken(descriptor: int) -> bool:
    """Take the lock of an open file, unless another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def tried(path: Path) -> Generator[bool]:
    """Whether this block has the lock; False where another process holds it now. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | OPEN, 0o600)
    try:
        yield taken(descriptor)
    finally:
        os.close(descriptor)


def _in_use(path: Path, asked: str, descriptor: int) -> UserError:
    owner = os.pread(descriptor, 1000, 0).decode(errors="replace").strip() or "an unnamed process"
    found = f"the run is in use by {owner}"
    if os.fstat(descriptor).st_uid != os.geteuid():
        found += f"; the lock file {path} belongs to {owner_of(path)}"
    return UserError(asked, found, "wait for it, stop it, or choose another --name")


def owner_of(path: Path) -> str:
    """The name of the user who owns a file."""
    try:
        return f"user {path.owner()}"
    except (OSError, KeyError):
        return "another user"
