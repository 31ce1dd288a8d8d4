"""A small study with nothing wrong: four animals, of whom each licks once in a video of 24 frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from tests.video_behavior.video.videos import write_square

FPS, FRAMES = 25.0, 24
LICK = Event("lick", 0.2, 0.6)
ROWS = "video,annotation,animal,group,fps,offset_s,split\n"
SPLITS = ("train", "train", "val", "test")


def lab(folder: Path, splits: Sequence[str] = SPLITS) -> Path:
    """The folder, with a video and its events for each split. The split "" is left to `ranks`."""
    rows = [ROWS]
    for number, split in enumerate(splits, 1):
        write_square(folder / f"m{number}.mp4", FRAMES, 32, 32)
        annotate(folder, number, LICK)
        rows.append(f"m{number}.mp4,m{number}.tsv,m{number},,,,{split}\n")
    (folder / "dataset.csv").write_text("".join(rows))
    return folder


def annotate(folder: Path, number: int, *events: Event, fps: float = FPS) -> None:
    """Write the events of an animal. `fps`: what the file says of its video."""
    name = f"m{number}.mp4"
    write_boris_events(folder / f"m{number}.tsv", [Annotation(name, events, fps, FRAMES / FPS, name)])
