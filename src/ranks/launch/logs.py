"""logs/rankN.log of a run. A run folder appears only with its first checkpoint, so logs begin beside it and move in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class LogFolder:
    """`staged` is a hidden sibling of the run folder; once that exists, the logs stand in its `logs/`.

    Whoever makes one holds the run's lock: what an earlier launcher left behind is removed.
    """

    def __init__(self, run_dir: Path) -> None:
        for old in run_dir.parent.glob(f".{run_dir.name}.logs-*"):
            shutil.rmtree(old, ignore_errors=True)
        self.run_dir = run_dir
        self.staged = run_dir.parent / f".{run_dir.name}.logs-{os.getpid()}"

    def of_rank(self, rank: int) -> Path:
        """The log to append to now."""
        folder = self.run_dir / "logs" if self.settle() else self.staged
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"rank{rank}.log"

    def settle(self) -> bool:
        """Move the logs into the run folder if it is there. Open files move along."""
        if not self.run_dir.is_dir():
            return False
        if self.staged.is_dir():
            (self.run_dir / "logs").mkdir(exist_ok=True)
            for log in self.staged.iterdir():
                log.replace(self.run_dir / "logs" / log.name)
            self.staged.rmdir()
        return True

    def close(self) -> None:
        """Without a run folder there is nothing to keep them for."""
        if not self.settle():
            shutil.rmtree(self.staged, ignore_errors=True)
