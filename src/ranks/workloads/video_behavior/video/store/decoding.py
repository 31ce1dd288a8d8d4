"""Decodes several videos at a time, each in a process of its own.

A process that dies or shows no progress is started once more. A video that cannot be decoded does not keep the others
from being decoded: all bad ones are named at the end. A full disk ends everything at once.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ranks.engine.liveness.heartbeat import heartbeat
from ranks.errors import UserError, shorten
from ranks.progress import ProgressBar
from ranks.workloads.video_behavior.video.store.decode_part import FAILED, PartTask

ATTEMPTS = 2
MAX_NAMED = 10
FLUSH_S = 1800.0
"""A process may wait so long for the disk: 7 GB an hour of video, on a slow disk that others use too."""


def decode_all(tasks: Sequence[PartTask], expected_frames: int, workers: int, silent_s: float) -> None:
    """Decode videos with up to `workers` processes. `silent_s`: a process without progress for so long hangs.

    Raises UserError for a full disk, and for bad videos when all others are decoded.
    """
    bad = _Decoding(tasks, expected_frames, workers, silent_s).run()
    if bad:
        raise named_together(bad)


def named_together(bad: Sequence[UserError]) -> UserError:
    """One error for the bad videos of a study: up to ten with the reason of each."""
    if len(bad) == 1:
        return bad[0]
    lines = [f"  {error.asked.removeprefix('the video ')}: {error.found}" for error in bad[:MAX_NAMED]]
    if len(bad) > MAX_NAMED:
        lines.append(f"  and {len(bad) - MAX_NAMED:,} more")
    do = "check that each file plays; convert it (ffmpeg -i FILE -c:v libx264 NEW.mp4), or take it out of dataset.csv"
    return UserError(f"{len(bad):,} videos", "\n".join(["none of them can be decoded:", *lines]), do)


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

    def __init__(self, tasks: Sequence[PartTask], expected_frames: int, workers: int, silent_s: float) -> None:
        self.waiting = [(task, 1) for task in reversed(tasks)]
        self.running: list[_Decoder] = []
        self.listeners: list[threading.Thread] = []
        self.bad: list[UserError] = []
        self.workers, self.silent_s, self.total = workers, silent_s, expected_frames
        self.lines: queue.Queue[tuple[_Decoder, str | None]] = queue.Queue()

    def run(self) -> list[UserError]:
        """The errors of bad videos."""
        try:
            with ProgressBar(self.total or None, title="decode", unit="frames", stream=sys.stderr) as bar:
                while self.waiting or self.running:
                    while self.waiting and len(self.running) < self.workers:
                        self._start(*self.waiting.pop())
                    self._read(bar)
                    self._end_silent(bar)
                    heartbeat.beat()
            return self.bad
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
        if code == FAILED and "asked" in one.answer:
            error = UserError(one.answer["asked"], one.answer["found"], one.answer["do"])
            if error.asked != _asked(one.task):  # the disk, not the video
                raise error
            self.bad.append(error)
        elif code != 0:
            ended = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            self._again(one, f"its decoder ended after {one.frames:,} frames ({ended})", bar)

    def _end_silent(self, bar: ProgressBar) -> None:
        for one in list(self.running):
            limit_s = FLUSH_S if "flushing" in one.answer else self.silent_s
            if time.monotonic() - one.seen_s > limit_s:
                self.running.remove(one)
                one.process.kill()
                one.process.wait()
                self._again(one, f"its decoder hung after {one.frames:,} frames for {limit_s:g} s", bar)

    def _again(self, one: _Decoder, found: str, bar: ProgressBar) -> None:
        bar.advance(-one.frames)
        if one.attempt >= ATTEMPTS:
            do = "check that the file plays, convert it (ffmpeg -i FILE -c:v libx264 NEW.mp4), or take it out"
            self.bad.append(UserError(_asked(one.task), f"{found}, {ATTEMPTS} times", do))
            return
        bar.line(f"warning: {one.task.video}: {found}; it is decoded once more")
        self.waiting.append((one.task, one.attempt + 1))


def _asked(task: PartTask) -> str:
    """As `open_video` names a video."""
    return shorten(f"the video {task.video}")
