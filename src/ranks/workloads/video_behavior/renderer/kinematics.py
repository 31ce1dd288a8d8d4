"""How the mouse moves: a schedule becomes the pose of each frame.

Lengths are in body units: the trunk is about 0.9 long. The origin of the arena is the centre of the picture.

Lick, shake and withdraw move one hind paw and the head between the same poses, equally often. They differ in the order:

    withdraw   up in 2 frames, down slowly           |\\_      one cycle
    lick       up slowly, down in 2 frames           _/|      many cycles: the withdrawal's film played backwards
    shake      up and down in the same time, fast    /\\/\\    many cycles

So neither one frame, nor the frames in random order, nor those in reverse order tell them apart.

Legend: N frames, P = 4 paws (front left, front right, hind left, hind right).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranks.workloads.video_behavior.renderer.schedule import (
    ACTIVE,
    LICK,
    SHAKE,
    WALK,
    WITHDRAW,
    Segment,
    labels_of,
)

Floats = NDArray[np.float64]

ARENA = 0.27
"""The mouse turns back where it is so far from the centre of the arena, in body units."""
JUMP_FRAMES = 2
"""Frames of the fast half of a withdrawal or lick."""
LICK_PERIOD, SHAKE_PERIOD = (10.0, 14.0), (5.0, 7.0)
"""Frames of a cycle, at 30 frames a second."""
GLANCE_FRAMES = 120
"""Frames between two glances, on average."""
GAIT_SWING = 0.4
"""The share of a step in which the paw is in the air."""
STEP_LENGTH = 0.26
"""How far the body moves in one cycle of all paws."""


@dataclass(frozen=True)
class Poses:
    """The pose of the mouse in N frames."""

    x_N: Floats
    y_N: Floats
    heading_N: Floats
    """Radians, counterclockwise from x."""
    stretch_N: Floats
    """Length of the trunk over its mean; the width shrinks by the same factor."""
    breath_N: Floats
    """Width of the trunk over its mean."""
    head_N: Floats
    """Turn of the head against the trunk, radians."""
    tail_N: Floats
    """Bend of the tail, radians from root to tip."""
    paw_forward_NP: Floats
    """Shift of each paw from its place, in body units."""
    paw_lift_NP: Floats
    """Height of each paw above the floor, 0 to 1."""
    raise_N: Floats
    """How far the raised hind paw is drawn in, 0 (on the floor) to 1 (at the mouth)."""
    side_N: Floats
    """The raised hind paw: +1 left, -1 right."""

    def block(self, start: int, stop: int) -> Poses:
        """The poses of some frames."""
        return Poses(**{name: values[start:stop] for name, values in vars(self).items()})

    def matrix(self) -> Floats:
        """float64[N, D]: all parameters of the pose, for checks."""
        columns = [values[:, None] if values.ndim == 1 else values for values in vars(self).values()]
        return np.concatenate(columns, axis=1)


def make_poses(schedule: tuple[Segment, ...], generator: np.random.Generator) -> Poses:
    """The pose of each frame of a schedule."""
    label_N = labels_of(schedule)
    num = len(label_N)
    raise_N, side_N = _raised_paw(schedule, generator)
    active_N, walk_N = smooth(label_N == ACTIVE, 3), smooth(label_N == WALK, 2)
    bursts_N = np.clip(0.6 + 0.5 * noise(num, 10, generator), 0.2, 1.4) * active_N

    speed_N = walk_N * np.clip(0.018 + 0.004 * noise(num, 30, generator), 0.009, 0.028)
    speed_N += 0.004 * bursts_N * noise(num, 6, generator)
    turn_N = 0.035 * walk_N * noise(num, 25, generator) + 0.022 * bursts_N * noise(num, 7, generator)
    x_N, y_N, heading_N = _path(speed_N, turn_N, walk_N, generator)

    look_N = 0.42 * noise(num, 150, generator) + 0.50 * bursts_N * noise(num, 5, generator) + _glances(num, generator)
    head_N = np.clip(look_N, -0.9, 0.9) * (1 - 0.85 * np.minimum(raise_N * 3, 1)) + side_N * _turn_to_paw(raise_N)
    phase_N = np.cumsum(np.abs(speed_N) / STEP_LENGTH + 0.05 * np.clip(bursts_N, 0, 1)) + generator.random()
    forward_NP, lift_NP = _gait(phase_N, np.maximum(walk_N, 0.35 * np.clip(bursts_N, 0, 1)))
    place_NP = 0.018 * np.stack([noise(num, 90, generator) for _ in range(4)], axis=1)
    breath_N = 0.015 * np.sin(2 * np.pi * (np.arange(num) * generator.uniform(0.07, 0.1) + generator.random()))
    return Poses(
        x_N=x_N,
        y_N=y_N,
        heading_N=heading_N,
        stretch_N=1 + 0.05 * walk_N + 0.04 * noise(num, 60, generator) + 0.03 * bursts_N * noise(num, 8, generator),
        breath_N=1 + breath_N,
        head_N=head_N,
        tail_N=0.9 * noise(num, 80, generator) + 0.25 * walk_N * noise(num, 8, generator),
        paw_forward_NP=forward_NP + place_NP,
        paw_lift_NP=lift_NP,
        raise_N=raise_N,
        side_N=side_N,
    )


def paw_wave(label: int, frames: int, generator: np.random.Generator) -> Floats:
    """float64[frames] in 0..1: how the raised paw moves in a bout of lick, shake or withdraw."""
    time_N = np.arange(1, frames + 1, dtype=np.float64)
    if label == WITHDRAW:
        return _sawtooth(time_N / (frames + 1), JUMP_FRAMES / (frames + 1))
    if label == LICK:
        period = generator.uniform(*LICK_PERIOD)
        cycles = max(1, round((frames + 1) / period))
        phase_N = time_N / (frames + 1) * cycles % 1
        return _sawtooth(phase_N, 1 - JUMP_FRAMES * cycles / (frames + 1))
    assert label == SHAKE, label
    return _sawtooth((time_N / generator.uniform(*SHAKE_PERIOD)) % 1, 0.5)


def noise(num: int, scale: float, generator: np.random.Generator) -> Floats:
    """float64[num]: Gaussian noise of variance 1, smoothed over `scale` frames."""
    half = int(3 * scale)
    white = generator.standard_normal(num + 2 * half)
    kernel = np.exp(-0.5 * (np.arange(-half, half + 1) / scale) ** 2)
    smoothed = _convolve(white, kernel / np.sqrt((kernel**2).sum()))
    return smoothed[half : half + num]


def smooth(is_on_N: NDArray[np.bool_], scale: float) -> Floats:
    """A mask with soft edges."""
    half = int(3 * scale)
    kernel = np.exp(-0.5 * (np.arange(-half, half + 1) / scale) ** 2)
    padded = np.pad(is_on_N.astype(np.float64), half, mode="edge")
    return _convolve(padded, kernel / kernel.sum())[half : half + len(is_on_N)]


def _convolve(signal: Floats, kernel: Floats) -> Floats:
    """The middle part of a convolution, by FFT."""
    size = len(signal) + len(kernel) - 1
    whole = np.fft.irfft(np.fft.rfft(signal, size) * np.fft.rfft(kernel, size), size)
    first = len(kernel) // 2
    return whole[first : first + len(signal)]


def _sawtooth(phase_N: Floats, peak: float) -> Floats:
    """From 0 at phase 0 up to 1 at `peak` and down to 0 at phase 1."""
    return np.where(phase_N < peak, phase_N / peak, (1 - phase_N) / (1 - peak))


def _glances(num: int, generator: np.random.Generator) -> Floats:
    """The head turns a little now and then, in rest too: radians."""
    starts_N = generator.random(num) < 1 / GLANCE_FRAMES
    turns_N = np.where(starts_N, generator.uniform(-0.5, 0.5, num), 0.0)
    kernel = np.exp(-0.5 * (np.arange(-30, 31) / 12) ** 2) * np.tanh(np.arange(-30, 31) / 3 + 4)
    return _convolve(np.pad(turns_N, 30), kernel)[30 : 30 + num]


def _turn_to_paw(raise_N: Floats) -> Floats:
    """The head turns to the raised paw: radians."""
    return 0.25 * np.minimum(raise_N * 3, 1) + 0.75 * raise_N


def _raised_paw(schedule: tuple[Segment, ...], generator: np.random.Generator) -> tuple[Floats, Floats]:
    """(raise_N, side_N). The side changes only while the paw is on the floor."""
    raised: list[Floats] = []
    sides: list[Floats] = []
    side, base = 1.0, 0.0
    for segment in schedule:
        frames = segment.frames
        ramp_N = _ease(np.arange(1, frames + 1) / (frames + 1))
        if segment.role in ("rise", "guard"):
            side = float(generator.choice([-1.0, 1.0]))
            base = float(generator.uniform(0.10, 0.30))
        if segment.role == "rise":
            raised.append(base * np.minimum(1, 1.5 * ramp_N))
        elif segment.role == "sink":
            raised.append(base * np.minimum(1, 1.5 * ramp_N[::-1]))
        elif segment.role == "bout":
            raised.append(base + (0.95 - base) * generator.uniform(0.5, 1) * paw_wave(segment.label, frames, generator))
        elif segment.role == "guard":
            level_N = np.clip(generator.uniform(0.1, 0.95) + 0.12 * noise(frames, 12, generator), 0, 1)
            edge = min(18, frames // 2)
            edge_N = _ease(np.minimum(1, (1 + np.minimum(np.arange(frames), np.arange(frames)[::-1])) / edge))
            raised.append(level_N * edge_N)
        else:
            raised.append(np.zeros(frames))
        sides.append(np.full(frames, side))
    return np.concatenate(raised), np.concatenate(sides)


def _ease(share_N: Floats) -> Floats:
    """0 to 1 with a soft start and end."""
    return share_N * share_N * (3 - 2 * share_N)


def _gait(phase_N: Floats, amount_N: Floats) -> tuple[Floats, Floats]:
    """(forward, lift) of the four paws: a trot, the diagonal pairs in turn.

    In stance a paw stays where it is while the body moves on, so it shifts back at constant speed; in swing it is in
    the air and moves forward.
    """
    phase_NP = (phase_N[:, None] + np.array([0.0, 0.5, 0.5, 0.0])) % 1
    stance_NP = phase_NP < 1 - GAIT_SWING
    swing_NP = np.clip((phase_NP - (1 - GAIT_SWING)) / GAIT_SWING, 0, 1)
    half = STEP_LENGTH * (1 - GAIT_SWING) / 2
    back_NP = half * (1 - 2 * phase_NP / (1 - GAIT_SWING))
    ahead_NP = -half * np.cos(np.pi * swing_NP)
    lift_NP = np.where(stance_NP, 0, np.sin(np.pi * swing_NP))
    return np.where(stance_NP, back_NP, ahead_NP) * amount_N[:, None], lift_NP * np.minimum(1, 2 * amount_N)[:, None]


def _path(
    speed_N: Floats, turn_N: Floats, walk_N: Floats, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """(x, y, heading): the mouse turns towards the centre where it walks near the edge of the arena."""
    num = len(speed_N)
    x_N, y_N, heading_N = np.empty(num), np.empty(num), np.empty(num)
    heading = generator.uniform(-np.pi, np.pi)
    x, y = generator.uniform(-0.5, 0.5, 2) * ARENA
    for i, (speed, turn, walk) in enumerate(zip(speed_N.tolist(), turn_N.tolist(), walk_N.tolist(), strict=True)):
        far = max(0.0, float(np.hypot(x, y)) / ARENA - 0.5)
        off = (float(np.arctan2(-y, -x)) - heading + np.pi) % (2 * np.pi) - np.pi
        heading += turn + 0.07 * walk * min(far, 1.0) * float(np.clip(off, -1, 1))
        x, y = x + speed * float(np.cos(heading)), y + speed * float(np.sin(heading))
        reach = max(1.0, float(np.hypot(x, y)) / (1.2 * ARENA))
        x, y = x / reach, y / reach
        x_N[i], y_N[i], heading_N[i] = x, y, heading
    return x_N, y_N, heading_N
