"""The tables of `ranks prove table video-behavior`: the net and its baselines on rendered animals, and the leak.

The reported figures are of a study that is rendered after all trainings ended, from a seed that is drawn then. Its test
animals have cameras, coats and lights that training animals never have.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ranks.errors import UserError
from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.clips.prepare import (
    cache_folder,
    frames_of_study,
    rendered_folder,
    rendered_frames,
)
from ranks.workloads.video_behavior.config import PRESETS, ClipConfig, Config, RenderedConfig
from ranks.workloads.video_behavior.renderer.rendered_study import renderer_sha256
from ranks.workloads.video_behavior.scoring import BehaviorScores
from ranks.workloads.video_behavior.tables.baselines import energy_f1, majority_f1, split_by_clip
from ranks.workloads.video_behavior.tables.task import (
    TrainedNet,
    chosen_labels,
    f1_without_smoothing,
    mean_and_range,
    scores_on,
    trained,
)
from ranks.workloads.video_behavior.validation import LabelChoice

SEEDS, SEEDS_QUICK = 3, 1
NET_F1, RARE_F1, EVENT_F1, COUNT_ERROR = 0.85, 0.6, 0.80, 0.15
"""The bars of the net: macro-F1, F1 of the rarest class, macro event F1 at IoU 0.3, count error."""
ENERGY_F1, ONE_FRAME_F1, SHUFFLED_LOSS = 0.55, 0.65, 0.10
"""The bars of the baselines: at most, at most, at least."""
LEAST_LEARNED = 0.03
"""By so much a trained baseline is above the most frequent class in macro-F1. One that is not has learned nothing, and
fails its bar."""
ONE_FRAME_STEM = (1, 2, 2)
"""The stem's stride of the net on one frame. With the stride 4 of preset small it never learned: without motion, paws
of two or three pixels are all that it has."""
PIECE_FRAMES = 345
"""Frames of a trial of the origin, which split by trial."""
ENERGY_STRIDE = 4
KNOWN_CAMERAS = "validation animals, whose cameras it knows"
CPU = torch.device("cpu")


@dataclass(frozen=True)
class BehaviorRow:
    """One figure. `found`: its mean and range over seeds. `bar`: the requirement on the mean, "" for none."""

    what: str
    mean: float
    found: str
    bar: str
    passed: bool | None


@dataclass(frozen=True)
class TableSettings:
    """How much the table trains and measures."""

    seeds: int
    cfg: Config
    fresh: RenderedConfig
    """The study of the reported figures; its seed is drawn after the trainings."""


class SeedNets(NamedTuple):
    """The nets of one seed: the net and the net on one frame; for the first seed also the net trained with the origin's
    split and the net trained on shuffled frames."""

    net: TrainedNet
    one_frame: TrainedNet
    leak: TrainedNet | None
    shuffled: TrainedNet | None


def settings_of(quick: bool, seeds: int | None = None) -> TableSettings:
    """`seeds`: how many, by default three. `quick`: one seed and a few updates on a small study; the same comparisons,
    which then fail."""
    cfg = PRESETS["small"]()
    if not quick:
        return TableSettings(SEEDS if seeds is None else seeds, cfg, cfg.rendered)
    rendered = RenderedConfig(animals=10, seconds=12.0, size=32)
    cfg = replace(
        cfg,
        rendered=rendered,
        clips=ClipConfig(frames=9, size=32),
        iterations=12,
        epoch_clips=64,
        global_batch=16,
        eval_every=6,
        eval_stride=8,
    )
    return TableSettings(SEEDS_QUICK if seeds is None else seeds, cfg, rendered)


def table(quick: bool = False, seeds: int | None = None) -> dict[str, Any]:
    """Train the nets, seed by seed, then measure them: {"tables", "passed", "facts"}, ready for JSON.

    `seeds`: how many, by default three. A training that was interrupted goes on, and a finished one is kept, also for
    a later table with more seeds; with `quick` all are new. Raises UserError.
    """
    if seeds is not None and seeds < 1:
        raise UserError(f"--seeds {seeds}", "a table has one seed or more", "give 1 or more")
    settings = settings_of(quick, seeds)
    cfg = settings.cfg
    data = rendered_frames(cfg.rendered, cfg)
    leaky = split_by_clip(data, PIECE_FRAMES, seed=0)
    with _trainings_folder(cfg, data, quick) as folder:
        found = [_trained_nets(cfg, data, leaky, folder, seed) for seed in range(settings.seeds)]
        nets = [each.net for each in found]
        drawn = replace(settings.fresh, seed=secrets.randbits(31))  # after the last update of any net
        choices = [chosen_labels(net, data, folder) for net in nets]
        with _drawn_study(drawn, cfg) as fresh:
            scores = [scores_on(net, choice, fresh, folder) for net, choice in zip(nets, choices, strict=True)]
            straight = [raw.frames.macro_f1 for raw, _ in scores]
            baselines = _baseline_rows(found, straight, data, fresh, folder)
            rows = _net_rows(scores, fresh)
        rows += _harder_rows(nets, choices, drawn, cfg, folder)
        leak = _leak_rows(found, data, leaky, folder)
        minutes = np.mean([net.seconds for net in nets]) / 60
    tables = {
        "The net on animals, cameras, coats and lights that it never saw": [asdict(row) for row in rows],
        "Baselines, by frame without smoothing": [asdict(row) for row in baselines],
        "The same task split by clip, first seed: the leak": [asdict(row) for row in leak],
    }
    return {
        "tables": tables,
        "passed": all(row.passed is not False for row in (*rows, *baselines, *leak)),
        "facts": {
            "seeds": settings.seeds,
            "training of a net": f"{cfg.iterations:,} updates of {cfg.global_batch} clips, {minutes:.1f} minutes",
            "clips": f"{cfg.clips.frames} x {cfg.clips.size} x {cfg.clips.size}",
            "the renderer": f"sha256 {renderer_sha256()[:12]}",
            "the study of the training": f"seed {cfg.rendered.seed}, sha256 {data.sha256[:12]}",
            "the study of the figures": f"seed {drawn.seed}, drawn after the trainings, sha256 {fresh.sha256[:12]}",
        },
    }


def _trained_nets(cfg: Config, data: LabelledFrames, leaky: LabelledFrames, folder: Path, seed: int) -> SeedNets:
    """Train the nets of a seed, or read them where they were trained before."""
    train = partial(trained, folder=folder, seed=seed)
    return SeedNets(
        train(cfg, data, name=f"net-{seed}"),
        train(_one_frame(cfg), data, name=f"one-frame-{seed}"),
        train(cfg, leaky, name=f"leak-{seed}") if seed == 0 else None,
        train(_shuffled(cfg), data, name=f"shuffled-{seed}") if seed == 0 else None,
    )


def _one_frame(cfg: Config) -> Config:
    """Without noise in training: with it, a net that sees paws of two or three pixels learned nothing for half of its
    updates, and in one of three seeds nothing at all."""
    return replace(
        cfg,
        clips=replace(cfg.clips, frames=1),
        augment=replace(cfg.augment, jitter_frames=0, noise=0.0),
        net=replace(cfg.net, stem_stride=ONE_FRAME_STEM),
    )


def _shuffled(cfg: Config) -> Config:
    return replace(cfg, clips=replace(cfg.clips, shuffle=True))


@contextmanager
def _trainings_folder(cfg: Config, data: LabelledFrames, quick: bool) -> Generator[Path]:
    """Where the runs are: in the cache, by settings, frames and the workload's code; with `quick` for this table."""
    if quick:
        with tempfile.TemporaryDirectory(prefix="ranks-table-") as name:
            yield Path(name)
        return
    settings = [asdict(each) for each in (cfg, _one_frame(cfg), _shuffled(cfg))]
    digest = hashlib.sha256(json.dumps([settings, data.sha256], sort_keys=True, default=str).encode())
    package = Path(__file__).parents[1]
    for path in (*sorted(package.glob("net/*.py")), *sorted(package.glob("clips/*.py")), package / "training.py"):
        digest.update(path.read_bytes())
    folder = cache_folder() / f"table-{digest.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


