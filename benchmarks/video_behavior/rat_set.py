"""A public set of two rats, 58 videos labelled by people: the net of video-behavior against trees on pose distances.

    git clone https://github.com/Blossom0913/Mouse-Behavior-Classifier-Train rats     (205 MB; 8503815 was used)
    pip install ".[video-behavior,video-behavior-proof]"                              (the second for scikit-learn)
    python -m benchmarks.video_behavior.rat_set rats [--seeds 3] [--minutes 15] [--videos 58]

The set has no videos, only DeepLabCut's key points of two rats and the annotations. So the key points are drawn as
grey pictures of 64 x 64: real movements and real labels, rendered pixels. Key points with a likelihood below 0.6 are
missing, gaps of up to 15 frames are interpolated, and both sides get the same poses.

The net goes the way of a user: `ranks video-behavior dataset` pairs videos with annotations and splits them (by video:
the set does not say which rats are in which), `ranks train video-behavior --preset small --clips.stride 4` trains,
`ranks evaluate --checkpoint best` scores the test videos. Classes are those of stream S1: base, social, nonsocial,
aggression. The reference has the same split and the same test frames: scikit-learn's HistGradientBoosting on 26
distances, speeds and angles of each frame. The bars are of macro-F1 by frame without smoothing: that of the reference
minus 0.03, and above 0.5. Without a bar there are the trees with the means and deviations over the 65 frames that a
clip spans, the trees with a split by clip, and all after smoothing, which is chosen on the validation videos for net
and trees in the same way (by event F1, so it can lower macro-F1).

It takes two to three CPU hours.

Everything is kept in FOLDER/ranks-rat-set; a command that was interrupted goes on. `--minutes` is the length of a
training on two idle cores: 15 are the 9,000 updates of the preset. Writes
benchmarks/results/rat_set_DATE.json after each seed. A cut run (fewer seeds, minutes or videos) writes none.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import environment, origin, write_result
from benchmarks.video_behavior.rat.poses import FPS, features, over_time, padded, pictures, read_poses
from ranks.engine.config_file import overlay
from ranks.engine.runs.folder import RunFolder
from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.read import read_annotation
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.clips.prepare import labelled_frames
from ranks.workloads.video_behavior.config import PRESETS, Config
from ranks.workloads.video_behavior.tables.baselines import majority_f1
from ranks.workloads.video_behavior.video.write import write_mp4

SEEDS, MINUTES, VIDEOS = 3, 15.0, 58
UPDATES_A_MINUTE = PRESETS["small"]().iterations / MINUTES
MARGIN, LEAST_F1 = 0.03, 0.5
STRIDE = 4
NAME = re.compile(r"(\d+)_annot\.txt")
LABELS = ["--subject", "S1", "--background", "base"]
RAW, SMOOTHED = "raw/macro_f1", "macro_f1"
FRAME, WINDOW = "trees on each frame", "trees on the frames of a clip"


def annotations_of(folder: Path, most: int) -> list[Path]:
    """The first annotations by number. Raises UserError where the folder is another one."""
    found = [path for path in (folder / "data" / "annotations").glob("*_annot.txt") if NAME.fullmatch(path.name)]
    if not found:
        raise UserError(f"the data set {folder}", "no data/annotations/NUMBER_annot.txt", "clone it, see --help")
    return sorted(found, key=number_of)[:most]


def number_of(annotation: Path) -> int:
    return int(annotation.name.partition("_")[0])


def poses_of(folder: Path, work: Path, annotation: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The poses of a video, as many as people have labelled frames: some tables of poses end a few frames earlier."""
    kept = work / "poses" / f"{number_of(annotation)}.npy"
    if not kept.exists():
        tables = list((folder / "data" / "dlc_csv").glob(f"{number_of(annotation)}DLC_*.csv"))
        if len(tables) != 1:
            raise UserError(f"the poses of {annotation}", f"{len(tables)} tables in data/dlc_csv", "clone it again")
        duration_s = read_annotation(annotation, "S1", fps=FPS).duration_s or 0.0
        poses = padded(read_poses(tables[0]), round(duration_s * FPS))
        kept.parent.mkdir(parents=True, exist_ok=True)
        temporary = kept.with_suffix(".tmp")
        with temporary.open("wb") as file:
            np.save(file, poses)
        os.replace(temporary, kept)
    return np.load(kept)


