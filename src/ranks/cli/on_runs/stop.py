"""`ranks stop RUN`: save a running run and end it."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.engine.config import seconds
from ranks.engine.files.jsonl import last_rows
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import SESSIONS_FILE, RunFolder
from ranks.engine.runs.sessions import newest_state
from ranks.errors import UserError

POLL_S = 0.1


@dataclass(frozen=True)
class StopFlags:
    """Ask a running run to save and stop, as SIGTERM does, and wait for its end."""

    run: Positional[str]
    """Its name, or the path of its folder."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""
    limit: str = "10m"
    """How long to wait: 90s, 10m, 1h. The run is not killed after it."""


def stop(argv: Sequence[str]) -> int:
    """Send SIGTERM to the run's launcher and wait. Exit code 0 when it has ended, 1 when it goes on."""
    flags = parse(StopFlags, argv, prog="ranks stop")
    asked = f"ranks stop {flags.run}"
    limit_s = seconds(flags.limit, "--limit")
    folder = RunFolder(find_folder(flags.run, flags.runs_dir, asked))
    pid = launcher_of(folder, asked)
    print(f"SIGTERM to process {pid}; waiting for the save", flush=True)
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has ended since
    except PermissionError:
        raise UserError(asked, f"process {pid} belongs to another user", "ask that user, or run this as root") from None
    deadline = time.monotonic() + limit_s
    while folder.in_use():
        if time.monotonic() > deadline:
            print(f"it still runs after {flags.limit}; kill -9 {pid} ends it without a save")
            return 1
        time.sleep(POLL_S)
    last = newest_state(last_rows(folder.path / SESSIONS_FILE))
    print(
        f"{last.get('event', 'ended')} at iteration {last.get('iteration', '?')}; the same command resumes from there"
    )
    return 0


def launcher_of(folder: RunFolder, asked: str) -> int:
    """The process that holds the run's lock. Raises UserError where none does, or one on another machine or in another
    container."""
    in_use, holder = folder.in_use(), folder.holder()
    if in_use is None:
        raise UserError(asked, "the run belongs to another user", "ask that user, or run this as root")
    if not in_use:
        raise UserError(asked, f"{folder.path} is not running", "see ranks runs")
    if holder is None:
        raise UserError(
            asked, "the lock file does not say which process trains", "find it with ps, and end it with kill"
        )
    if holder.host != socket.gethostname():
        found = f"it runs on {holder.host} as process {holder.pid}"
        raise UserError(asked, found, f"ssh {holder.host} kill -TERM {holder.pid}")
    if not folder.is_held_by(holder):
        found = f"process {holder.pid}, which started it, is gone or in another container"
        raise UserError(asked, found, "run this in the container that trains")
    return holder.pid
