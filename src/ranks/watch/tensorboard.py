"""tensorboard/ of a run, drawn from metrics.jsonl by a thread: nothing of it happens in a step.

The files are in TensorBoard's own format, written through its record writer and its messages, which need neither torch
nor TensorFlow. When the run resumes, metrics.jsonl is cut back, and the folder is drawn afresh.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ranks.watch.tail import Tail

POLL_S = 2.0


class Board:
    """`with Board(run_dir):` follows metrics.jsonl until it is left; a failure ends the drawing, never the run."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self._tail = Tail(run_dir / "metrics.jsonl")
        self._file: EventFile | None = None
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="ranks-board", daemon=True)

    def __enter__(self) -> Board:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._leaving.set()
        self._thread.join(timeout=10.0)

    def _follow(self) -> None:
        try:
            while not self._leaving.wait(POLL_S):
                self.refresh()
            while self.refresh():
                pass
            self.close()
        except Exception as error:
            print(
                f"tensorboard/ is no longer drawn ({type(error).__name__}: {error}); the run goes on", file=sys.stderr
            )

    def refresh(self) -> bool:
        """Draw what is new. False where nothing was."""
        news = self._tail.read()
        if news.cut:
            self.close()
        if not news.rows:
            return False
        if self._file is None:
            self._file = EventFile.afresh(self.run_dir / "tensorboard")
        for row in news.rows:
            self._file.add(row)
        self._file.flush()
        return True

    def close(self) -> None:
        """Finish the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class EventFile:
    """One file of scalar events."""

    def __init__(self, path: Path) -> None:
        self._event: Any = import_module("tensorboard.compat.proto.event_pb2").Event
        self._summary: Any = import_module("tensorboard.compat.proto.summary_pb2").Summary
        self._records: Any = import_module("tensorboard.summary.writer.record_writer").RecordWriter(path.open("wb"))
        self._records.write(self._event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())

    @classmethod
    def afresh(cls, folder: Path) -> EventFile:
        """A new file in an emptied folder."""
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
        return cls(folder / f"events.out.tfevents.{time.time_ns()}.ranks")

    def add(self, row: Mapping[str, Any]) -> None:
        """The numbers of one row of metrics.jsonl, at its iteration."""
        iteration = row.get("iteration")
        if not isinstance(iteration, int):
            return
        numbers = {k: v for k, v in row.items() if k not in ("iteration", "time_s") and isinstance(v, int | float)}
        values = [self._summary.Value(tag=tag, simple_value=value) for tag, value in numbers.items()]
        summary = self._summary(value=values)
        self._records.write(self._event(wall_time=_wall_time(row), step=iteration, summary=summary).SerializeToString())

    def flush(self) -> None:
        self._records.flush()

    def close(self) -> None:
        self._records.close()


def _wall_time(row: Mapping[str, Any]) -> float:
    value = row.get("time_s")
    return float(value) if isinstance(value, int | float) and value > 1e9 else time.time()
