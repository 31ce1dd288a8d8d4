"""The page that a workload writes about a run: Markdown with pictures, in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import METRICS_FILE, RunFolder
from ranks.errors import UserError
from ranks.watch.report.metric_rows import MetricRows

PAGE = "report.md"
Draw = Callable[[MetricRows, Path], str | None]
"""Writes a picture, or returns why it draws none."""
Page = Callable[[RunFolder, Mapping[str, Any], MetricRows, Path], str]
"""The text of a page about a run with these settings; writes the pictures into the folder."""


def write_page(workload: str, run: str, runs_dir: Path, out: Path | None, page: Page) -> Path:
    """Write the page and its pictures; by default into the folder `report` of the run. Returns its path. Raises
    UserError: no such run, one of another workload or without rows, a folder that cannot be written."""
    asked = f"ranks {workload} report {run}"
    folder = find_folder(run, runs_dir, asked)
    settings = RunFolder(folder).read_settings()
    if settings["workload"] != workload:
        raise UserError(asked, f"a run of {settings['workload']}", f"name a run of {workload}")
    rows = MetricRows(read_rows(folder / METRICS_FILE))
    if not len(rows):
        found = f"{folder / METRICS_FILE} has no rows"
        raise UserError(asked, found, "wait until the first iteration has ended")
    place = out or folder / "report"
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / PAGE).write_text(page(RunFolder(folder), settings, rows, place), encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"to write {place}", error.strerror or str(error), "give a writable folder with --out"
        ) from None
    return place / PAGE


def pictures(drawn: Mapping[str, tuple[str, Draw]], rows: MetricRows, place: Path) -> list[str]:
    """The parts of a page with the pictures that could be drawn. `drawn`: file name without .png -> heading, and what
    draws it. A picture that is not drawn is removed, and its part says why."""
    parts: list[str] = []
    for name, (heading, draw) in drawn.items():
        path = place / f"{name}.png"
        path.unlink(missing_ok=True)
        missing = draw(rows, path)
        parts += [f"## {heading}", f"![{heading}]({path.name})" if missing is None else f"Not drawn: {missing}."]
    return parts


def newest_values(rows: MetricRows, names: Mapping[str, str]) -> str:
    """A table of the newest value of some metrics. `names`: metric -> label."""
    values = {label: (name, rows.newest(name)) for name, label in names.items()}
    lines = [f"| {label} | {value:,.4g} | `{name}` |" for label, (name, value) in values.items() if value is not None]
    return "\n".join(["| newest value | | metric |", "|---|---:|---|", *lines])
