"""Renders one animal: its video, what a human would have noted in BORIS, and the true labels.

A human notes the edges of bouts up to two frames too early or too late, so the annotation does too. The file
`true_labels/NAME.npy` has what the mouse really did; nothing trains on it.

Legend: N frames.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ranks.engine.sharding.numpy_rng import numpy_generator
from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.renderer.draw import draw_frames, make_scene
from ranks.workloads.video_behavior.renderer.kinematics import make_poses, noise
from ranks.workloads.video_behavior.renderer.looks import draw_look
from ranks.workloads.video_behavior.renderer.schedule import CLASSES, labels_of, make_schedule
from ranks.workloads.video_behavior.video.write import write_mp4

FPS = 30.0
BLOCK_FRAMES = 128
JITTER_FRAMES = 2
"""An edge is noted at most so many frames too early or too late."""
FLICKER_FRAMES = 40.0


@dataclass(frozen=True)
class StudyPlan:
    """What is rendered. `contrast`, `noise`: factors of the cameras' own."""

    animals: int = 40
    seconds: float = 360.0
    seed: int = 0
    size: int = 64
    contrast: float = 1.0
    noise: float = 1.0

    @property
    def frames(self) -> int:
        """Of one video."""
        return max(1, round(FPS * self.seconds))

    def split_of(self, animal: int) -> str:
        """Three fifths of the animals train, a fifth validates, a fifth tests."""
        share = animal / self.animals
        return "train" if share < 0.6 else "val" if share < 0.8 else "test"

    def name_of(self, animal: int) -> str:
        return f"mouse{animal:03d}"

    def group_of(self, animal: int) -> str:
        return "treated" if animal % 2 else "control"


@dataclass(frozen=True)
class RenderedAnimal:
    """What `render_animal` wrote. `frames_sha256`: of the greys before the codec."""

    animal: int
    frames_sha256: str
    bouts: dict[str, int]


def render_animal(plan: StudyPlan, animal: int, folder: Path) -> RenderedAnimal:
    """Write videos/NAME.mp4, annotations/NAME.tsv and true_labels/NAME.npy. Raises UserError for a full disk."""

    def generator(purpose: str) -> np.random.Generator:
        return numpy_generator(plan.seed, f"renderer/{purpose}", 0, animal)

    name = plan.name_of(animal)
    schedule = make_schedule(plan.frames, generator("schedule"))
    label_N = labels_of(schedule)
    poses = make_poses(schedule, generator("poses"))
    look = draw_look(generator("look"), is_test=plan.split_of(animal) == "test")
    scene = make_scene(look, plan.size, generator("scene"))
    flicker_N = noise(plan.frames, FLICKER_FRAMES, generator("flicker"))
    pixels, digest = generator("pixels"), hashlib.sha256()

    def blocks() -> Iterator[NDArray[np.uint8]]:
        for first in range(0, plan.frames, BLOCK_FRAMES):
            part = slice(first, min(plan.frames, first + BLOCK_FRAMES))
            block = poses.block(part.start, part.stop)
            frames_NHW = draw_frames(scene, block, flicker_N[part], pixels, plan.contrast, plan.noise)
            digest.update(frames_NHW.data)
            yield frames_NHW

    for place in ("videos", "annotations", "true_labels"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    write_mp4(folder / "videos" / f"{name}.mp4", blocks(), FPS, threads=1)
    events = noted_events(label_N, generator("edges"))
    annotation = Annotation(f"{name}.mp4", events, FPS, plan.frames / FPS, observation=name)
    np.save(folder / "true_labels" / f"{name}.npy", label_N.astype(np.uint8))
    write_boris_events(folder / "annotations" / f"{name}.tsv", [annotation])  # last: then the animal is complete
    bouts = {label: sum(event.behavior == label for event in events) for label in CLASSES}
    return RenderedAnimal(animal, digest.hexdigest(), bouts)


def noted_events(label_N: NDArray[np.int64], generator: np.random.Generator) -> tuple[Event, ...]:
    """The bouts as a human notes them: all edges between two behaviours are up to two frames off, and none is lost.

    An edge lies half a frame before the first frame that it changes, so rounding of the times changes nothing.
    """
    edge_E = np.flatnonzero(np.diff(label_N)) + 1
    moved_E = edge_E + generator.integers(-JITTER_FRAMES, JITTER_FRAMES + 1, len(edge_E))
    bounds = [0, *edge_E.tolist(), len(label_N)]
    for i, moved in enumerate(moved_E.tolist(), start=1):  # a bout keeps a frame
        bounds[i] = (
            min(max(moved, bounds[i - 1] + 1), bounds[i + 1] - 1) if bounds[i + 1] - bounds[i - 1] > 1 else moved
        )
    last = len(bounds) - 1
    times_s = [0.0 if i == 0 else (bound - (0.5 if i < last else 0.0)) / FPS for i, bound in enumerate(bounds)]
    names = [CLASSES[label] for label in label_N[[0, *edge_E.tolist()]].tolist()]
    return tuple(
        Event(name, start_s, stop_s, subject="mouse")
        for name, start_s, stop_s in zip(names, times_s[:-1], times_s[1:], strict=True)
    )
