"""Decodes one video into a store, as a process of its own: a file that breaks the decoder ends only this process.

    python -m ranks.workloads.video_behavior.video.store.decode_part '{"video": ..., "folder": ..., "key": ..., ...}'

It prints a line of JSON after each block, `{"frames": 640}`, and `{"flushing": true}` before it waits for the disk. It
ends with the process that started it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ranks.die_with_parent import die_with
from ranks.engine.files.disk import NOTHING_SAVED, remove, sync_folder, writing
from ranks.errors import UserError
from ranks.workloads.video_behavior.video.decode import open_video
from ranks.workloads.video_behavior.video.picture import Crop, Fit, Picture
from ranks.workloads.video_behavior.video.store.frame_store import words_of
from ranks.workloads.video_behavior.video.store.part import HEAD_BYTES, StorePart, npy_head, temporary_file

FAILED = 2
"""The exit code where the video is bad or the disk is full; the line before it says why."""


@dataclass(frozen=True)
class PartTask:
    """One video to decode. `parent`: the process that asks."""

    video: str
    folder: str
    key: str
    size: tuple[int, int]
    fit: Fit
    crop: Crop | None
    threads: int
    parent: int

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> PartTask:
        given: dict[str, Any] = json.loads(text)
        given["size"] = tuple(given["size"])
        given["crop"] = Crop(*given["crop"]) if given["crop"] else None
        return cls(**given)


def decode_part(task: PartTask) -> None:
    """Write the .npy and then the .json of a video. Raises UserError.

    Frames go to a temporary file as they are decoded, so memory holds one block.
    """
    folder, video = Path(task.folder), Path(task.video)
    path, temporary = folder / f"{task.key}.npy", temporary_file(folder, task.key)
    times_s, digest = list[float](), hashlib.sha256()
    picture = Picture(task.size, task.fit, task.crop)
    try:
        with writing(f"to cache {video}", folder, NOTHING_SAVED), open_video(video, threads=task.threads) as opened:
            with temporary.open("wb") as file:
                file.write(bytes(HEAD_BYTES))
                for block in opened.blocks(picture):
                    frames = np.ascontiguousarray(block.frames_NHW).data
                    file.write(frames)
                    digest.update(frames)
                    times_s += block.times_s_N.tolist()
                    print(json.dumps({"frames": len(times_s)}), flush=True)
                file.seek(0)
                file.write(npy_head((len(times_s), *task.size)))
                file.flush()
                print(json.dumps({"flushing": True}), flush=True)
                os.fsync(file.fileno())
            os.replace(temporary, path)
            about = tuple(opened.warnings), opened.missing_frames, words_of(picture)
            part = StorePart(task.key, video, task.size, digest.hexdigest(), np.array(times_s), *about)
            part.write(folder)
            sync_folder(folder)
    finally:
        remove(temporary)


def main() -> int:
    """The exit code."""
    task = PartTask.of_json(sys.argv[1])
    die_with(task.parent)
    try:
        decode_part(task)
    except UserError as error:
        print(json.dumps({"asked": error.asked, "found": error.found, "do": error.do}), flush=True)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
