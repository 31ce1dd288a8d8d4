"""Writes the page of `ranks video-behavior report`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from ranks.engine.files.disk import writing
from ranks.engine.files.jsonl import iter_rows, number
from ranks.engine.runs.folder import METRICS_FILE
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.watch.report.page import document, paragraph, picture, table
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames, LabelledVideo
from ranks.workloads.video_behavior.clips.prepare import labelled_frames
from ranks.workloads.video_behavior.prediction.trained_net import TrainedVideoNet, load_net, rule_of
from ranks.workloads.video_behavior.report.agreement_pictures import (
    LearningPoint,
    draw_confusion,
    draw_learning_curve,
    draw_precision_recall,
    draw_reliability,
)
from ranks.workloads.video_behavior.report.contact_sheet import draw_contact_sheet
from ranks.workloads.video_behavior.report.raster import (
    MOST_ANIMALS,
    MOST_LANES,
    draw_ethogram_raster,
    draw_time_budget,
)
from ranks.workloads.video_behavior.report.seen import SeenSplit, see_split
from ranks.workloads.video_behavior.scoring import IOUS, with_range

PAGE = "behavior.html"


def write_report(
    run: str, others: Sequence[str], runs_dir: Path, split: str, out: Path | None, device: str, asked: str
) -> Path:
    """The path of the page. Raises UserError."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda", "torch sees no GPU", "leave it out, or give --device cpu")
    on = torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")
    trained = load_net(run, runs_dir, on)
    data = labelled_frames(trained.cfg)
    place = out or trained.folder / "report"
    with writing(asked, place, "run the same command again"), ProgressBar(title="report", unit="runs") as bar:
        place.mkdir(parents=True, exist_ok=True)
        seen = see_split(trained, data, split, rule_of(trained, bar))
        points = [LearningPoint(trained.folder.name, labelled_minutes(data), seen.scores.macro_f1)]
        for other in others:
            bar.line(f"the net of {other} labels the same animals")
            points.append(other_point(load_net(other, runs_dir, on), trained, seen, split, bar))
        path = place / PAGE
        path.write_text(_page(trained, seen, split, points, place), encoding="utf-8")
    return path


def other_point(
    other: TrainedVideoNet, trained: TrainedVideoNet, seen: SeenSplit, split: str, bar: ProgressBar
) -> LearningPoint:
    """A point of the learning curve: another run's net on the animals of this page. Raises UserError where it cannot
    label them, or has learned from them."""
    asked = f"the run {other.folder.name} on the {split} animals of {trained.folder.name}"
    if other.classes != seen.classes or other.cfg.clips.size != trained.cfg.clips.size:
        raise UserError(asked, "it has other classes, or clips of another size", "name runs of one study and preset")
    data = labelled_frames(other.cfg)
    same_study = (other.cfg.data, other.cfg.rendered.seed) == (trained.cfg.data, trained.cfg.rendered.seed)
    learned = learned_from(data, [one.video for one in seen.videos], split)
    if (other.cfg.data is not None or same_study) and learned:
        found = f"it has learned from {', '.join(learned[:5])}"
        raise UserError(asked, found, "give both runs the same split of the animals in dataset.csv")
    scores = see_split(other, seen.data, split, rule_of(other, bar)).scores
    return LearningPoint(other.folder.name, labelled_minutes(data), scores.macro_f1)


def learned_from(data: LabelledFrames, videos: Sequence[LabelledVideo], split: str) -> list[str]:
    """The animals of these videos from which a run on `data` has learned: it trained on them, or for test animals chose
    its smoothing on them. An animal is known by its name, and by its videos where another table calls it otherwise."""
    splits = ("train", "val") if split == "test" else ("train",)
    used = [video for each in splits for video in data.videos_of(each)]
    animals = {video.animal or video.name for video in used}
    files = {video.file.resolve() for video in used if video.file is not None}
    learned = [
        video.animal or video.name
        for video in videos
        if (video.animal or video.name) in animals or (video.file is not None and video.file.resolve() in files)
    ]
    return sorted(set(learned))


def labelled_minutes(data: LabelledFrames) -> float:
    """The labelled video of the training animals, in minutes."""
    counted_N, total_s = data.counted_N, 0.0
    for video in data.videos_of("train"):
        times_N = video.times_s_N
        frame_s = (times_N[-1] - times_N[0]) / max(1, len(times_N) - 1)
        total_s += float(counted_N[video.first_frame : video.first_frame + video.num_frames].sum() * frame_s)
    return total_s / 60


