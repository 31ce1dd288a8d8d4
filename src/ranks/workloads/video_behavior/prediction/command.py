"""The command `ranks video-behavior predict`: label videos with a trained net."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ranks.errors import UserError


def predict(
    run: str,
    /,
    *videos: Path,
    out: Path = Path("predictions"),
    overlay: bool = False,
    least_certain: int = 0,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    runs_dir: Path = Path("runs"),
) -> int:
    """Label every frame of videos with the net of a run.

    Args:
        run: The name of a run under runs/, or the path of its folder. It must have an export.
        videos: Video files, or a dataset.csv or its folder for a whole study.
        out: The folder for the files of each video, and summary.csv.
        overlay: Also write each video with the label in it.
        least_certain: Write so many bouts that the net is least sure of as a BORIS project, for
            the next round of labelling.
        device: auto takes a GPU where there is one.
        runs_dir: The folder of the run folders.

    Writes for each video a table by frame with probabilities, BORIS events and an ethogram, and a
    BORIS project of all videos. The same command again goes on with the videos that are missing.
    """
    asked = f"ranks video-behavior predict {run}"
    if not videos:
        raise UserError(asked, "no video was named", "name video files, or a dataset.csv")
    if least_certain < 0:
        raise UserError(f"--least-certain {least_certain}", "a number of bouts is 0 or more", "change it")
    from ranks.workloads.video_behavior.prediction.predict import predict_videos

    return predict_videos(run, runs_dir, videos, out, overlay=overlay, num_uncertain=least_certain, device=device)
