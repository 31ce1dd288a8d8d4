"""The command `ranks video-behavior report`: one HTML page about a trained net."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ranks.errors import UserError


def report(
    run: str,
    /,
    *others: str,
    split: Literal["test", "val"] = "test",
    out: Path | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    runs_dir: Path = Path("runs"),
) -> int:
    """Write one HTML page about a trained net, from animals that it has not seen. It needs no network.

    Args:
        run: The name of a run under runs/, or the path of its folder. It must have an export.
        others: Runs on fewer or more labelled videos, for the learning curve: their nets label the
            same animals.
        split: The animals that are shown: test, or val while you still choose settings.
        out: The folder of the page and its pictures; by default report/ in the folder of the run.
        device: auto takes a GPU where there is one.
        runs_dir: The folder of the run folders.

    The page has an ethogram of person and net, the confusion matrix, precision and recall,
    calibration, the time budget of animals and groups, the worst confusions and a learning curve.
    """
    asked = f"ranks video-behavior report {run}"
    try:
        import matplotlib  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ModuleNotFoundError as missing:
        raise UserError(asked, "the package matplotlib is not installed", "pip install 'ranks[report]'") from missing
    from ranks.workloads.video_behavior.report.write import write_report

    print(f"written: {write_report(run, others, runs_dir, split, out, device, asked)}, and its pictures")
    return 0
