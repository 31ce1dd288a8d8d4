"""`ranks runs`: a table of the runs in runs/."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from ranks.cli.columns import aligned
from ranks.cli.flags.parse import parse
from ranks.cli.units import age, size
from ranks.engine.files.jsonl import last_rows, number
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.engine.runs.find_run import run_folders
from ranks.engine.runs.folder import CONFIG_FILE, EVENTS_FILE, METRICS_FILE, SESSIONS_FILE, RunFolder
from ranks.errors import clean
from ranks.watch.run_facts import last_state

MAIN_METRICS = ("match/rating", "val/episode_reward", "rollout/episode_reward", "val/loss", "train/loss")
"""The table shows the first of these that a run has: the reward of an episode, or the loss."""
COLUMNS = ("run", "workload", "iterations", "metric", "value", "ranks", "mode", "state", "size", "last row")
LEFT_ALIGNED = ("run", "workload", "metric", "mode", "state")


@dataclass(frozen=True)
class RunsFlags:
    """List the runs in runs/: iterations done, reward or loss, number of ranks, and whether it is
    running."""

    runs_dir: Path = Path("runs")
    """The folder of the run folders."""
    json: bool = False
    """Print JSON in place of the table."""


@dataclass(frozen=True)
class RunInfo:
    """One run."""

    name: str
    workload: str
    iterations: int
    goal: int | None
    """Iterations after which it is finished."""
    metric: str | None
    value: float | None
    """The newest value of `metric`."""
    train_loss: float | None
    val_loss: float | None
    ranks: int | None
    """Of its last session."""
    mode: str
    """exact or fast."""
    state: str
    size_bytes: int
    age_s: float
    """Since its last row of metrics."""


def runs(argv: Sequence[str]) -> int:
    """Print one line per run."""
    flags = parse(RunsFlags, argv, prog="ranks runs")
    found = [describe(folder) for folder in run_folders(flags.runs_dir)]
    if flags.json:
        print(json.dumps([asdict(run) for run in found], indent=2))
    elif found:
        print(table(found))
    else:
        print(f"no runs in {flags.runs_dir}/ yet; train one: ranks train graph-coloring")
    return 0


def describe(folder: Path) -> RunInfo:
    """What the files of a run folder say; what cannot be read is left out."""
    try:
        settings, problem = read_object(folder / CONFIG_FILE), ""
    except DamagedFile as damage:
        settings, problem = {}, str(damage)
    metrics = folder / METRICS_FILE
    rows = list(last_rows(metrics))
    plans = (event for event in last_rows(folder / EVENTS_FILE) if event.get("event") == "plan")
    goal = next(plans, part(settings, "config")).get("iterations")
    metric = next((name for name in MAIN_METRICS if newest(rows, name) is not None), None)
    sessions = list(last_rows(folder / SESSIONS_FILE))
    in_use = RunFolder(folder).in_use()
    ended = clean(last_state(sessions, in_use))
    size_bytes, written_s = size_and_time(folder, metrics)
    return RunInfo(
        name=clean(folder.name),
        workload=clean(Path(str(settings.get("workload", "-"))).stem),
        iterations=int(newest(rows[:1], "iteration") or 0),
        goal=goal if isinstance(goal, int) else None,
        metric=metric,
        value=newest(rows, metric) if metric else None,
        train_loss=newest(rows, "train/loss"),
        val_loss=newest(rows, "val/loss"),
        ranks=next((session["ranks"] for session in sessions if isinstance(session.get("ranks"), int)), None),
        mode="exact" if part(settings, "engine").get("exact") else "fast",
        state="running" if in_use else f"damaged ({problem})" if problem else ended,
        size_bytes=size_bytes,
        age_s=max(0.0, time.time() - written_s),
    )


def part(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object under a name of the settings; empty where there is none."""
    found = settings.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def size_and_time(folder: Path, metrics: Path) -> tuple[int, float]:
    """The bytes of all files in a folder, and when `metrics` was written; a running run may remove
    files meanwhile."""
    num_bytes = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                num_bytes += os.lstat(os.path.join(place, name)).st_size
    for path in (metrics, folder):
        with contextlib.suppress(OSError):
            return num_bytes, path.lstat().st_mtime
    return num_bytes, time.time()


def newest(rows: Sequence[dict[str, Any]], name: str) -> float | None:
    """The latest value of a metric, if there is one. `rows`: newest first."""
    return next((value for row in rows if (value := number(row, name)) is not None), None)


def table(found: Sequence[RunInfo]) -> str:
    """One line per run, in columns as wide as they need to be; numbers are aligned to the right."""
    lines = [
        COLUMNS,
        *(
            (
                run.name,
                run.workload,
                f"{run.iterations:,}" + (f" of {run.goal:,}" if run.goal is not None else ""),
                run.metric or "-",
                "-" if run.value is None else f"{run.value:.4g}",
                "-" if run.ranks is None else str(run.ranks),
                run.mode,
                run.state,
                size(run.size_bytes),
                f"{age(run.age_s)} ago",
            )
            for run in found
        ),
    ]
    return aligned(lines, left=[column for column, name in enumerate(COLUMNS) if name in LEFT_ALIGNED])
