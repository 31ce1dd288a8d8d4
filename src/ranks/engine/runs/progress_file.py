"""progress.json of a run: how far a part of the present iteration is, for those who watch.

    {"iteration": 3, "part": "games", "share": 0.27}

The first rank replaces it about once a second, and only where an iteration has parts that take that long. It is no part
of the run's state: no checkpoint names it, and what cannot be written is left out.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ranks.engine.files.disk import remove
from ranks.engine.runs.folder import PROGRESS_FILE, TEMPORARY

EVERY_S = 1.0


class ProgressFile:
    """Writes the progress of one run."""

    def __init__(self, run_dir: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._temporary = run_dir / PROGRESS_FILE, run_dir / f"{TEMPORARY}{PROGRESS_FILE}"
        self._clock, self._written_s = clock, clock()

    def write(self, iteration: int, part: str, share: float) -> None:
        """Write how far a part of the present iteration is, from 0 to 1, unless that was done in the last second."""
        if self._clock() - self._written_s < EVERY_S:
            return
        self._written_s = self._clock()
        with suppress(OSError):
            content = json.dumps({"iteration": iteration, "part": part, "share": round(min(1.0, share), 4)})
            descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(content)
            os.replace(self._temporary, self._path)

    def close(self) -> None:
        """Remove it: the run has ended."""
        remove(self._path)
