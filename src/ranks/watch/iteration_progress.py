"""How far the present iteration of a run is, from its progress.json."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ranks.engine.files.jsonl import number
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.engine.runs.folder import PROGRESS_FILE
from ranks.errors import clean

FRESH_S = 5.0
"""What has not changed for longer is over, or belongs to a run that was killed."""


class IterationProgress:
    """Reads progress.json of one run again and again."""

    def __init__(self, run_dir: Path, clock: Callable[[], float]) -> None:
        self._path, self._clock = run_dir / PROGRESS_FILE, clock
        self._text, self._changed_s = self._read(), -FRESH_S

    def read(self) -> str:
        """'iteration 3: games 27%', counted from 1; empty where nothing new was written lately."""
        text = self._read()
        if text != self._text:
            self._text, self._changed_s = text, self._clock()
        return text if self._clock() - self._changed_s < FRESH_S else ""

    def _read(self) -> str:
        try:
            row = read_object(self._path)
        except (DamagedFile, OSError):  # none, or it is being replaced
            return ""
        iteration, share, part = number(row, "iteration"), number(row, "share"), row.get("part")
        if iteration is None or share is None or not isinstance(part, str):
            return ""
        return f"iteration {iteration + 1:,.0f}: {clean(part)} {share:.0%}"
