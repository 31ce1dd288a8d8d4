"""`ranks compare RUN RUN ...`: in which settings runs differ, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ranks.cli.columns import aligned
from ranks.cli.flags.parse import parse
from ranks.engine.files.jsonl import last_rows, number
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import METRICS_FILE, RunFolder
from ranks.errors import UserError, clean
from ranks.progress import duration

SHOWN = (
    "train/loss",
    "val/",
    "match/",
    "rollout/episode_reward",
    "time/samples_per_second",
    "time/env_steps_per_second",
)
"""Metrics that are compared, by the beginning of their names."""
UNINTERESTING = ("engine.name", "engine.runs_dir")


@dataclass(frozen=True)
class CompareFlags:
    """Print the settings in which runs differ, and their newest metrics: ranks compare RUN RUN ... [FLAGS].

    RUN is the name of a run, or the path of its folder."""

    runs_dir: Path = Path("runs")
    """The folder of the run folders."""
    json: bool = False
    """Print JSON in place of the table."""


def compare(argv: Sequence[str]) -> int:
    """Print one column for each run."""
    runs, others = split_runs(argv)
    flags = parse(CompareFlags, others, prog="ranks compare")
    asked = " ".join(["ranks compare", *runs])
    if len(runs) < 2:
        raise UserError(asked, f"{len(runs)} runs are nothing to compare", "name two or more; see ranks runs")
    folders = [find_folder(run, flags.runs_dir, asked) for run in runs]
    columns = {
        folder.name if len({f.name for f in folders}) == len(folders) else str(folder): folder for folder in folders
    }
    rows = [*setting_rows(columns), *metric_rows(columns)]
    if len(columns) < 2:
        raise UserError(asked, "it is one run", "name two or more; see ranks runs")
    if flags.json:
        print(
            json.dumps([{"name": name, **dict(zip(columns, values, strict=True))} for name, values in rows], indent=2)
        )
        return 0
    head = ["", *(clean(name) for name in columns)]
    print(aligned([head, *([name, *values] for name, values in rows)], left=[0]))
    return 0


def split_runs(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """(runs, flags with their values): flags may stand before, between and after runs."""
    runs, others = list[str](), list[str]()
    for word, before in zip(argv, ["", *argv], strict=False):
        is_flag = word.startswith("-") or before == "--runs-dir"
        (others if is_flag else runs).append(word)
    return runs, others


def setting_rows(columns: Mapping[str, Path]) -> list[tuple[str, list[str]]]:
    """The settings that are not the same in all runs."""
    settings = [flat(RunFolder(folder).read_settings()) for folder in columns.values()]
    names = sorted({name for setting in settings for name in setting} - {*UNINTERESTING})
    rows = [(name, [shown(setting.get(name)) for setting in settings]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def metric_rows(columns: Mapping[str, Path]) -> list[tuple[str, list[str]]]:
    """Iterations, time, and the newest value of each metric that is compared."""
    newest: list[dict[str, Any]] = []
    for folder in columns.values():
        found: dict[str, Any] = {}
        for row in last_rows(folder / METRICS_FILE):
            for name in row:
                value = number(row, name)
                if name not in found and value is not None:
                    found[name] = value
        newest.append(found)
    rows = [
        ("iterations", [f"{int(found.get('iteration', 0)):,}" for found in newest]),
        ("time", [duration(found.get("time_s")) or "-" for found in newest]),
    ]
    names = sorted({name for found in newest for name in found if name.startswith(SHOWN)})
    return [*rows, *((name, [shown(found.get(name)) for found in newest]) for name in names)]


def flat(tree: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """{'config': {'lr': 1}} -> {'config.lr': 1}."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        inner = f"{name}.{key}" if name else key
        found |= flat(cast("dict[str, Any]", value), inner) if isinstance(value, dict) else {inner: value}
    return found


def shown(value: Any) -> str:
    """A value in a cell."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else clean(str(value))
