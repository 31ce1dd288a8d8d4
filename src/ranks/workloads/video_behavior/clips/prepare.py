"""The labelled frames of a study: rendered where no folder is given, decoded once, joined with the annotations.

The rendered studies are in $XDG_CACHE_HOME or ~/.cache, under ranks/video-behavior/study-<key>/. The frames of a study
are in its folder store-SIZE or in --store, as `ranks video-behavior cache` writes them. Processes that ask for the same
study at the same time render and decode it once.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path

from ranks.cache_home import cache_home
from ranks.data.prepared.say import say
from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.boris_project import forget_project
from ranks.workloads.video_behavior.annotations.read import parse_merge
from ranks.workloads.video_behavior.clips.join import join
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.config import ClipConfig, Config, RenderedConfig
from ranks.workloads.video_behavior.renderer.render import StudyPlan
from ranks.workloads.video_behavior.renderer.rendered_study import render_study, renderer_sha256
from ranks.workloads.video_behavior.study.study import load_study
from ranks.workloads.video_behavior.video.picture import Crop, Picture
from ranks.workloads.video_behavior.video.store.cache import cache_videos
from ranks.workloads.video_behavior.video.store.frame_store import StoreList


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
    return cache_home() / "ranks" / "video-behavior"


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
    where = store_folder(folder, cfg)
    store = cache_videos([(video.video.name, video.video) for video in videos], where, picture_of(cfg.clips, where))
    data, warnings = join(study, videos, store.videos, store, store.sha256, cfg)
    forget_project()
    for warning in warnings:
        say(warning)
    return data


def store_folder(study: Path, cfg: Config) -> Path:
    """Where the decoded frames of a study are. `study`: its folder, or its dataset.csv."""
    return cfg.store or (study.parent if study.is_file() else study) / f"store-{cfg.clips.size}"


def picture_of(clips: ClipConfig, store: Path | None) -> Picture:
    """How frames are cut and scaled: as the settings say, or as those of a store were. Raises UserError."""
    size = (clips.size, clips.size)
    if clips.fit != "as-cached":
        return Picture(size, clips.fit, Crop.parse(clips.crop) if clips.crop else None)
    listed = None if store is None else StoreList.read(store)
    if listed is None:
        return Picture(size)
    height, width = listed.picture.size or size
    if (height, width) != size:
        found = f"frames of {height} x {width} pixels"
        raise UserError(f"the store {store}", found, f"cache with --size {clips.size}, or give another --clips.size")
    return listed.picture


def kept_settings(cfg: Config, data: LabelledFrames) -> Config:
    """The settings with what the study decided: its classes, its split, and how frames are cut. A run keeps them, so
    its net can be used without the study, and no animal moves from its training to its test."""
    picture = picture_of(cfg.clips, None if cfg.data is None else store_folder(cfg.data, cfg))
    crop = "" if picture.crop is None else ",".join(map(str, picture.crop))
    clips = replace(cfg.clips, fit=picture.fit, crop=crop)
    kept = dict(classes=data.classes, background=data.background, uncoded=data.uncoded)
    return replace(cfg, clips=clips, **kept, split=data.split_of_animals, video_split=data.split_of_videos)
