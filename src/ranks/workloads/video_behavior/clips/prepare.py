"""The labelled frames of a study: from its videos, decoded once."""

from __future__ import annotations

from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.config import Config, RenderedConfig


def labelled_frames(cfg: Config) -> LabelledFrames:
    raise NotImplementedError


def rendered_frames(rendered: RenderedConfig, cfg: Config) -> LabelledFrames:
    raise NotImplementedError


def classes_of(cfg: Config) -> tuple[str, ...]:
    return labelled_frames(cfg).classes
