"""`ranks chess-value report`: what a run has labelled, learned and reached, as one page with plots."""

from __future__ import annotations

from pathlib import Path


def report(run: str, /, *, out: Path | None = None, runs_dir: Path = Path("runs")) -> int:
    """Write a page with plots: rating, scores, losses, calibration, labels and their speed. Also while the run trains.

    Args:
        run: A run's name or folder.
        out: Output folder; by default the folder `report` of the run.
        runs_dir: The folder of the runs.
    """
    from ranks.watch.report.workload_page import write_page
    from ranks.workloads.chess_value.report.page import page

    print(f"written: {write_page('chess-value', run, runs_dir, out, page)} and its pictures")
    return 0
