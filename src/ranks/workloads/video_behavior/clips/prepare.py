"""The labelled frames of a study: from its videos, decoded once.

Without --data the study is rendered, into $XDG_CACHE_HOME or ~/.cache, under ranks/video-behavior/. The store of a
study is in its own folder. Of several ranks one prepares, and the others wait.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from ranks.data.prepared.say import say
from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.read import parse_merge
from ranks.workloads.video_behavior.clips.join import join
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.config import Config, RenderedConfig
from ranks.workloads.video_behavior.study.study import load_study


def labelled_frames(cfg: Config) -> LabelledFrames:
    """The frames and labels of the study that the settings name. Raises UserError for a bad study."""
    if cfg.data is None:
        return rendered_frames(cfg.rendered, cfg)
    return frames_of_study(cfg.data, cfg)


def rendered_frames(rendered: RenderedConfig, cfg: Config) -> LabelledFrames:
    """The frames of the built-in study, rendered now if they are not there."""
    return frames_of_study(rendered_folder(rendered, cfg.clips.size), cfg)


def classes_of(cfg: Config) -> tuple[str, ...]:
    """The classes of the study that the settings name."""
    return labelled_frames(cfg).classes


def cache_folder() -> Path:
    """Where rendered studies are kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "ranks" / "video-behavior"


@lru_cache(maxsize=8)
def rendered_folder(rendered: RenderedConfig, size: int) -> Path:
    """The folder of a rendered study. Its name is a hash of the settings and of the renderer."""
    from ranks.workloads.video_behavior.renderer.render import StudyPlan
    from ranks.workloads.video_behavior.renderer.rendered_study import render_study, renderer_sha256

    plan = StudyPlan(rendered.animals, rendered.seconds, rendered.seed, size, rendered.contrast, rendered.noise)
    name = hashlib.sha256(f"{asdict(plan)}/{renderer_sha256()}".encode()).hexdigest()[:16]
    render_study(plan, cache_folder() / name)
    return cache_folder() / name


def frames_of_study(path: Path, cfg: Config) -> LabelledFrames:
    """The labelled videos of a dataset.csv, decoded into a store next to it. Raises UserError."""
    from ranks.workloads.video_behavior.video.picture import Picture
    from ranks.workloads.video_behavior.video.store.cache import cache_videos

    study = load_study(path, subject=cfg.subject, merge=parse_merge(cfg.merge))
    labelled = [video for video in study.videos if video.annotation is not None]
    if not labelled:
        raise UserError(f"--data {path}", "no video has an annotation", "fill in the column annotation of dataset.csv")
    folder = path if path.is_dir() else path.parent
    size = cfg.clips.size
    videos = [(video.video.name, video.video) for video in labelled]
    store = cache_videos(videos, folder / f"store-{size}", Picture((size, size)))
    data, warnings = join(study, labelled, store.videos, store, cfg)
    for warning in warnings:
        say(f"warning: {warning}")
    return data
