"""Renders a study: an mp4 file and a BORIS file for each animal, and a dataset.csv.

The labels are those of a careful person: every edge of a bout is moved by 0 to 2 frames.

Legend: N frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ranks.engine.sharding.numpy_rng import numpy_generator
from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events
from ranks.workloads.video_behavior.annotations.events import Annotation
from ranks.workloads.video_behavior.annotations.frame_labels import events_of_labels
from ranks.workloads.video_behavior.renderer.draw import Scene, draw_frames, make_scene
from ranks.workloads.video_behavior.renderer.kinematics import Poses, make_poses, noise
from ranks.workloads.video_behavior.renderer.looks import draw_look
from ranks.workloads.video_behavior.renderer.schedule import CLASSES, Segment, labels_of, make_schedule
from ranks.workloads.video_behavior.study.study import StudyVideo, write_dataset_csv

FPS = 30.0
BLOCK_FRAMES = 64
JITTER_FRAMES = 2
TEST_SHARE = VALIDATION_SHARE = 0.2
FLICKER_FRAMES = 40.0


def render_study(
    folder: Path,
    *,
    animals: int,
    seconds: float,
    seed: int,
    size: int,
    contrast: float = 1.0,
    noise_factor: float = 1.0,
    each: Callable[[str], None] | None = None,
) -> None:
    """Write a study of frames of size x size into a folder. `each`: called after each video with its name.

    The last fifth of the animals is the test, with cameras, lights and coats of its own; the fifth before it is the
    validation. A video is a function of its animal's number and the arguments, `animals` only by the split.
    """
    from ranks.workloads.video_behavior.video.write import write_mp4

    rows: list[StudyVideo] = []
    for animal in range(animals):
        split = split_of_animal(animal, animals)
        generator = numpy_generator(seed, "render", 0, animal)
        scene = make_scene(draw_look(generator, is_test=split == "test"), size, generator)
        schedule = make_schedule(round(seconds * FPS), generator)
        poses = make_poses(schedule, generator)
        name = f"mouse-{animal:02}"
        write_mp4(folder / f"{name}.mp4", frame_blocks(scene, poses, generator, contrast, noise_factor), FPS)
        label_N = scored_labels(schedule, generator)
        times_s_N = np.arange(len(label_N)) / FPS
        events = events_of_labels(label_N, CLASSES, times_s_N, subject=name)
        annotation = Annotation(f"{name}.mp4", events, FPS, len(label_N) / FPS, name)
        write_boris_events(folder / f"{name}.tsv", [annotation])
        group = "treated" if animal % 2 else "control"
        paths = folder / f"{name}.mp4", folder / f"{name}.tsv"
        rows.append(StudyVideo(*paths, animal=name, group=group, fps=None, offset_s=0.0, split=split))
        if each is not None:
            each(name)
    write_dataset_csv(folder / "dataset.csv", rows)


def split_of_animal(animal: int, animals: int) -> str:
    """train, val or test: the test animals come last."""
    test, validation = max(1, round(TEST_SHARE * animals)), max(1, round(VALIDATION_SHARE * animals))
    if animal >= animals - test:
        return "test"
    return "val" if animal >= animals - test - validation else "train"


def frame_blocks(
    scene: Scene, poses: Poses, generator: np.random.Generator, contrast: float, noise_factor: float
) -> Iterator[npt.NDArray[np.uint8]]:
    """The frames of some poses, a block at a time."""
    num_frames = len(poses.x_N)
    flicker_N = noise(num_frames, FLICKER_FRAMES, generator)
    for start in range(0, num_frames, BLOCK_FRAMES):
        stop = min(start + BLOCK_FRAMES, num_frames)
        block = poses.block(start, stop)
        yield draw_frames(scene, block, flicker_N[start:stop], generator, contrast, noise_factor)


def scored_labels(schedule: tuple[Segment, ...], generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """int64[N]: the labels of a person who is off by 0 to 2 frames at each edge of a bout."""
    truth_N = labels_of(schedule)
    edges = np.flatnonzero(np.diff(truth_N)) + 1
    first = np.append(0, edges)
    moved = edges + generator.integers(-JITTER_FRAMES, JITTER_FRAMES + 1, len(edges))
    lengths = np.diff(np.concatenate([[0], np.sort(np.clip(moved, 1, len(truth_N) - 1)), [len(truth_N)]]))
    return np.repeat(truth_N[first], lengths)
