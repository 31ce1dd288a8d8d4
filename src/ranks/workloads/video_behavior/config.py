"""Settings of video-behavior. This module imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from ranks.engine.config import OptimConfig, at_least, free
from ranks.errors import UserError

BLOCKS = {"r2plus1d-s": (1, 2, 3, 6), "x3d-s": (1, 2, 5, 9), "mouse3d": (1, 1, 1, 1)}
"""Residual blocks of each stage: about 3 million parameters at width 24, and 5 to 6 GFLOP a clip of 17 x 256 x 256."""
HALVES_TIME = (1, 2)
"""The stages that halve time, see net/layers.py."""
Split: TypeAlias = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = ("train", "val", "test")


def _words(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


@dataclass(frozen=True)
class RenderedConfig:
    """The built-in study: a bottom-view mouse, rendered to videos and BORIS files. Used without --data."""

    animals: int = 40
    """Animals of the study; a fifth is for validation, a fifth for the test."""
    seconds: float = 360.0
    """Length of the video of each animal. With 360, the test animals have 60 or more of the rarest bouts."""
    seed: int = 0
    """Seed of the rendered study. The run's --seed does not change it."""
    size: int | None = None
    """Height and width of the rendered videos, an even number; by default that of the clips. Videos of another size are
    resized to the clips' when they are cached."""
    contrast: float = 1.0
    """Factor of the contrast of all videos."""
    noise: float = 1.0
    """Factor of the camera's noise."""

    def __post_init__(self) -> None:
        if self.animals < 5 or not 10 <= self.seconds <= 36_000 or self.seed < 0:
            asked = f"--rendered.animals {self.animals} --rendered.seconds {self.seconds} --rendered.seed {self.seed}"
            found = "a study has 5 animals or more, of 10 to 36,000 seconds, and a seed of 0 or more"
            raise UserError(asked, found, "change them")
        size_is_wrong = self.size is not None and (not 16 <= self.size <= 1024 or self.size % 2 == 1)
        if size_is_wrong or not 0 < self.contrast <= 4 or not 0 <= self.noise <= 20:
            asked = f"--rendered.size {self.size} --rendered.contrast {self.contrast} --rendered.noise {self.noise}"
            found = "the size is an even number from 16 to 1,024, contrast is above 0 and at most 4, noise 0 to 20"
            raise UserError(asked, found, "change them")


@dataclass(frozen=True)
class ClipConfig:
    """A clip: frames around the frame that it labels."""

    frames: int = 17
    """Frames of a clip: 9, 17, 25, ... where the net halves time, as by default; for mouse3d any odd number."""
    stride: int = 1
    """Every so many frames of the video."""
    size: int = 256
    """Height and width in pixels. Videos are resized to it once, when they are cached."""
    fit: Literal["as-cached", "letterbox", "crop"] = "as-cached"
    """letterbox keeps the whole frame with black bars, crop its centre. as-cached: as `ranks video-behavior cache` did,
    else letterbox. A run keeps what it found."""
    crop: str = ""
    """Only this rectangle of each frame, before it is resized: x,y,width,height in pixels. A run keeps it."""
    shuffle: bool = False
    """The frames around the labelled one in a random order, another one for each clip: a control, which shows how much
    a net needs their order."""

    def __post_init__(self) -> None:
        if self.crop and self.fit == "as-cached":
            do = "give --clips.fit letterbox or --clips.fit crop too"
            raise UserError(f"--clips.crop {self.crop}", "--clips.fit as-cached has the crop of the cache", do)
        if self.frames < 1 or self.frames % 2 == 0:
            found = "a clip has as many frames before its labelled frame as after it"
            raise UserError(f"--clips.frames {self.frames}", found, "give an odd number, such as 17")
        if self.stride < 1 or self.size < 16:
            asked = f"--clips.stride {self.stride} --clips.size {self.size}"
            raise UserError(asked, "a stride is 1 or more, a size 16 or more", "raise them")


