"""What the watcher of a machine sees of a run. It reads files and the lock alone, so it does not need the launcher."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from ranks.engine.files.jsonl import last_rows
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, RUN_FILE, SESSIONS_FILE, RunFolder
from ranks.engine.runs.sessions import newest_state
from ranks.transfer.pulled_mark import is_at_home

BEGINS = ("opened", "resumed")
SIGNS = (RUN_FILE, METRICS_FILE, EVENTS_FILE, SESSIONS_FILE, "checkpoints")
"""Files and folders that change when a run goes forward. Telemetry is none: it is written for hung ranks too."""
RESULTS = "results"
"""runs/.NAME.results: a job has it until it has evaluated, exported and done what the user wants after it."""


@dataclass(frozen=True)
class RunState:
    """`alive`: a process of the run exists. `ended`: how the last session ended, None while it has no end.
    `last_sign`: Unix time of the last progress. `pulled`: `ranks pull` has brought it home as it is now.
    `results_due`: the job on this machine has not evaluated and exported it yet."""

    exists: bool
    alive: bool = False
    ended: str | None = None
    last_sign: float = 0.0
    pulled: bool = False
    results_due: bool = False


def read_state(folder: RunFolder) -> RunState:
    """The state of a run now."""
    if not folder.exists:
        return RunState(False, folder.in_use() is not False)
    event = newest_state(last_rows(folder.path / SESSIONS_FILE)).get("event")
    signs = list[float]()
    for name in SIGNS:
        with suppress(OSError):
            signs.append((folder.path / name).stat().st_mtime)
    return RunState(
        True,
        folder.in_use() is not False,
        None if event is None or event in BEGINS else str(event),
        max(signs, default=0.0),
        is_at_home(folder),
        folder.path.with_name(f".{folder.path.name}.{RESULTS}").exists(),
    )
