"""logs/rankN.log of a run. The logs start in a staging folder, because the run folder appears with the first save."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ranks.engine.files.disk import real_folder, remove
from ranks.engine.runs.folder import RunFolder


class LogFolder:
    """The folder of the ranks' logs: a hidden staging folder next to the run folder, later `logs/` inside it.

    Who takes the run's lock removes the staging folders of earlier launchers.
    """

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.staging = run_dir.parent / f".{run_dir.name}.logs-{os.getpid()}"

    def of_rank(self, rank: int) -> Path:
        """The log file of a rank, to append to."""
        folder = real_folder(self.run_dir / "logs" if self.move_to_run() else self.staging)
        log = folder / f"rank{rank}.log"
        if os.path.lexists(log) and (log.is_symlink() or not log.is_file()):  # a FIFO would block
            remove(log)
        return log

    def move_to_run(self) -> bool:
        """Move the logs into the run folder; False while that does not exist. Open files can still be written."""
        if not RunFolder(self.run_dir).exists:
            return False
        if self.staging.is_dir():
            folder = real_folder(self.run_dir / "logs")
            for log in self.staging.iterdir():
                log.replace(folder / log.name)
            self.staging.rmdir()
        return True

    def close(self) -> None:
        """Remove the logs if no run folder was made."""
        if not self.move_to_run():
            shutil.rmtree(self.staging, ignore_errors=True)