@dataclass(frozen=True)
class AugmentConfig:
    """Random changes of training clips. Clips are never reversed in time."""

    flips: bool = True
    """Mirror clips from left to right and from top to bottom. One mirroring swaps classes NAME_L and NAME_R."""
    rotation_degrees: float = 10.0
    """Largest rotation."""
    brightness: float = 0.1
    """Largest change of brightness, as a share of white."""
    contrast: float = 0.2
    """Largest change of contrast: factors from 0.8 to 1.2 at 0.2."""
    noise: float = 0.02
    """Largest standard deviation of the noise that is added to each pixel of each frame, as a share of white."""
    jitter_frames: int = 1
    """Most frames by which a clip is shifted from the frame that it labels."""

    def __post_init__(self) -> None:
        for name, most in (("rotation_degrees", 180), ("brightness", 1), ("contrast", 1), ("noise", 1)):
            if not 0 <= getattr(self, name) <= most:
                flag = f"--augment.{name.replace('_', '-')}"
                raise UserError(f"{flag} {getattr(self, name)}", f"it is 0 to {most}", "give a number in this range")
        if self.jitter_frames < 0:
            raise UserError(f"--augment.jitter-frames {self.jitter_frames}", "it is 0 or more", "give 0 or more")


@dataclass(frozen=True)
class VideoNetConfig:
    """The network."""

    name: Literal["r2plus1d-s", "x3d-s", "mouse3d"] = "r2plus1d-s"
    """r2plus1d-s: convolutions in space, then in time. x3d-s: depthwise. mouse3d: the origin's net, to compare with."""
    width: int = 24
    """Channels of the first stage; each of the next three stages has twice as many. Not for mouse3d."""
    blocks: tuple[int, ...] | None = None
    """Residual blocks of each stage; by default 1,2,3,6, for x3d-s 1,2,5,9. Not for mouse3d."""
    stem_stride: tuple[int, int, int] = (1, 2, 2)
    """Stride of the first convolution in time, height and width; 2,4,4 saves memory. Not for mouse3d."""
    norm: Literal["batch", "group"] = "batch"
    """The norm of mouse3d. batch is the origin's, and --exact rejects it. The other nets have group norm."""

    def __post_init__(self) -> None:
        blocks = self.blocks_of_stages
        if self.width < 1 or min((*blocks, *self.stem_stride), default=0) < 1 or not 1 <= len(blocks) <= 5:
            asked = (
                f"--net.width {self.width} --net.blocks {_words(blocks)} --net.stem-stride {_words(self.stem_stride)}"
            )
            raise UserError(asked, "all are 1 or more, and there are 1 to 5 stages", "change them")

    @property
    def blocks_of_stages(self) -> tuple[int, ...]:
        """Residual blocks of each stage."""
        return self.blocks if self.blocks is not None else BLOCKS[self.name]

    @property
    def time_stride(self) -> int:
        """Every so many frames of a clip is one at the end of the net."""
        if self.name == "mouse3d":
            return 1
        return self.stem_stride[0] * 2 ** sum(stage < len(self.blocks_of_stages) for stage in HALVES_TIME)


