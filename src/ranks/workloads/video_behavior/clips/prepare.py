"""The labelled frames of a study, from its videos: rendered where there are none, decoded once, joined with the labels.

    $XDG_CACHE_HOME or ~/.cache, under ranks/video-behavior/
        study-<key>/    a rendered study; the key is a hash of its settings
        frames-<key>/   the store of a study's frames; the key is a hash of the video files and the size
        .<name>.lock    held by the process that renders or decodes

Processes that ask for the same study at the same time render and decode it once.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from ranks.engine.files.lock import taken
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.workloads.video_behavior.annotations.read import parse_merge
from ranks.workloads.video_behavior.clips.join import join
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.config import Config, RenderedConfig
from ranks.workloads.video_behavior.study.study import StudyVideo, load_study
from ranks.workloads.video_behavior.video.store.store import FrameStore, build_store, open_store

RENDERER_VERSION = 1
"""Raise it with every change of the renderer that changes a video or a label."""
POLL_S = 0.2


def labelled_frames(cfg: Config) -> LabelledFrames:
    """The frames of `cfg.data`, or of the rendered study. Raises UserError."""
    if cfg.data is None:
        return rendered_frames(cfg.rendered, cfg)
    return frames_of_study(cfg.data, cfg)


def classes_of(cfg: Config) -> tuple[str, ...]:
    """The classes of the study that the settings name."""
    return labelled_frames(cfg).classes


def rendered_frames(rendered: RenderedConfig, cfg: Config) -> LabelledFrames:
    """The frames of a rendered study at the size of the clips."""
    return frames_of_study(rendered_study(rendered, cfg.clips.size), cfg)


@lru_cache(maxsize=4)
def frames_of_study(folder: Path, cfg: Config) -> LabelledFrames:
    """The labelled frames of the study in a folder. Raises UserError where a file is wrong."""
    study = load_study(folder, background=cfg.background, subject=cfg.subject, merge=parse_merge(cfg.merge))
    videos = [video for video in study.videos if video.annotation is not None]
    store = stored_frames(videos, cfg.clips.size)
    data, warnings = join(study, videos, store.videos, store, cfg)
    for warning in warnings:
        say(warning)
    return data


def stored_frames(videos: Sequence[StudyVideo], size: int) -> FrameStore:
    """The decoded frames of some videos, from the cache or decoded now."""
    files = [(str(video.video.resolve()), *_size_and_time(video.video)) for video in videos]
    folder = cache_folder() / f"frames-{key_of([size, files])}"
    if not folder.exists():
        with building(folder, "the frames of the study"):
            if not folder.exists():
                with ProgressBar(len(videos), title="decoding", stream=sys.stderr) as progress:

                    def each(name: str, warnings: Sequence[str]) -> None:
                        progress.advance()
                        for warning in warnings:
                            progress.line(f"ranks: {name}: {warning}")

                    build_store([video.video for video in videos], folder, size, each)
    return open_store(folder)


def rendered_study(rendered: RenderedConfig, size: int) -> Path:
    """The folder of a rendered study, from the cache or rendered now."""
    folder = cache_folder() / f"study-{key_of([RENDERER_VERSION, size, asdict(rendered)])}"
    if not (folder / "dataset.csv").exists():
        with building(folder, "the rendered study"):
            if not (folder / "dataset.csv").exists():
                from ranks.workloads.video_behavior.renderer.study import render_study

                folder.mkdir(exist_ok=True)
                with ProgressBar(rendered.animals, title="rendering", stream=sys.stderr) as progress:

                    def each(name: str) -> None:
                        heartbeat.beat()
                        progress.advance()

                    render_study(
                        folder,
                        animals=rendered.animals,
                        seconds=rendered.seconds,
                        seed=rendered.seed,
                        size=size,
                        contrast=rendered.contrast,
                        noise_factor=rendered.noise,
                        each=each,
                    )
    return folder


@contextmanager
def building(folder: Path, what: str) -> Generator[None]:
    """Hold the lock of a folder of the cache; wait, and say so, while another process builds it.

    The operating system releases the lock even if the process is killed. A rank that waits does not count as hanging.
    Raises UserError where the cache cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder.with_name(f".{folder.name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        do = "free some disk space, fix the permissions, or set XDG_CACHE_HOME"
        raise UserError(f"to store frames in {folder.parent}", error.strerror or str(error), do) from error
    try:
        if not taken(descriptor):
            say(f"another process is making {what}: waiting for it")
            while not taken(descriptor):
                heartbeat.beat()
                time.sleep(POLL_S)
        yield
    finally:
        os.close(descriptor)


def cache_folder() -> Path:
    """The folder of rendered studies and decoded frames."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "ranks" / "video-behavior"


def key_of(identity: object) -> str:
    """16 hexadecimal digits of a hash."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def say(text: str) -> None:
    """Print one line on standard error."""
    print(f"ranks: {text}", file=sys.stderr, flush=True)


def _size_and_time(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(f"the video {path}", error.strerror or str(error), "check the file") from None
    return status.st_size, status.st_mtime_ns