def make_study(folder: Path, work: Path, annotations: Sequence[Path]) -> Path:
    """The folder of the videos, the annotations as they are, and dataset.csv with a split by video."""
    study = work / f"study-{len(annotations)}"
    study.mkdir(parents=True, exist_ok=True)
    for at, annotation in enumerate(annotations, 1):
        video = study / f"{number_of(annotation)}.mp4"
        if not video.exists():
            print(f"video {at} of {len(annotations)}: {video.name}", file=sys.stderr, flush=True)
            (study / annotation.name).write_bytes(annotation.read_bytes())
            write_mp4(video, pictures(poses_of(folder, work, annotation)), FPS, threads=1)
    if not (study / "dataset.csv").exists():
        ranks("video-behavior", "dataset", str(study), *LABELS)
    return study


def ranks(*argv: str) -> str:
    """The standard output of a command of ranks. Raises SystemExit where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "ranks", *argv], env=environment(), stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"ranks {' '.join(argv)} ended with exit code {done.returncode}")
    return done.stdout


def cpu_s() -> float:
    """CPU seconds of this process and of the commands that it has started."""
    return sum(os.times()[:4])


def settings_of(runs: Path, name: str) -> Config:
    """The settings of a run, so that the trees read the study as the net did."""
    content = RunFolder.of(runs, name).read_settings()
    return overlay(Config(), content["config"], f"the run {name}", "config")


def one_seed(
    study: Path, runs: Path, seed: int, updates: int, trees: Callable[[LabelledFrames, int], Mapping[str, Any]]
) -> dict[str, Any]:
    """Train and evaluate a net, and fit the trees, for one seed."""
    name, began_s, before_s = f"{study.name}-{updates}-seed-{seed}", time.perf_counter(), cpu_s()
    train = ["train", "video-behavior", "--preset", "small", "--data", str(study), *LABELS, "--name", name]
    train += ["--clips.stride", str(STRIDE), "--iterations", str(updates), "--seed", str(seed)]
    train += ["--eval-every", str(min(PRESETS["small"]().eval_every, updates)), "--runs-dir", str(runs)]
    ranks(*train, "--gpus", "none")
    evaluate = ["evaluate", name, "--checkpoint", "best", "--json", "--runs-dir", str(runs), "--gpus", "none"]
    trained_s = cpu_s()
    net = json.loads(ranks(*evaluate))["metrics"]
    evaluated_s = cpu_s()
    data = labelled_frames(settings_of(runs, name))
    found = trees(data, seed)
    parts = {"train": trained_s - before_s, "evaluate": evaluated_s - trained_s, "trees": cpu_s() - evaluated_s}
    return {
        "seed": seed,
        "net": net,
        "trees": found,
        "majority": majority_f1(data, data, "test"),
        "sha256": data.sha256,
        "classes": list(data.classes),
        "videos": {split: len(data.videos_of(split)) for split in ("train", "val", "test")},
        "test_frames": len(data.frames_of("test")),
        "wall_s": round(time.perf_counter() - began_s, 1),
        "cpu_s": {name: round(part_s, 1) for name, part_s in parts.items()},
    }


def all_features(folder: Path, work: Path, data: LabelledFrames) -> dict[str, Any]:
    """The features of all frames of a study, of each frame and over the frames of a clip."""
    span = (PRESETS["small"]().clips.frames - 1) * STRIDE + 1
    found: dict[str, list[Any]] = {FRAME: [], WINDOW: []}
    for video in data.videos:
        annotation = folder / "data" / "annotations" / f"{Path(video.name).stem}_annot.txt"
        features_NF = features(poses_of(folder, work, annotation))
        if len(features_NF) != video.num_frames:
            raise SystemExit(f"{video.name}: {video.num_frames} frames decoded, {len(features_NF)} poses")
        found[FRAME].append(features_NF)
        found[WINDOW].append(over_time(features_NF, span))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def verdicts_of(seeds: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """The bars, of means over seeds by frame, without smoothing."""
    net = float(np.mean([one["net"][RAW] for one in seeds]))
    reference = float(np.mean([one["trees"][FRAME][RAW] for one in seeds]))
    return {f"macro-F1 >= {FRAME} - {MARGIN}": net >= reference - MARGIN, f"macro-F1 > {LEAST_F1}": net > LEAST_F1}


def table_lines(seeds: Sequence[Mapping[str, Any]]) -> list[str]:
    """Macro-F1 of the test videos by seed, smoothed and not."""
    rows = [("net", [one["net"] for one in seeds])]
    rows += [(name, [one["trees"][name] for one in seeds]) for name in seeds[0]["trees"]]
    lines = [f"{'macro-F1 of the test videos':<34}  {'not smoothed':<24}  smoothed"]
    for name, found in rows:
        raw = " ".join(f"{one[RAW]:.3f}" for one in found)
        smoothed = " ".join(f"{one[SMOOTHED]:.3f}" for one in found if SMOOTHED in one)
        lines.append(f"{name:<34}  {raw:<24}  {smoothed}")
    return [*lines, f"{'most frequent class':<34}  {seeds[0]['majority']:.3f}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--videos", type=int, default=VIDEOS)
    args = parser.parse_args()
    try:
        from benchmarks.video_behavior.rat.trees import trees_table
    except ModuleNotFoundError as missing:
        if missing.name != "sklearn":
            raise
        parser.error("needs scikit-learn: pip install '.[video-behavior-proof]'")
    folder, work = args.folder.resolve(), args.folder.resolve() / "ranks-rat-set"
    updates = round(UPDATES_A_MINUTE * args.minutes)
    if args.seeds < 1 or updates < 1 or args.videos < 1:
        parser.error("--seeds, --minutes and --videos are above 0")
    annotations = annotations_of(folder, args.videos)
    whole = args.seeds >= SEEDS and args.minutes >= MINUTES and len(annotations) == VIDEOS
    study = make_study(folder, work, annotations)
    measured: dict[str, Any] = {}

    def trees(data: LabelledFrames, seed: int) -> Mapping[str, Any]:
        measured.update({} if measured else all_features(folder, work, data))
        return trees_table(measured, data, seed)

    seeds = list[dict[str, Any]]()
    for seed in range(args.seeds):
        kept = work / f"{study.name}-{updates}-seed-{seed}.json"
        if not kept.exists():
            found = one_seed(study, work / "runs", seed, updates, trees)
            temporary = kept.with_suffix(".tmp")
            temporary.write_text(json.dumps(found), encoding="utf-8")
            os.replace(temporary, kept)
        seeds.append(json.loads(kept.read_text(encoding="utf-8")))
        if whole:
            content = {**origin(), "updates": updates, "margin": MARGIN, "seeds": seeds}
            verdicts = verdicts_of(seeds) if len(seeds) == args.seeds else {}
            print(write_result(f"rat_set_{time.strftime('%Y-%m-%d')}", {**content, "verdicts": verdicts}))
    print("\n".join(table_lines(seeds)))
    if not whole:
        print("a cut run: no verdict, and no result file")
        return 0
    verdicts = verdicts_of(seeds)
    for name, holds in verdicts.items():
        print(f"{'PASS' if holds else 'FAIL'}  {name}")
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(str(error))
