"""The disk of the runs folder, and that of temporary files: writable, free, fast enough, reads back."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import disk_usage
from typing import Any

from ranks.hardware.doctor.doing import doing
from ranks.hardware.doctor.finding import Asked, Finding, failure, note, ok, warning
from ranks.hardware.doctor.save_steps import SaveSteps, try_save
from ranks.watch.lines import size

CHUNK = bytes(range(256)) * 4096
"""1 MiB."""
CHUNKS, WRITING_S = 64, 2.0
"""At most 64 MiB or two seconds are written."""
SLOW = 30e6
"""Bytes a second. A checkpoint of 300 MB then stops the run for 10 s."""
TEMPORARY = 32 * 2**20
INODES = 1_000
SLOW_SYNC_S = 0.25
"""A checkpoint syncs some ten times."""
IN_MEMORY = ("tmpfs", "ramfs")
WRITABLE = "make it writable (chmod, mount -o remount,rw)"
_DO = {
    errno.EIO: "the disk fails (dmesg | tail; smartctl -a); copy what it holds",
    errno.EDQUOT: "the quota of this user is used up (quota -s): delete files",
    errno.ENOTDIR: "mount the disk, or remove what is in the way",
}
"""By the error of writing."""


@dataclass(frozen=True)
class Place:
    """What was found in one folder."""

    path: str
    folder: str
    """The nearest folder that exists."""
    free: int = 0
    free_inodes: int = -1
    """-1: the file system does not count them."""
    file_system: str = ""
    error: str = ""
    """Why nothing can be written there."""
    errno: int = 0
    """Of that error, or 0."""
    bytes_per_s: float = 0.0
    reads_back: bool = True
    failed_step: str = ""
    """Of a save, and why."""
    sync_s: float = 0.0
    """Seconds to sync a small file."""


@dataclass(frozen=True)
class DiskFacts:
    """Both places, as dicts of Place."""

    runs: dict[str, Any] = field(default_factory=dict[str, Any])
    temporary: dict[str, Any] = field(default_factory=dict[str, Any])


def measure(asked: Asked) -> DiskFacts:
    """Write, sync, read and remove a file in both places."""
    doing(f"the runs folder {Path(asked.runs_dir).absolute()}")
    runs = _place(Path(asked.runs_dir), keeps=True)
    doing(f"the folder of temporary files {tempfile.gettempdir()}")
    return DiskFacts(asdict(runs), asdict(_place(Path(tempfile.gettempdir()), keeps=False)))


def _place(path: Path, *, keeps: bool) -> Place:
    """`keeps`: checkpoints are saved there."""
    folder = next(place for place in (path.absolute(), *path.absolute().parents) if place.is_dir())
    if wrong := _in_the_way(path.absolute()):
        return Place(str(path), str(folder), disk_usage(folder).free, error=wrong, errno=errno.ENOTDIR)
    free, system, stat = disk_usage(folder).free, _file_system(folder), os.statvfs(folder)
    inodes = stat.f_favail if stat.f_files else -1
    name = folder / f".ranks-doctor-{uuid.uuid4().hex[:12]}"
    chunks = max(1, min(CHUNKS, free // 4 // len(CHUNK)))
    written = 0
    try:
        began = time.monotonic()
        with open(name, "xb") as file:
            while written < chunks and time.monotonic() - began < WRITING_S:
                file.write(CHUNK)
                written += 1
            file.flush()
            os.fsync(file.fileno())
        seconds = time.monotonic() - began
        reads_back = all(part == CHUNK for part in _parts(name)) and name.stat().st_size == written * len(CHUNK)
    except OSError as error:
        why, number = error.strerror or str(error), error.errno or 0
        return Place(str(path), str(folder), free, inodes, system, error=why, errno=number)
    finally:
        with suppress(OSError):
            name.unlink()
    steps = try_save(folder) if keeps else SaveSteps()
    return Place(
        str(path),
        str(folder),
        free,
        inodes,
        system,
        bytes_per_s=written * len(CHUNK) / seconds,
        reads_back=reads_back,
        failed_step=steps.failed,
        sync_s=steps.sync_s,
    )


def _in_the_way(path: Path) -> str:
    """What on the way to a folder is no folder, such as a link to a disk that is not mounted; empty if nothing is."""
    for place in (path, *path.parents):
        if place.is_symlink() and not place.exists():
            return f"{place} is a link to {os.readlink(place)}, which does not exist"
        if place.exists() and not place.is_dir():
            return f"{place} is a file, not a folder"
    return ""


def _parts(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while part := file.read(len(CHUNK)):
            yield part


def _file_system(folder: Path) -> str:
    """The type of the file system that a folder is on; empty where the system does not say."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    named = [(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), where), kind) for where, kind in mounts]
    above = [(len(where), index, kind) for index, (where, kind) in enumerate(named) if folder.is_relative_to(where)]
    return max(above)[2] if above else ""  # of two mounts on one folder the later one is seen


