"""The temporary folder of a launcher, with a lock in it that says whether the launcher lives."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

from ranks.engine.files.disk import NOTHING_SAVED, remove, writing
from ranks.engine.files.lock import is_locked, lock

PREFIX = "ranks-"
LOCK = "launcher.lock"


@contextlib.contextmanager
def private_folder() -> Generator[Path]:
    """A folder that only this user can open, removed at the end. Those of killed launchers are
    removed first. Raises UserError where there is no space for it."""
    with contextlib.ExitStack() as stack:
        with writing("to make a temporary folder", Path("/"), NOTHING_SAVED):
            for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
                if _left_by_a_killed_launcher(left):
                    remove(left)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX)))
        stack.callback(os.close, lock(folder / LOCK, "to start the ranks"))
        yield folder


def _left_by_a_killed_launcher(folder: Path) -> bool:
    """Whether its lock was once taken, and nobody holds it now. A launcher that only just made the
    lock has not written its name into it."""
    try:
        taken = (folder / LOCK).stat().st_size > 0
    except OSError:
        return False
    return taken and is_locked(folder / LOCK) is False
