"""Fills a store: decodes the videos that it lacks, several at a time, each in a process of its own.

A video that is in the store already is kept, so an interrupted command continues where it was. A process that dies or
shows no progress is started once more; then the video is named.
"""

from __future__ import annotations

import json
import math
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranks.data.prepared.file_lock import file_lock
from ranks.data.prepared.say import say
from ranks.engine.distributed.process_env import available_cores
from ranks.engine.files.disk import NOTHING_SAVED, write_durably, writing
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.workloads.video_behavior.video.decode import VideoFacts, probe
from ranks.workloads.video_behavior.video.picture import Crop, Picture
from ranks.workloads.video_behavior.video.store.decode_part import FAILED, PartTask
from ranks.workloads.video_behavior.video.store.frame_store import (
    FORMAT,
    STORE_FILE,
    FrameStore,
    key_of,
    open_store,
    part_of,
)

SILENT_S = 60.0
"""A decoder that shows no progress for so long hangs."""
ATTEMPTS = 2
FRAMES_A_SECOND = 1500.0
"""A guess of the speed of one core, for the estimate before anything is decoded."""
SPARE_BYTES = 64 * 2**20
"""Free space that is left on the disk."""


@dataclass(frozen=True)
class Wanted:
    """A video of the store. `missing`: it has to be decoded."""

    path: Path
    name: str
    key: str
    crop: Crop | None
    facts: VideoFacts
    missing: bool

    @property
    def expected_frames(self) -> int:
        return self.facts.expected_frames or 0


