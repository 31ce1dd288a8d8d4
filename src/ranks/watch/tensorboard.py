"""The TensorBoard files of a run, written from metrics.jsonl by a thread, so that no training step waits for them.

The files are written with TensorBoard's own messages, which need neither torch nor TensorFlow. When
the run resumes, metrics.jsonl is truncated, and the folder tensorboard/ is written again from the start.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ranks.engine.files.disk import remove
from ranks.engine.files.jsonl import number
from ranks.watch.records import record
from ranks.watch.tail import JsonlTail

POLL_S = 2.0


class TensorBoardWriter:
    """`with TensorBoardWriter(run_dir):` copies metrics.jsonl to tensorboard/ until the block ends.

    A failure ends the copying, never the run.
    """

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self._tail = JsonlTail(run_dir / "metrics.jsonl")
        self._file: EventFile | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="ranks-tensorboard", daemon=True)

    def __enter__(self) -> TensorBoardWriter:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._thread.join(timeout=10.0)

    def _follow(self) -> None:
        try:
            while not self._closing.wait(POLL_S):
                self.refresh()
            while self.refresh():
                pass
            self.close()
        except Exception as error:
            print(
                f"tensorboard/ is no longer written ({type(error).__name__}: {error}); the run continues",
                file=sys.stderr,
            )

    def refresh(self) -> bool:
        """Write the new rows. False where there were none."""
        new = self._tail.read()
        if new.truncated:
            self.close()
        if not new.rows:
            return False
        if self._file is None:
            self._file = EventFile.create(self.run_dir / "tensorboard")
        for row in new.rows:
            self._file.add(row)
        self._file.flush()
        return True

    def close(self) -> None:
        """Close the event file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class EventFile:
    """One TensorBoard file of scalars."""

    def __init__(self, path: Path) -> None:
        self._event: Any = import_module("tensorboard.compat.proto.event_pb2").Event
        self._summary: Any = import_module("tensorboard.compat.proto.summary_pb2").Summary
        self._file = path.open("wb")
        self._write(wall_time=time.time(), file_version="brain.Event:2")

    @classmethod
    def create(cls, folder: Path) -> EventFile:
        """A new file in `folder`; what was in the folder is removed."""
        if folder.is_dir():
            remove(folder)
        folder.mkdir()
        return cls(folder / f"events.out.tfevents.{time.time_ns()}.ranks")

    def add(self, row: Mapping[str, Any]) -> None:
        """Write the numbers of one row of metrics.jsonl at its iteration."""
        iteration = row.get("iteration")
        if not isinstance(iteration, int) or not 0 <= iteration < 2**63:
            return
        found = {name: number(row, name) for name in row if name not in ("iteration", "time_s")}
        numbers = {name: value for name, value in found.items() if value is not None}
        values = [self._summary.Value(tag=tag, simple_value=value) for tag, value in numbers.items()]
        self._write(wall_time=_wall_time(row), step=iteration, summary=self._summary(value=values))

    def _write(self, **event: Any) -> None:
        self._file.write(record(self._event(**event).SerializeToString()))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _wall_time(row: Mapping[str, Any]) -> float:
    value = number(row, "time_s")
    return value if value is not None and value > 1e9 else time.time()
