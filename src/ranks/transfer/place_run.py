"""Moves a verified copy of a run to its place. Whatever ends it, the run folder can be resumed, and the next pull
completes it."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Sequence
from pathlib import Path

from ranks.engine.files.disk import remove, sync_folder
from ranks.engine.runs.folder import SESSIONS_FILE, TEMPORARY, RunFolder


def place_run(copy: Path, local: RunFolder, names: Sequence[str]) -> None:
    """`copy`: holds the files `names`, and nothing else. Raises OSError."""
    for name in names:
        _sync(copy / name)
    if local.exists:
        _merge(copy, local.path, names)
        remove(copy)
    else:
        os.rename(copy, local.path)
    sync_folder(local.path.parent)


def _merge(copy: Path, run: Path, names: Sequence[str]) -> None:
    """Rows come first: a checkpoint may name only rows that are there. Checkpoints come last as whole folders, and
    after them the file that says that the run has finished."""
    saves = sorted({name.split("/")[1] for name in names if name.startswith("checkpoints/")})
    for name in names:
        if not name.startswith("checkpoints/") and name != SESSIONS_FILE:
            (run / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(copy / name, run / name)
    for save in saves:
        new, old = copy / "checkpoints" / save, run / "checkpoints" / save
        files = [name.split("/")[2] for name in names if name.startswith(f"checkpoints/{save}/")]
        if filecmp.cmpfiles(old, new, files, shallow=False)[0] == files:
            continue
        to_delete = old.with_name(f"{TEMPORARY}old-{save}")
        if os.path.lexists(old):
            os.rename(old, to_delete)
        os.rename(new, old)
        remove(to_delete)
    sync_folder(run / "checkpoints")
    os.replace(copy / SESSIONS_FILE, run / SESSIONS_FILE)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
