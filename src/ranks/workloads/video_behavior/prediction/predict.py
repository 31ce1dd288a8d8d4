"""Label the videos of a command, one after the other, and write their files.

Legend: N frames of a video, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ranks.engine.files.disk import remove, writing
from ranks.engine.files.regular import reason
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events
from ranks.workloads.video_behavior.annotations.events import Event
from ranks.workloads.video_behavior.annotations.frame_labels import (
    IGNORED,
    Floats,
    end_of,
    exclusive_labels,
    multi_labels,
)
from ranks.workloads.video_behavior.annotations.read import parse_merge
from ranks.workloads.video_behavior.metrics.frames import Ints
from ranks.workloads.video_behavior.prediction.done import DONE, DoneVideo, check_names, done_videos
from ranks.workloads.video_behavior.prediction.pictures import draw_ethogram, overlaid
from ranks.workloads.video_behavior.prediction.stream_video import PredictedFrames, predict_blocks
from ranks.workloads.video_behavior.prediction.summary import Source, VideoSummary, times_of, write_summary
from ranks.workloads.video_behavior.prediction.trained_net import TrainedVideoNet, load_net, rule_of
from ranks.workloads.video_behavior.prediction.written import (
    bouts_of_labels,
    least_certain,
    predicted_video,
    write_frames,
    write_project,
)
from ranks.workloads.video_behavior.smoothing.label_rule import LabelRule
from ranks.workloads.video_behavior.study.kept_split import kept_split_of
from ranks.workloads.video_behavior.study.study import StudyVideo, annotation_of, read_dataset_csv
from ranks.workloads.video_behavior.video.decode import open_video
from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.write import write_mp4

FINISHED = "the videos that are done stay; the same command goes on"


@dataclass(frozen=True)
class Prediction:
    """What is the same for all videos of a command."""

    trained: TrainedVideoNet
    rule: LabelRule
    picture: Picture
    out: Path
    overlay: bool

    @property
    def background(self) -> int | None:
        """The class that is no event: frames without a code. A behaviour that people code is one, also where it is the
        background of the training."""
        cfg, classes = self.trained.cfg, self.trained.classes
        return classes.index(cfg.uncoded) if cfg.labels == "exclusive" and cfg.uncoded in classes else None

    def made_from(self, video: StudyVideo) -> dict[str, Any]:
        """What the files of a video depend on. Raises OSError."""
        stat = video.video.stat()
        annotation = None if video.annotation is None else video.annotation.stat().st_mtime_ns
        return {
            **self.net,
            "subject": self.trained.cfg.subject,
            "picture": repr(self.picture),
            "video": [stat.st_size, stat.st_mtime_ns],
            "annotation": annotation,
            "row": [video.animal, video.group, video.fps, video.offset_s],
        }

    @property
    def net(self) -> dict[str, str]:
        """The part of `made_from` that says what has labelled the video."""
        return {"weights": self.trained.sha256, "rule": repr(self.rule)}

    def files_of(self, name: str) -> list[Path]:
        """The files that a video has."""
        ends = ["csv", "boris.tsv", "ethogram.png", *(["overlay.mp4"] if self.overlay else [])]
        return [self.out / f"{name}.{end}" for end in ends]


class UnreadVideo(UserError):
    """A video that cannot be read: it is left out, and the command goes on."""


def predict_videos(
    run: str, runs_dir: Path, given: Sequence[Path], out: Path, *, overlay: bool, num_uncertain: int, device: str
) -> int:
    """Label videos and write their files into `out`. Returns 1 where a video could not be read, else 0."""
    asked = f"ranks video-behavior predict {run}"
    videos = named_videos(given, asked)
    check_names(videos, out, asked)
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda", "torch sees no GPU", "leave it out, or give --device cpu")
    on = torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")
    trained = load_net(run, runs_dir, on)
    with ExitStack() as stack:
        stack.enter_context(writing(asked, out, FINISHED))
        out.mkdir(parents=True, exist_ok=True)
        bar = stack.enter_context(ProgressBar(title="predict", unit="frames"))
        prediction = Prediction(trained, rule_of(trained, bar), trained.picture, out, overlay)
        done, unread = dict[str, DoneVideo](), list[str]()
        for number, (name, video) in enumerate(videos.items(), 1):
            try:
                done[name] = _one(prediction, name, video, bar, f"video {number} of {len(videos)}, {video.video.name}")
            except UnreadVideo as error:
                unread.append(f"{video.video}: {error.found}")
                bar.line(f"warning: left out: {unread[-1]}")
        if not done:
            raise UserError(asked, f"no video could be labelled: {unread[0]}", "give videos that can be decoded")
        earlier = [one for one in done_videos(out) if one.video.name not in videos and _same_net(one, prediction)]
        written = _write_together(run, out, [*done.values(), *earlier], num_uncertain)
    videos_more = "1 video" if len(earlier) == 1 else f"{len(earlier):,} videos"
    others = f", with {videos_more} of earlier commands" if earlier else ""
    print(f"{out}: {len(done)} of {len(videos)} videos labelled; {', '.join(path.name for path in written)}{others}")
    return 1 if unread else 0


def _same_net(done: DoneVideo, prediction: Prediction) -> bool:
    return prediction.net.items() <= done.made_from.items()


def _write_together(run: str, out: Path, videos: Sequence[DoneVideo], num_uncertain: int) -> list[Path]:
    """Write the files about all videos; where they are. Raises UserError."""
    summary, predicted = out / "summary.csv", [one.video for one in videos]
    write_summary(summary, [row for one in videos for row in one.summaries])
    every = [video.annotation for video in predicted]
    written = [summary, write_project(out / "predictions.boris", f"labels of {run}", every)]
    if num_uncertain:
        chosen = least_certain(predicted, num_uncertain)
        written.append(write_project(out / "least_certain.boris", f"what {run} is least sure of", chosen))
    return written


def named_videos(given: Sequence[Path], asked: str) -> dict[str, StudyVideo]:
    """Name of the files of each video -> its row; files without a dataset.csv have a row of their own. Raises
    UserError where a file is missing, or named twice."""
    rows = list[StudyVideo]()
    for path in given:
        if path.is_dir() or path.name.endswith(".csv"):
            rows += read_dataset_csv(path / "dataset.csv" if path.is_dir() else path)
        elif path.exists():
            rows.append(StudyVideo(path, None, "", "", None, 0.0, ""))
        else:
            raise UserError(asked, f"there is no {path}", "name video files, or a dataset.csv")
    stems = [row.video.stem for row in rows]
    named: dict[str, StudyVideo] = {}
    for row, stem in zip(rows, stems, strict=True):
        name = stem if stems.count(stem) == 1 else f"{row.video.absolute().parent.name}_{stem}"
        if name in named:
            found = f"{row.video} and {named[name].video} would have the same files"
            raise UserError(asked, found, "predict them into two folders with --out")
        named[name] = row
    return named


def _one(prediction: Prediction, name: str, video: StudyVideo, bar: ProgressBar, title: str) -> DoneVideo:
    """Label one video and write its files, unless an earlier command has done so. Raises UnreadVideo, and UserError
    where the files cannot be written."""
    out, trained = prediction.out, prediction.trained
    try:
        made_from = prediction.made_from(video)
        before = DoneVideo.read(out, name)
        if before is not None and before.made_from == made_from and all(map(Path.exists, prediction.files_of(name))):
            bar.line(f"{title}: done before")
            return before
        found = _probabilities(prediction, video.video, bar, title)
    except (UserError, OSError) as error:
        found = error.found if isinstance(error, UserError) else reason(error)
        raise UnreadVideo(f"the video {video.video}", found, "give a video that can be decoded") from None
    labels = prediction.rule.labels(found.probability_NC)
    classes = trained.classes
    subject = trained.cfg.subject or ""
    result = predicted_video(name, video.video, found, labels, classes, prediction.background, subject=subject)
    person = _of_a_person(prediction, video, found.times_s_N, result.fps, bar)
    remove(out / f"{name}{DONE}")  # before its files change
    write_frames(out / f"{name}.csv", found, labels, classes)
    write_boris_events(out / f"{name}.boris.tsv", [result.annotation])
    shown = tuple(name for c, name in enumerate(classes) if c != prediction.background)
    bouts = None if person is None else person.bouts
    draw_ethogram(out / f"{name}.ethogram.png", video.video.name, shown, result.events, bouts, result.duration_s)
    remove(out / f"{name}.overlay.mp4")  # one of an earlier command has other labels
    if prediction.overlay:
        _write_overlay(out / f"{name}.overlay.mp4", video.video, labels, classes, result.fps)
    split = kept_split_of(video, trained.cfg.split, trained.cfg.video_split)

    def summary(source: Source, events: Sequence[Event], observed_s: float) -> VideoSummary:
        times = times_of(events, shown)
        own_name = f"{name}{video.video.suffix}"  # of an animal that is not known; the name of its files is unique
        return VideoSummary(own_name, video.animal, video.group, split, source, observed_s, times)

    summaries = [summary("net", result.events, result.duration_s)]
    if person is not None:
        summaries.append(summary("person", person.bouts, person.observed_s))
    done = DoneVideo(made_from, result, tuple(summaries))
    done.write(out)
    bar.line(f"{title}: {len(labels):,} frames, {len(result.events):,} bouts")
    return done


def _probabilities(prediction: Prediction, path: Path, bar: ProgressBar, title: str) -> PredictedFrames:
    trained, seen = prediction.trained, 0
    with open_video(path) as video:
        total = video.facts.expected_frames

        def done(count: int) -> None:
            nonlocal seen
            seen += count
            bar.update(seen, [f"{title}: {seen:,}{f' of {total:,}' if total else ''} frames"], total)

        blocks = video.blocks(prediction.picture)
        found = predict_blocks(trained.net, trained.cfg.clips, blocks, trained.device, done)
        for warning in video.warnings:
            bar.line(f"warning: {warning}")
        return found


@dataclass(frozen=True)
class PersonsBouts:
    """What a person saw in a video. `observed_s`: the time of the frames that have a label."""

    bouts: Sequence[Event]
    observed_s: float


def _of_a_person(
    prediction: Prediction, video: StudyVideo, times_s_N: Floats, fps: float, bar: ProgressBar
) -> PersonsBouts | None:
    """The bouts of the annotation as training sees them, by frame and of the net's classes, so that they compare with
    the net's; None without an annotation, or with one that gives no labels, which a line says."""
    cfg, classes = prediction.trained.cfg, prediction.trained.classes
    try:
        found = annotation_of(video, subject=cfg.subject, merge=parse_merge(cfg.merge), video_fps=fps)
        if found is None:
            return None
        known = replace(found, events=tuple(event for event in found.events if event.behavior in classes))
        if cfg.labels == "multi":
            labels = multi_labels(known, classes, times_s_N).astype(np.int64)
        else:
            is_class = cfg.unlabelled == "background" and classes[0] == cfg.background
            labels = exclusive_labels(known, classes, times_s_N, unlabelled="background" if is_class else "ignore")
    except UserError as error:
        bar.line(f"warning: {video.video.name}: not compared with a person: {error.asked}: {error.found}")
        return None
    frame_s_N = np.diff(times_s_N, append=end_of(times_s_N))
    counted_N = np.ones(len(labels), np.bool_) if cfg.labels == "multi" else labels != IGNORED
    bouts = bouts_of_labels(labels, classes, times_s_N, prediction.background)
    return PersonsBouts(bouts, float(frame_s_N[counted_N].sum()))


def _write_overlay(path: Path, video: Path, labels: Ints, classes: Sequence[str], fps: float) -> None:
    with open_video(video) as opened:
        write_mp4(path, overlaid(opened.blocks(), labels, classes), fps)
