"""Writes that survive a power loss, and errors of the disk as messages for a user."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from ranks.engine.files.regular import DamagedFile, reason
from ranks.errors import UserError

INTACT = "older checkpoints are intact"
NOTHING_SAVED = "nothing was saved"


@contextmanager
def writing(asked: str, folder: Path, state: str = INTACT) -> Generator[None]:
    """Turn an OSError, or content that does not read back, into a UserError that names the place
    and the free space. `state`: what that means for the run."""
    try:
        yield
    except DamagedFile as damage:
        raise UserError(
            asked,
            f"what was written does not read back ({damage}); {state}",
            "check the disk and the memory of this machine, then run the same command again",
        ) from damage
    except OSError as error:
        if not folder.is_dir() and isinstance(error, FileNotFoundError):
            found, do = f"{folder} does not exist; was it deleted?", "restore it from a copy, or start the run again"
        elif isinstance(error, (FileExistsError, NotADirectoryError)) and not Path(str(error.filename)).is_dir():
            found, do = f"{error.filename} is no folder; {state}", "move it away, or name another folder"
        else:
            there = next((p for p in (folder, *folder.absolute().parents) if p.is_dir()), Path("/"))
            free = shutil.disk_usage(there).free
            left = f"{free / 2**20:.1f} MiB" if free >= 2**20 else f"{free // 2**10} KiB"
            found = f"{reason(error)} ({left} free); {state}"
            do = "free disk space, or make the folder writable (chmod), then run the same command again"
        raise UserError(asked, found, do) from error


def write_durably(path: Path, content: bytes) -> None:
    """Write a file and sync it to the disk. Raises OSError."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_durably(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: to a temporary one, which is synced and renamed. Raises OSError."""
    temporary = path.with_name(f".{path.name.removeprefix('.')}.tmp-{os.getpid()}")
    try:
        write_durably(temporary, content)
        temporary.replace(path)
    except OSError:
        remove(temporary)
        raise


def sync_folder(path: Path) -> None:
    """Sync the names in a folder to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file, a link (not what it points to) or a folder; what cannot be removed stays."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def replace_folder(folder: Path, new: Path) -> None:
    """Move the folder `new` to the place of `folder`, on the same disk.

    The older one is moved aside first and removed last. So a kill leaves it whole, and `finish_replacement` finds it.
    Raises OSError. Where `new` cannot be moved, the older one is back in its place then.
    """
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    if os.path.lexists(folder):
        os.rename(folder, old)
    try:
        os.rename(new, folder)
    except OSError:
        if os.path.lexists(old) and not os.path.lexists(folder):
            os.rename(old, folder)
        raise
    sync_folder(folder.parent)
    remove(old)


def finish_replacement(folder: Path) -> None:
    """After a kill in `replace_folder`: put the older folder back where no new one is in its place; else remove it.
    Raises OSError."""
    made = re.compile(rf"\.{re.escape(folder.name)}\.old-[0-9]+")
    for old in folder.parent.glob(f".{glob.escape(folder.name)}.old-*"):
        if made.fullmatch(old.name):
            if os.path.lexists(folder):
                remove(old)
            else:
                os.rename(old, folder)


def real_folder(path: Path) -> Path:
    """Make a folder where there is none; what has its name and is no folder is removed. Raises
    OSError."""
    if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
        remove(path)
    path.mkdir(parents=True, exist_ok=True)
    return path
