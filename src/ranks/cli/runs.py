"""`ranks runs`: a table of what stands in runs/."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ranks.cli.parse import parse
from ranks.cli.run_folder import folders, in_use, rows
from ranks.engine.config_file import read_object
from ranks.engine.runs.folder import CONFIG_FILE, METRICS_FILE, SESSIONS_FILE


@dataclass(frozen=True)
class Flags:
    """List the runs in runs/: how far each came, its last losses, and whether it is running."""

    runs_dir: Path = Path("runs")
    """Where run folders stand."""
    json: bool = False
    """Print JSON in place of the table."""


@dataclass(frozen=True)
class Line:
    """One run."""

    name: str
    workload: str
    iterations: int
    train_loss: float | None
    val_loss: float | None
    state: str
    size_bytes: int
    age_s: float
    """Since its last row of metrics."""


def runs(argv: Sequence[str]) -> int:
    """Print one line per run."""
    flags = parse(Flags, argv, prog="ranks runs")
    lines = [describe(folder) for folder in folders(flags.runs_dir)]
    if flags.json:
        print(json.dumps([asdict(line) for line in lines], indent=2))
    elif lines:
        print(table(lines))
    else:
        print(f"no runs in {flags.runs_dir}/ yet; train one: ranks train graph-coloring")
    return 0


def describe(folder: Path) -> Line:
    """What a run folder says about itself."""
    settings = read_object(folder / CONFIG_FILE, f"ranks runs ({folder.name})")
    metrics = folder / METRICS_FILE
    recent = list(rows(metrics))
    written_s = metrics.stat().st_mtime if metrics.exists() else folder.stat().st_mtime
    return Line(
        name=folder.name,
        workload=Path(str(settings.get("workload"))).stem,
        iterations=int(recent[0].get("iteration", 0)) if recent else 0,
        train_loss=newest(recent, "train/loss"),
        val_loss=newest(recent, "val/loss"),
        state=state(folder),
        size_bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        age_s=max(0.0, time.time() - written_s),
    )


def newest(recent: Sequence[dict[str, Any]], key: str) -> float | None:
    """The latest value of a metric, if there is one."""
    return next((float(row[key]) for row in recent if isinstance(row.get(key), int | float)), None)


def state(folder: Path) -> str:
    """running, or how its last session ended; a session that wrote no end was killed."""
    if in_use(folder):
        return "running"
    last = next(rows(folder / SESSIONS_FILE), dict[str, Any]())
    event = str(last.get("event", "unknown"))
    return "killed" if event in ("opened", "resumed") else event


def table(lines: Sequence[Line]) -> str:
    """Columns as wide as they need to be, numbers to the right."""
    head = ["run", "workload", "iterations", "train loss", "val loss", "state", "size", "last row"]
    cells = [head] + [
        [
            line.name,
            line.workload,
            f"{line.iterations:,}",
            number(line.train_loss),
            number(line.val_loss),
            line.state,
            f"{line.size_bytes / 1e6:.1f} MB",
            f"{age(line.age_s)} ago",
        ]
        for line in lines
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    left = (0, 1, 5)
    return "\n".join(
        "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    )


def number(value: float | None) -> str:
    """Four digits, or a dash."""
    return "-" if value is None else f"{value:.4g}"


def age(seconds: float) -> str:
    """90 -> '1m'."""
    for unit, length_s in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length_s:
            return f"{seconds / length_s:.0f}{unit}"
    return f"{seconds:.0f}s"