@dataclass(frozen=True)
class Config:
    """Settings of a video-behavior run."""

    data: Path | None = free(None)
    """A dataset.csv, or the folder that holds it. Without it: the rendered study."""
    store: Path | None = free(None)
    """The folder that `ranks video-behavior cache --out` filled. By default store-SIZE in the folder of dataset.csv."""
    rendered: RenderedConfig = RenderedConfig()
    clips: ClipConfig = ClipConfig()
    augment: AugmentConfig = AugmentConfig()
    net: VideoNetConfig = VideoNetConfig()
    optim: OptimConfig = OptimConfig(lr=1e-3, weight_decay=0.05, warmup_updates=200)
    labels: Literal["exclusive", "multi"] = "exclusive"
    """exclusive: one behaviour at a time, a softmax. multi: behaviours may overlap, a sigmoid for each."""
    unlabelled: Literal["background", "ignore"] = "background"
    """Frames without a code are the background class, or are left out of training and metrics."""
    subject: str | None = None
    """Only events of this subject of the annotations."""
    background: str = ""
    """The class of frames without a code: by default "background", or the behaviour with the most time where codes
    cover every frame. A run keeps it."""
    uncoded: str = "background"
    """The class that is no behaviour in what `predict` writes: the background, where no annotation names it. A run
    keeps what its study says."""
    merge: str = ""
    """Behaviours to rename: 3->1,5->1 makes one class of three."""
    classes: tuple[str, ...] = ()
    """Names of the classes, the background first. By default those of the study; a run keeps them."""
    split: tuple[str, ...] = ()
    """The split of each animal, as m1:train m2:test. By default that of dataset.csv, or a new one where its column is
    empty. A run keeps it, so that no animal of its training is ever in its test."""
    video_split: tuple[str, ...] = free(())
    """The split of each video, as day1/m1.mp4:train. A run keeps it too, for animals that get other names later."""
    imbalance: Literal["balanced", "weights", "logit-adjustment", "none"] = "balanced"
    """What helps rare classes: they are sampled more often, weigh more in the loss, or get larger logits in it."""
    imbalance_power: float = 0.5
    """0: classes count by their shares of the frames; 1: all classes count the same."""
    bout_power: float = 0.5
    """How often a bout is sampled, by its length: 1 is in proportion to it, 0 is as often as the shortest."""
    epoch_clips: int = 25_600
    """Clips of an epoch, a whole number of batches. In each epoch every class gets its share."""
    global_batch: int = 128
    """Clips per update, on all ranks together."""
    iterations: int = free(4_000)
    """Updates of the whole run."""
    eval_every: int = free(200)
    """Iterations between validations; the default is an epoch of 25,600 clips."""
    workers: int = free(0)
    """Processes of each rank that read clips ahead, where the device does not hold all frames."""
    eval_stride: int = 1
    """Validation during training looks at every so many frames. `ranks evaluate` looks at all."""

    def __post_init__(self) -> None:
        at_least(1, self, "epoch_clips", "global_batch", "iterations", "eval_every", "eval_stride")
        if self.labels == "multi" and self.unlabelled == "ignore":
            found = "where behaviours may overlap, a frame without a code shows none of them"
            raise UserError("--labels multi --unlabelled ignore", found, "leave --unlabelled out")
        for flag, what, kept in (("--split", "ANIMAL", self.split), ("--video-split", "VIDEO", self.video_split)):
            wrong = next((each for each in kept if each.rpartition(":")[2] not in SPLITS or each[0] == ":"), None)
            if wrong is not None:
                found = f"'{wrong}' is not {what}:{'|'.join(SPLITS)}"
                raise UserError(f"{flag} {' '.join(kept)}", found, f"write m1:train, or leave {flag} out")
        step = 2 * self.net.time_stride
        if (self.clips.frames - 1) % step:
            found = (
                f"the net halves time, and keeps the labelled frame in the middle of 1, {step + 1}, {2 * step + 1}, ..."
            )
            raise UserError(f"--clips.frames {self.clips.frames}", found, "give one of those")
        for name in ("imbalance_power", "bout_power"):
            if not 0 <= getattr(self, name) <= 1:
                flag = f"--{name.replace('_', '-')}"
                raise UserError(f"{flag} {getattr(self, name)}", "it is 0 to 1", "give a number in this range")

    @property
    def updates_per_epoch(self) -> int:
        """Whole batches that hold the clips of an epoch."""
        return -(-self.epoch_clips // self.global_batch)


def small() -> Config:
    """17 x 64 x 64 on 2 CPU cores: about 15 minutes of training, plus the time to render and cache the study."""
    return replace(
        Config(),
        clips=ClipConfig(size=64),
        net=VideoNetConfig(width=16, blocks=(1, 1, 2, 1), stem_stride=(1, 4, 4)),
        optim=OptimConfig(lr=3e-3, weight_decay=0.05, warmup_updates=100),
        epoch_clips=6_400,
        global_batch=32,
        iterations=9_000,
        eval_every=500,
        eval_stride=16,
    )


def demo() -> Config:
    """3 to 5 minutes on 2 CPU cores, with a small rendered study of 10 animals."""
    rendered = RenderedConfig(animals=10, seconds=30.0)
    return replace(small(), rendered=rendered, iterations=400, epoch_clips=3_200, eval_every=100)


PRESETS: dict[str, Callable[[], Config]] = {"full": Config, "small": small, "demo": demo}
"""full: 3 million parameters, 17 x 256 x 256, for a GPU; give --precision bf16 there."""
