"""Finds runs by name or path. Imports no torch."""

from __future__ import annotations

import os
from pathlib import Path

from ranks.engine.runs.folder import CONFIG_FILE, RUN_FILE, RunFolder
from ranks.errors import UserError, nearest


def find_folder(run: str, runs_dir: Path, asked: str) -> Path:
    """The folder of a run given by its name under runs/ or by its path. Raises UserError with the
    nearest name."""
    for folder in (runs_dir / run, Path(run)):
        if os.path.lexists(folder / CONFIG_FILE) or RunFolder(folder).exists:
            RunFolder(folder).check_format()
            return folder
    names = [folder.name for folder in run_folders(runs_dir)]
    listed = "see `ranks runs` for the runs that exist" if names else "train one first: ranks train WORKLOAD"
    for folder in (runs_dir / run, Path(run)):
        if os.path.isdir(folder):  # False for a name that no folder can have
            raise UserError(asked, f"{folder} is no run folder: it has no {RUN_FILE}", nearest(run, names, listed))
    raise UserError(asked, f"no run {run} in {runs_dir}/, and no run folder at that path", nearest(run, names, listed))


def run_folders(runs_dir: Path) -> list[Path]:
    """All run folders, by name; damaged ones too."""
    found = {path.parent for name in (CONFIG_FILE, RUN_FILE) for path in runs_dir.glob(f"*/{name}")}
    return sorted(folder for folder in found if not folder.name.startswith("."))
