"""What the rows of metrics.jsonl say of a short run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ranks.engine.files.jsonl import number, read_rows
from ranks.engine.runs.folder import METRICS_FILE, RunFolder
from ranks.hardware.short_runs.job import NAME

PHASE, SUFFIX, SPEED, UPDATE = "time/", "_s", "_per_second", "/grad_norm"
Row = Mapping[str, Any]


def run_folder(folder: Path) -> Path:
    """The folder of a short run that was made in `folder`."""
    return RunFolder.of(folder, NAME).path


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of a short run that was made in `folder`."""
    return read_rows(run_folder(folder) / METRICS_FILE)


def value(row: Row, name: str) -> float:
    """The number under a name; 0 where there is none."""
    return number(row, name) or 0.0


def plain_s(row: Row) -> float:
    """Seconds of an iteration without its evaluation and without saves."""
    return value(row, "time/iteration_s") - value(row, "time/evaluation_s") - value(row, "time/save_s")


def period_s(before: Row, row: Row) -> float:
    """Seconds from the end of an iteration to the end of the next one, without its evaluation and without saves. Unlike
    `plain_s` they have all that happens between two iterations."""
    return value(row, "time_s") - value(before, "time_s") - value(row, "time/evaluation_s") - value(row, "time/save_s")


def first_update(rows: Sequence[Row]) -> int | None:
    """The index of the first row with an update; None without one. Self-play may fill its window before that."""
    return next((index for index, row in enumerate(rows) if any(name.endswith(UPDATE) for name in row)), None)


def items_of(rows: Sequence[Row]) -> dict[str, float]:
    """What an iteration processes on all ranks, by kind: samples, env_steps, ..."""
    names = [name for name in rows[0] if name.startswith(PHASE) and name.endswith(SPEED)]
    return {
        name.removeprefix(PHASE).removesuffix(SPEED): sum(value(row, name) * plain_s(row) for row in rows) / len(rows)
        for name in names
    }


def phases_of(rows: Sequence[Row], without: Sequence[str]) -> dict[str, float]:
    """Mean seconds of each phase of an iteration."""
    names = [name for name in rows[0] if name.startswith(PHASE) and name.endswith(SUFFIX)]
    phases = {name: name.removeprefix(PHASE).removesuffix(SUFFIX) for name in names}
    return {
        phase: sum(value(row, name) for row in rows) / len(rows)
        for name, phase in phases.items()
        if phase not in without
    }
