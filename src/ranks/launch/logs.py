"""logs/rankN.log of a run. The logs start in a staging folder, because the run folder appears with the first save."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class LogFolder:
    """The folder of the ranks' logs: a hidden staging folder next to the run folder, later `logs/` inside it.

    Its creator holds the run's lock, so it may remove the staging folders of earlier launchers.
    """

    def __init__(self, run_dir: Path) -> None:
        for old in run_dir.parent.glob(f".{run_dir.name}.logs-*"):
            shutil.rmtree(old, ignore_errors=True)
        self.run_dir = run_dir
        self.staging = run_dir.parent / f".{run_dir.name}.logs-{os.getpid()}"

    def of_rank(self, rank: int) -> Path:
        """The log file of a rank, to append to."""
        folder = self.run_dir / "logs" if self.move_to_run() else self.staging
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"rank{rank}.log"

    def move_to_run(self) -> bool:
        """Move the logs into the run folder; False while that does not exist. Open files can still be written."""
        if not self.run_dir.is_dir():
            return False
        if self.staging.is_dir():
            (self.run_dir / "logs").mkdir(exist_ok=True)
            for log in self.staging.iterdir():
                log.replace(self.run_dir / "logs" / log.name)
            self.staging.rmdir()
        return True

    def close(self) -> None:
        """Remove the logs if no run folder was made."""
        if not self.move_to_run():
            shutil.rmtree(self.staging, ignore_errors=True)
