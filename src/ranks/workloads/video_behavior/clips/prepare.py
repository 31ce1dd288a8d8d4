"""The labelled frames of a study: rendered where no folder is given, decoded once, joined with the annotations.

The rendered studies are in $XDG_CACHE_HOME or ~/.cache, under ranks/video-behavior/study-<key>/. The frames of a study
are in its folder store-SIZE, as `ranks video-behavior cache` writes them. Processes that ask for the same study at the
same time render and decode it once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path

from ranks.data.prepared.say import say
from ranks.workloads.video_behavior.annotations.read import parse_merge
from ranks.workloads.video_behavior.clips.join import join
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.config import Config, RenderedConfig
from ranks.workloads.video_behavior.renderer.render import StudyPlan
from ranks.workloads.video_behavior.renderer.rendered_study import render_study, renderer_sha256
from ranks.workloads.video_behavior.study.study import StudyVideo, load_study
from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.store.cache import cache_videos
from ranks.workloads.video_behavior.video.store.frame_store import FrameStore, StoreList


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
    return frames_of_study(rendered_folder(rendered, cfg.clips.size), cfg)


def cache_folder() -> Path:
    """Where rendered studies are kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "ranks" / "video-behavior"


def rendered_folder(rendered: RenderedConfig, clip_size: int) -> Path:
    """The folder of a rendered study, from the cache or rendered now. Its videos have the size of the clips (or the
    next even number) where the settings name none: larger clips of small videos would show nothing more."""
    size = rendered.size or clip_size + clip_size % 2
    plan = StudyPlan(**asdict(replace(rendered, size=size)))
    identity = json.dumps([asdict(plan), renderer_sha256()], sort_keys=True)
    folder = cache_folder() / f"study-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    render_study(plan, folder)
    return folder


@lru_cache(maxsize=4)
def frames_of_study(folder: Path, cfg: Config) -> LabelledFrames:
    """The labelled frames of the study in a folder, or of its dataset.csv. Raises UserError where a file is wrong."""
    study = load_study(folder, background=cfg.background, subject=cfg.subject, merge=parse_merge(cfg.merge))
    videos = [video for video in study.videos if video.annotation is not None]
    store = stored_frames(folder.parent if folder.is_file() else folder, videos, cfg.clips.size)
    data, warnings = join(study, videos, store.videos, store, store.sha256, cfg)
    for warning in warnings:
        say(warning)
    return data


def stored_frames(folder: Path, videos: Sequence[StudyVideo], size: int) -> FrameStore:
    """The decoded frames of some videos of a study; what is missing is decoded now."""
    named = [(video.video.name, video.video) for video in videos]
    return cache_videos(named, folder / f"store-{size}", stored_picture(folder, size))


def stored_picture(folder: Path, size: int) -> Picture:
    """How frames of a study are cut and scaled: as `ranks video-behavior cache` did it, where it was called before."""
    listed = StoreList.read(folder / f"store-{size}")
    return listed.picture if listed is not None else Picture((size, size))
