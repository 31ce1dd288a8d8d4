"""`ranks runs`: a table of the runs in runs/."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ranks.cli.flags.parse import parse
from ranks.cli.saved.run_folder import in_use, last_rows, run_folders
from ranks.cli.units import age, size
from ranks.engine.config_file import read_object
from ranks.engine.runs.folder import CONFIG_FILE, EVENTS_FILE, METRICS_FILE, SESSIONS_FILE

MAIN_METRICS = ("val/episode_reward", "rollout/episode_reward", "val/loss", "train/loss")
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
    """What the files of a run folder say."""
    settings = read_object(folder / CONFIG_FILE, f"ranks runs ({folder.name})")
    metrics = folder / METRICS_FILE
    rows = list(last_rows(metrics))
    plans = (event for event in last_rows(folder / EVENTS_FILE) if event.get("event") == "plan")
    goal = next(plans, settings.get("config", {})).get("iterations")
    metric = next((name for name in MAIN_METRICS if newest(rows, name) is not None), None)
    sessions = list(last_rows(folder / SESSIONS_FILE))
    written_s = metrics.stat().st_mtime if metrics.exists() else folder.stat().st_mtime
    return RunInfo(
        name=folder.name,
        workload=Path(str(settings.get("workload"))).stem,
        iterations=int(rows[0].get("iteration", 0)) if rows else 0,
        goal=goal if isinstance(goal, int) else None,
        metric=metric,
        value=newest(rows, metric) if metric else None,
        train_loss=newest(rows, "train/loss"),
        val_loss=newest(rows, "val/loss"),
        ranks=next((session["ranks"] for session in sessions if isinstance(session.get("ranks"), int)), None),
        mode="exact" if settings.get("engine", {}).get("exact") else "fast",
        state="running" if in_use(folder) else last_state(sessions),
        size_bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        age_s=max(0.0, time.time() - written_s),
    )


def newest(rows: Sequence[dict[str, Any]], name: str) -> float | None:
    """The latest value of a metric, if there is one. `rows`: newest first."""
    return next((float(row[name]) for row in rows if isinstance(row.get(name), int | float)), None)


def last_state(sessions: Sequence[dict[str, Any]]) -> str:
    """How the last session ended; one that wrote no end was killed. `sessions`: newest first."""
    event = str(sessions[0].get("event", "unknown")) if sessions else "unknown"
    return "killed" if event in ("opened", "resumed") else event


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
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if name in LEFT_ALIGNED else cell.rjust(width)
            for name, cell, width in zip(COLUMNS, line, widths, strict=True)
        ).rstrip()
        for line in lines
    )
