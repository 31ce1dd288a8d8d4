"""The newest run, for commands that need no name."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ranks.engine.runs.find_run import run_folders
from ranks.engine.runs.folder import METRICS_FILE, SESSIONS_FILE, TELEMETRY_FILE, RunFolder
from ranks.errors import UserError


def newest_run(runs_dir: Path, asked: str) -> Path:
    """The folder of the run that is running, or was written last. Raises UserError where there is none."""
    folders = run_folders(runs_dir)
    if not folders:
        do = "train one first: ranks train WORKLOAD, or name the folder of the runs: --runs-dir DIR"
        raise UserError(asked, f"there are no runs in {runs_dir}/", do)
    newest = max(folders, key=lambda folder: (bool(RunFolder(folder).in_use()), _written_at(folder)))
    RunFolder(newest).check_format()
    return newest


def _written_at(folder: Path) -> float:
    """When the run last wrote a row; 0 for a folder without rows."""
    found = [0.0]
    for name in (METRICS_FILE, SESSIONS_FILE, TELEMETRY_FILE):
        with suppress(OSError):
            found.append((folder / name).lstat().st_mtime)
    return max(found)
