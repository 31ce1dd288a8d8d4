"""The steps of a save, in a folder: lock, write, sync, rename a folder, sync the folder above, delete."""

from __future__ import annotations

import fcntl
import os
import shutil
import statistics
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SYNCS, SYNC_S = 5, 1.0
"""At most so many files are synced, and none after so long."""


@dataclass(frozen=True)
class SaveSteps:
    """How they went."""

    failed: str = ""
    """The step that failed, and why."""
    sync_s: float = 0.0
    """Seconds of one sync of a small file; the median of some."""


def try_save(folder: Path) -> SaveSteps:
    """Do in `folder` what a checkpoint does, with small files. Leaves nothing there."""
    name = f".ranks-doctor-{uuid.uuid4().hex[:12]}"  # other machines may try the same folder
    new, named = (folder / f"{name}{end}" for end in (".tmp", ".saved"))
    step, syncs = "mkdir", list[float]()
    try:
        new.mkdir()
        for index in range(SYNCS):
            if sum(syncs) > SYNC_S:
                break
            step = "write"
            with open(new / str(index), "xb") as file:
                file.write(b"ranks")
                file.flush()
                step, began = "fsync of a file", time.monotonic()
                os.fsync(file.fileno())
                syncs.append(time.monotonic() - began)
        step = "rename of a folder"
        new.rename(named)
        step = "fsync of a folder"
        _sync_folder(folder)
        step = "flock"
        with open(named / "0", "rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        step = "read after the rename"
        if (named / "0").read_bytes() != b"ranks":
            return SaveSteps(f"{step}: other bytes than were written", statistics.median(syncs))
        step = "delete"
        shutil.rmtree(named)
    except OSError as error:
        return SaveSteps(f"{step}: {error.strerror or error}", statistics.median(syncs) if syncs else 0.0)
    finally:
        for left in (new, named):
            with suppress(OSError):
                shutil.rmtree(left)
    return SaveSteps("", statistics.median(syncs))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
