"""`ranks chess-spiking report`: what a run has played and learned, as one page with plots."""

from __future__ import annotations

from pathlib import Path

from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import METRICS_FILE, RunFolder
from ranks.errors import UserError

PAGE = "report.md"


def report(run: str, /, *, out: Path | None = None, runs_dir: Path = Path("runs")) -> int:
    """Write a page with plots: rating, games, openings, spike rates, a sample game. Also while the run trains.

    Args:
        run: A run's name or folder.
        out: Output folder; by default the folder `report` of the run.
        runs_dir: The folder of the runs.
    """
    asked = f"ranks chess-spiking report {run}"
    folder = find_folder(run, runs_dir, asked)
    settings = RunFolder(folder).read_settings()
    if settings["workload"] != "chess-spiking":
        raise UserError(asked, f"a run of {settings['workload']}", "name a run of chess-spiking")
    from ranks.workloads.chess_spiking.report.page import page
    from ranks.workloads.chess_spiking.report.rows import MetricRows

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
    print(f"written: {place / PAGE} and its pictures")
    return 0