def _page(trained: TrainedVideoNet, seen: SeenSplit, split: str, points: Sequence[LearningPoint], place: Path) -> str:
    """The whole page; its pictures are written into `place`."""
    name, animals = trained.folder.name, "test animals" if split == "test" else "validation animals"
    lanes = draw_ethogram_raster(seen, place / "ethogram.png")
    left_out = draw_time_budget(seen, place / "time_budget.png")
    draw_confusion(seen, place / "confusion.png")
    draw_precision_recall(seen, place / "precision_recall.png")
    draw_reliability(seen, place / "reliability.png")
    draw_learning_curve(_validations(trained, seen), points, split, place / "learning_curve.png")
    sheet = draw_contact_sheet(seen, trained.cfg.clips, place / "confusions.png")
    warning = "The net or its smoothing was chosen on these animals: the figures flatter it." if split == "val" else ""
    parts: list[Iterable[str]] = [
        table([("", *row) for row in _facts(trained, seen, animals, points[0].labelled_minutes)]),
        paragraph(warning),
        ["<h2>Scores by behaviour, after smoothing</h2>"],
        table(_score_rows(seen), header=True),
        picture("Ethogram", place / "ethogram.png"),
        paragraph(f"{lanes} more lanes are left out: {MOST_LANES} are shown." if lanes else ""),
        picture("Confusion matrix, after smoothing", place / "confusion.png"),
        picture("Precision and recall, without smoothing", place / "precision_recall.png"),
        picture("Calibration, without smoothing", place / "reliability.png"),
        picture("Time budget", place / "time_budget.png"),
        paragraph(
            f"{left_out} more animals are left out: {MOST_ANIMALS} are shown. Means are of all." if left_out else ""
        ),
        picture("The worst confusions", place / "confusions.png") if sheet else (),
        paragraph(
            "What is confused most often, and of each confusion the bouts where the net is surest." if sheet else ""
        ),
        picture("Learning curve", place / "learning_curve.png"),
        paragraph(
            "Left: minutes of labelled frames that training showed to the net, repeats included. Right: minutes of "
            "labelled video; name runs that were trained on fewer videos in the same command to see whether more "
            "labelling would help. Bars are 95 % intervals over animals."
        ),
        [f"<p>Written {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())} by ranks video-behavior report.</p>"],
    ]
    return document(f"{name}: behaviour of {len({one.animal for one in seen.videos})} {animals}", parts)


def _facts(trained: TrainedVideoNet, seen: SeenSplit, animals: str, minutes: float) -> list[tuple[str, str]]:
    scores, shown_s = seen.scores, sum(one.video.num_frames * one.frame_s for one in seen.videos)
    each = {one.animal for one in seen.videos}
    found = [
        ("animals", f"{len(each)} {animals}, {len(seen.videos)} videos, {shown_s / 60:.1f} minutes"),
        ("trained on", f"{minutes:.1f} minutes of labelled video"),
        ("macro-F1", f"{with_range(scores.macro_f1)}, 95 % over animals"),
        *((f"event F1 at IoU {iou}", with_range(scores.event_f1[iou])) for iou in IOUS),
        ("count error", with_range(scores.count_error)),
        ("balanced accuracy", f"{scores.frames.balanced_accuracy:.3f}"),
        ("accuracy", f"{scores.frames.accuracy:.3f}"),
        ("weights", trained.sha256[:16]),
    ]
    return [(name, value) for name, value in found if "nan" not in value]


def _score_rows(seen: SeenSplit) -> list[tuple[str, ...]]:
    scores, bouts = seen.scores, seen.scores.bouts[IOUS[0]]
    head = ("behaviour", "F1 (95 % over animals)", "precision", "recall", "AP", "frames", "event F1 0.3", "bouts")
    rows: list[tuple[str, ...]] = [head]
    for c, name in enumerate(seen.classes):
        if not scores.frames.support_C[c]:
            rows.append((name, "no frame shows it"))
            continue
        figures = (scores.frames.precision_C[c], scores.frames.recall_C[c], scores.average_precision_C[c])
        counts = f"{int(scores.frames.support_C[c]):,}", f"{bouts.f1_C[c]:.3f}", f"{int(bouts.support_C[c]):,}"
        rows.append((name, with_range(scores.f1_C[c]), *(f"{figure:.3f}" for figure in figures), *counts))
    return rows


def _validations(trained: TrainedVideoNet, seen: SeenSplit) -> list[tuple[float, float]]:
    """(minutes of labelled frames shown so far, macro-F1) at each validation of the run."""
    frame_s = next((one.frame_s for one in seen.videos if one.frame_s), 0.0)
    found: list[tuple[float, float]] = []
    for row in iter_rows(trained.folder / METRICS_FILE):
        iteration, f1 = number(row, "iteration"), number(row, "val/macro_f1")
        if iteration is not None and f1 is not None:
            found.append((iteration * trained.cfg.global_batch * frame_s / 60, f1))
    return found