@contextmanager
def _drawn_study(drawn: RenderedConfig, cfg: Config) -> Generator[LabelledFrames]:
    """The frames of a study that nobody asks for again, as its seed was drawn: its folder is deleted."""
    folder = rendered_folder(drawn, cfg.clips.size)
    try:
        yield frames_of_study(folder, cfg)
    finally:
        shutil.rmtree(folder)


def _row(what: str, values: Sequence[float], bar: str = "", passed: bool | None = None) -> BehaviorRow:
    return BehaviorRow(what, float(np.mean(values)), mean_and_range(values), bar, passed)


def _at_least(what: str, values: Sequence[float], bar: float) -> BehaviorRow:
    return _row(what, values, f">= {bar:g}", bool(np.mean(values) >= bar))


def _at_most(what: str, values: Sequence[float], bar: float) -> BehaviorRow:
    return _row(what, values, f"<= {bar:g}", bool(np.mean(values) <= bar))


def _trained_baseline(what: str, values: Sequence[float], bar: float, majority: float) -> BehaviorRow:
    """A row of a trained baseline: at most `bar`, and above the most frequent class."""
    least, mean = majority + LEAST_LEARNED, np.mean(values)
    return _row(what, values, f"{least:.2f} to {bar:.2f}", bool(least <= mean <= bar))


