"""The mark that `ranks pull` leaves next to a run on the other machine: what of it has come home."""

from __future__ import annotations

import shlex
from hashlib import sha256
from pathlib import Path, PurePosixPath

from ranks.engine.runs.folder import SESSIONS_FILE, RunFolder, iteration_of, listing


def mark_of(folder: PurePosixPath) -> PurePosixPath:
    """runs/.NAME.pulled, next to the run folder."""
    return folder.parent / f".{folder.name}.pulled"


def mark_command(folder: str, sessions: bytes, iteration: int) -> str:
    """A shell command that writes the mark; where nothing can be written, it does nothing."""
    text = _text(sessions, iteration)
    return (
        f"echo {shlex.quote(text)} 2>/dev/null > {shlex.quote(str(mark_of(PurePosixPath(folder.rstrip('/')))))} || true"
    )


def is_at_home(folder: RunFolder) -> bool:
    """Whether `ranks pull` has brought home the newest checkpoint of a run, and its sessions as they are now."""
    newest = listing(folder.checkpoints)
    try:
        sessions = (folder.path / SESSIONS_FILE).read_bytes()
        mark = Path(mark_of(PurePosixPath(folder.path))).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return False
    return bool(newest) and mark == _text(sessions, iteration_of(newest[-1]) or 0)


def _text(sessions: bytes, iteration: int) -> str:
    return f"{sha256(sessions).hexdigest()} {iteration}"
