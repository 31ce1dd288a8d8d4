"""What commands have finished in a folder of predictions.

NAME.done.json       written last: what the files of a video were made from, its bouts, its rows of the summary
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.events import Event
from ranks.workloads.video_behavior.prediction.summary import BehaviorTime, VideoSummary
from ranks.workloads.video_behavior.prediction.written import PredictedVideo, replace_text
from ranks.workloads.video_behavior.study.study import StudyVideo

DONE = ".done.json"


@dataclass(frozen=True)
class DoneVideo:
    """A video that is predicted. `made_from`: the net and what else its files depend on."""

    made_from: dict[str, Any]
    video: PredictedVideo
    summaries: tuple[VideoSummary, ...]

    def write(self, out: Path) -> None:
        """Raises OSError."""
        replace_text(out / f"{self.video.name}{DONE}", json.dumps(asdict(self)))

    @classmethod
    def read(cls, out: Path, name: str) -> DoneVideo | None:
        """None where there is none, or it is damaged or of an older version."""
        try:
            content = read_object(out / f"{name}{DONE}")
            return cls(content["made_from"], _video(content["video"]), tuple(map(_summary, content["summaries"])))
        except (DamagedFile, OSError, KeyError, TypeError):
            return None


def done_videos(out: Path) -> Iterator[DoneVideo]:
    """All of a folder, by name."""
    for path in sorted(out.glob(f"*{DONE}")):
        if (found := DoneVideo.read(out, path.name.removesuffix(DONE))) is not None:
            yield found


def check_names(videos: Mapping[str, StudyVideo], out: Path, asked: str) -> None:
    """Raises UserError where a name already belongs to the files of another video, whose labels would be lost."""
    for name, row in videos.items():
        earlier = DoneVideo.read(out, name)
        if earlier is None or earlier.video.video == str(row.video.absolute()):
            continue
        if Path(earlier.video.video).exists():
            found = f"the files {out / name}.* are those of {earlier.video.video}, not of {row.video}"
            raise UserError(asked, found, "give another folder with --out")


def _video(given: Any) -> PredictedVideo:
    for event in given["events"]:
        event["modifiers"] = tuple(event["modifiers"])
    given["events"] = tuple(Event(**event) for event in given["events"])
    given["certainty"] = tuple(given["certainty"])
    return PredictedVideo(**given)


def _summary(given: Any) -> VideoSummary:
    given["times"] = tuple(BehaviorTime(**time) for time in given["times"])
    return VideoSummary(**given)