def _net_rows(scores: Sequence[tuple[BehaviorScores, BehaviorScores]], fresh: LabelledFrames) -> list[BehaviorRow]:
    raw, smoothed = ([pair[at] for pair in scores] for at in (0, 1))
    rarest = int(np.argmin(raw[0].frames.support_C))
    name = fresh.classes[rarest]
    return [
        _at_least("macro-F1, smoothed", [s.macro_f1.value for s in smoothed], NET_F1),
        _row("macro-F1, not smoothed", [s.macro_f1.value for s in raw]),
        _row("lower end of its interval over animals, smoothed", [s.macro_f1.low for s in smoothed]),
        _at_least(f"F1 of {name}, smoothed", [float(s.frames.f1_C[rarest]) for s in smoothed], RARE_F1),
        _row(f"F1 of {name}, not smoothed", [float(s.frames.f1_C[rarest]) for s in raw]),
        _row(f"true bouts of {name}", [float(s.bouts[0.3].support_C[rarest]) for s in raw]),
        _at_least("event F1 at IoU 0.3, smoothed", [s.event_f1[0.3].value for s in smoothed], EVENT_F1),
        _row("event F1 at IoU 0.3, not smoothed", [s.event_f1[0.3].value for s in raw]),
        _row("event F1 at IoU 0.5, smoothed", [s.event_f1[0.5].value for s in smoothed]),
        _at_most("count error, smoothed", [s.count_error.value for s in smoothed], COUNT_ERROR),
        _row("calibration error", [s.ece for s in raw]),
    ]


def _harder_rows(
    nets: Sequence[TrainedNet], choices: Sequence[LabelChoice], drawn: RenderedConfig, cfg: Config, folder: Path
) -> list[BehaviorRow]:
    rows: list[BehaviorRow] = []
    for what, harder in (("half contrast", replace(drawn, contrast=0.5)), ("double noise", replace(drawn, noise=2.0))):
        with _drawn_study(harder, cfg) as data:
            pairs = zip(nets, choices, strict=True)
            found = [scores_on(net, choice, data, folder)[1].macro_f1.value for net, choice in pairs]
        rows.append(_row(f"macro-F1 at {what}, smoothed", found))
    return rows


def _baseline_rows(
    found: Sequence[SeedNets], straight: Sequence[float], data: LabelledFrames, fresh: LabelledFrames, folder: Path
) -> list[BehaviorRow]:
    # the regression is fitted on the training animals; validation animals have the same cameras
    clips = found[0].net.cfg.clips
    training, other = ClipCutter(data, clips, CPU), ClipCutter(fresh, clips, CPU)
    energy = energy_f1(training, other, "test", ENERGY_STRIDE)
    same_cameras = energy_f1(training, training, "val", ENERGY_STRIDE)
    majority = majority_f1(data, fresh, "test")
    score = partial(f1_without_smoothing, folder=folder)
    single = [score(each.one_frame, fresh, "test") for each in found]
    single_same_cameras = [score(each.one_frame, data, "val") for each in found]
    with_shuffled_clips = [replace(each.net, cfg=_shuffled(each.net.cfg)) for each in found]
    shuffled = [score(net, fresh, "test") for net in with_shuffled_clips]
    trained_on_shuffled = [score(each.shuffled, fresh, "test") for each in found if each.shuffled is not None]
    return [
        _row("the net", straight),
        _row("the most frequent class", [majority]),
        _at_most("energy of frame differences, logistic regression", [energy], ENERGY_F1),
        _at_most(f"the same on {KNOWN_CAMERAS}", [same_cameras], ENERGY_F1),
        _trained_baseline("the net on one frame, with a finer stem", single, ONE_FRAME_F1, majority),
        _trained_baseline(f"that net on {KNOWN_CAMERAS}", single_same_cameras, ONE_FRAME_F1, majority),
        _row("the net on shuffled frames", shuffled),
        _at_least("lost by shuffling", [a - b for a, b in zip(straight, shuffled, strict=True)], SHUFFLED_LOSS),
        _trained_baseline(
            "the net trained on shuffled frames, first seed", trained_on_shuffled, straight[0] - SHUFFLED_LOSS, majority
        ),
    ]


def _leak_rows(
    found: Sequence[SeedNets], data: LabelledFrames, leaky: LabelledFrames, folder: Path
) -> list[BehaviorRow]:
    pairs = [(each.net, each.leak) for each in found if each.leak is not None]
    honest = [f1_without_smoothing(net, data, "test", folder) for net, _ in pairs]
    leaked = [f1_without_smoothing(leak, leaky, "test", folder) for _, leak in pairs]
    return [
        _row("macro-F1 of the test, split by animal", honest),
        _row("macro-F1 of the test, split by clip", leaked),
        _row("the leak", [b - a for a, b in zip(honest, leaked, strict=True)]),
    ]