def cache_videos(
    videos: Sequence[tuple[str, Path]],
    folder: Path,
    picture: Picture,
    *,
    crops: Sequence[Crop | None] | None = None,
    workers: int | None = None,
    silent_s: float = SILENT_S,
) -> FrameStore:
    """The store of these videos (name, path) in `folder`; what is missing is decoded now.

    `picture`: its size must be given. `crops`: of single videos, in place of the picture's. `workers`: processes, by
    default one for each core. Raises UserError for bad videos, all of which are named by the first, and where the disk
    is too small.
    """
    assert picture.size is not None
    with writing(f"the store {folder}", folder.parent, NOTHING_SAVED):
        folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / ".lock", f"the store {folder}"):
        wanted = list(_plan(videos, folder, picture, crops or [picture.crop] * len(videos)))
        missing = [one for one in wanted if one.missing]
        if missing:
            num_workers = max(1, min(len(missing), workers or available_cores()))
            _check_disk(missing, folder, picture.size, num_workers)
            tasks = [_task(one, folder, picture, max(1, available_cores() // num_workers)) for one in missing]
            _Decoding(tasks, [one.expected_frames for one in missing], num_workers, silent_s).run()
        listed = {
            "format": FORMAT,
            "size": list(picture.size),
            "picture": words_of(picture, picture.crop),
            "videos": [[one.name, one.key] for one in wanted],
        }
        with writing(f"the store {folder}", folder, NOTHING_SAVED):
            write_durably(folder / f".{STORE_FILE}.tmp", json.dumps(listed, indent=1).encode())
            (folder / f".{STORE_FILE}.tmp").replace(folder / STORE_FILE)
        return open_store(folder)


def words_of(picture: Picture, crop: Crop | None) -> str:
    """How frames are cut and scaled, as a part of a video's key."""
    assert picture.size is not None
    cut = "whole" if crop is None else ",".join(map(str, crop))
    return f"{cut}/{picture.fit}/{picture.size[0]}x{picture.size[1]}"


def _plan(
    videos: Sequence[tuple[str, Path]], folder: Path, picture: Picture, crops: Sequence[Crop | None]
) -> Iterator[Wanted]:
    for (name, path), crop in zip(videos, crops, strict=True):
        facts = probe(path)
        Picture(picture.size, picture.fit, crop).shape(facts.height, facts.width)  # refuses a crop outside
        key = key_of(path, words_of(picture, crop))
        yield Wanted(path, name, key, crop, facts, part_of(folder, key, picture.size) is None)
        heartbeat.beat()


def _check_disk(missing: Sequence[Wanted], folder: Path, size: tuple[int, int], workers: int) -> None:
    frames = sum(one.expected_frames for one in missing)
    needed, free = frames * math.prod(size) + SPARE_BYTES, shutil.disk_usage(folder).free
    time_s = frames / (FRAMES_A_SECOND * workers)
    say(
        f"{len(missing):,} videos to decode, about {frames:,} frames: {needed / 1e9:.2f} GB in {folder}, "
        f"some {max(1, round(time_s / 60))} min"
    )
    if needed > free:
        found = f"{needed / 1e9:.2f} GB are needed, {free / 1e9:.2f} GB are free"
        raise UserError(f"the store {folder}", found, "free disk space, give a smaller --size, or another folder")


def _task(one: Wanted, folder: Path, picture: Picture, threads: int) -> PartTask:
    assert picture.size is not None
    crop = None if one.crop is None else (one.crop.x, one.crop.y, one.crop.width, one.crop.height)
    return PartTask(str(one.path.absolute()), str(folder), one.key, picture.size, picture.fit, crop, threads)


@dataclass
class _Decoder:
    """A running process. `frames`: decoded so far; `seen_s`: when it showed progress last."""

    task: PartTask
    process: subprocess.Popen[str]
    attempt: int
    seen_s: float
    frames: int = 0
    answer: dict[str, Any] = field(default_factory=dict[str, Any])


class _Decoding:
    """Decodes all tasks with a bounded number of processes."""

    def __init__(self, tasks: Sequence[PartTask], expected: Sequence[int], workers: int, silent_s: float) -> None:
        self.waiting = [(task, 1) for task in reversed(tasks)]
        self.running: list[_Decoder] = []
        self.listeners: list[threading.Thread] = []
        self.workers, self.silent_s, self.total = workers, silent_s, sum(expected)
        self.lines: queue.Queue[tuple[_Decoder, str | None]] = queue.Queue()

    def run(self) -> None:
        try:
            with ProgressBar(self.total or None, title="decode", unit="frames", stream=sys.stderr) as bar:
                while self.waiting or self.running:
                    while self.waiting and len(self.running) < self.workers:
                        self._start(*self.waiting.pop())
                    self._read(bar)
                    self._end_silent(bar)
                    heartbeat.beat()
        finally:
            for one in self.running:
                one.process.kill()
                one.process.wait()
            for listener in self.listeners:
                listener.join()

    def _start(self, task: PartTask, attempt: int) -> None:
        module = "ranks.workloads.video_behavior.video.store.decode_part"
        command = [sys.executable, "-m", module, task.as_json()]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        one = _Decoder(task, process, attempt, time.monotonic())
        self.running.append(one)
        self.listeners.append(threading.Thread(target=self._listen, args=(one,), daemon=True))
        self.listeners[-1].start()

    def _listen(self, one: _Decoder) -> None:
        assert one.process.stdout is not None
        with one.process.stdout:
            for line in one.process.stdout:
                self.lines.put((one, line))
        self.lines.put((one, None))

    def _read(self, bar: ProgressBar) -> None:
        with suppress(queue.Empty):
            one, line = self.lines.get(timeout=0.5)
            if line is None:
                self._ended(one, bar)
                return
            one.seen_s = time.monotonic()
            with suppress(ValueError):
                one.answer = json.loads(line)
            frames = one.answer.get("frames", one.frames)
            bar.advance(frames - one.frames)
            one.frames = frames

    def _ended(self, one: _Decoder, bar: ProgressBar) -> None:
        if one not in self.running:
            return
        self.running.remove(one)
        code = one.process.wait()
        if code == 0:
            for warning in one.answer.get("warnings", []):
                bar.line(f"warning: {warning}")
        elif code == FAILED and "asked" in one.answer:
            raise UserError(one.answer["asked"], one.answer["found"], one.answer["do"])
        else:
            ended = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            self._again(one, f"its decoder ended after {one.frames:,} frames ({ended})", bar)

    def _end_silent(self, bar: ProgressBar) -> None:
        for one in [one for one in self.running if time.monotonic() - one.seen_s > self.silent_s]:
            self.running.remove(one)
            one.process.kill()
            one.process.wait()
            self._again(one, f"its decoder hung after {one.frames:,} frames for {self.silent_s:g} s", bar)

    def _again(self, one: _Decoder, found: str, bar: ProgressBar) -> None:
        if one.attempt >= ATTEMPTS:
            do = "check that the file plays, convert it (ffmpeg -i FILE -c:v libx264 NEW.mp4), or take it out"
            raise UserError(f"the video {one.task.video}", f"{found}, {ATTEMPTS} times", do)
        bar.line(f"warning: {one.task.video}: {found}; it is decoded once more")
        bar.advance(-one.frames)
        self.waiting.append((one.task, one.attempt + 1))