def judge(facts: DiskFacts, asked: Asked) -> Iterator[Finding]:
    """Room and speed for checkpoints; a little room for temporary files."""
    yield from _judge("runs folder", Place(**facts.runs), asked.checkpoint_bytes, "--runs-dir FOLDER", keeps=True)
    yield from _judge("temporary files", Place(**facts.temporary), TEMPORARY, "export TMPDIR=FOLDER", keeps=False)


def _judge(topic: str, place: Place, needed: int, elsewhere: str, *, keeps: bool) -> Iterator[Finding]:
    where = place.folder if place.folder == place.path else f"{place.path} (in {place.folder})"
    found = f"{where}: {size(place.free)} free"
    if place.free < needed:
        yield failure(topic, found, f"{size(needed)} or more", f"free space, or name another disk: {elsewhere}")
        return
    if 0 <= place.free_inodes < INODES:
        found = f"{where}: {place.free_inodes} free inodes, so no more files than that"
        yield failure(topic, found, f"{INODES:,}", f"df -i; delete files, or name another disk: {elsewhere}")
    if place.error:
        do = f"{_DO.get(place.errno, WRITABLE)}, or name another folder: {elsewhere}"
        yield failure(topic, f"{where}: {place.error}", "a folder that can be written", do)
        return
    if not place.reads_back:
        expected = "the bytes that were written"
        yield failure(topic, f"{where}: what was written does not read back", expected, f"check the disk; {elsewhere}")
    elif place.failed_step:
        expected = "the steps of a save: write, fsync, rename, flock, delete"
        do = f"mount it with locks and renames (NFS 4, hard), or name another disk: {elsewhere}"
        yield failure(topic, f"{where}: {place.failed_step}", expected, do)
    elif keeps and place.file_system in IN_MEMORY:
        found = f"{where} is in memory ({place.file_system})"
        yield warning(topic, found, "a disk: checkpoints are lost when the machine ends", elsewhere)
    elif keeps and place.bytes_per_s < SLOW:
        speed = f"{where}: {place.bytes_per_s / 1e6:.0f} MB/s"
        yield warning(topic, speed, f"{SLOW / 1e6:.0f} MB/s: a save stops the run", f"save seldom, or {elsewhere}")
    elif place.sync_s > SLOW_SYNC_S:
        slow = f"{where}: {place.sync_s:.2f} s to sync a small file"
        yield warning(topic, slow, f"{SLOW_SYNC_S:g} s: a save syncs ten times", f"a disk of this machine: {elsewhere}")
    else:
        yield ok(topic, f"{found}, {place.bytes_per_s / 1e6:,.0f} MB/s")
    if keeps and place.file_system in ("nfs", "nfs4", "cifs", "fuse.sshfs"):
        yield note(topic, f"{where} is on a network ({place.file_system}): saves wait for it")
