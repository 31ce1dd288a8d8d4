"""What a rendered mouse does in each frame: a schedule of segments with the class shares of a study.

A study of pain has long rests and a few short withdrawals. Shares of the frames:

    rest 54 %   active 25 %   walk 12 %   lick 5 %   shake 3 %   withdraw 1 %

Licks, shakes and withdrawals happen at a raised hind paw. The paw rises slowly before each bout and sinks slowly after
it; both parts are labelled rest. It is also raised without a bout (`guard`), in rest and while active. So a raised paw
alone says nothing about the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

CLASSES = ("rest", "active", "walk", "lick", "shake", "withdraw")
SHARES = (0.54, 0.25, 0.12, 0.05, 0.03, 0.01)
REST, ACTIVE, WALK, LICK, SHAKE, WITHDRAW = range(6)

Role: TypeAlias = Literal["plain", "rise", "bout", "sink", "guard"]
"""What the hind paw does: on the floor, rising before a bout, moving in it, sinking after it, raised without one."""

BOUT_FRAMES = {ACTIVE: (24, 110), WALK: (24, 66), LICK: (10, 30), SHAKE: (9, 23), WITHDRAW: (9, 15)}
"""Shortest and longest bout in frames at 30 frames a second, before the lengths are scaled to the share."""
RISE_FRAMES, GUARD_FRAMES = (14, 26), (36, 70)
GUARDS_A_BOUT = 0.3
"""Raised paws without a bout, for each one with a bout."""
GUARDED_ACTIVE = 0.3
"""The share of active bouts with a raised paw."""


@dataclass(frozen=True)
class Segment:
    """Some frames of one class."""

    label: int
    frames: int
    role: Role = "plain"


def make_schedule(num_frames: int, generator: np.random.Generator) -> tuple[Segment, ...]:
    """Segments of `num_frames` frames in all, with the shares of SHARES."""
    frames_of = [round(share * num_frames) for share in SHARES]
    bouts = {label: bout_lengths(frames_of[label], *BOUT_FRAMES[label], generator) for label in BOUT_FRAMES}
    units = [
        (_raised("rise", generator), Segment(label, frames, "bout"), _raised("sink", generator))
        for label in (LICK, SHAKE, WITHDRAW)
        for frames in bouts[label]
    ]
    low, high = GUARD_FRAMES
    num_guards = round(GUARDS_A_BOUT * len(units))
    units += [(Segment(REST, int(generator.integers(low, high)), "guard"),) for _ in range(num_guards)]
    units += [(Segment(WALK, frames),) for frames in bouts[WALK]]
    for frames in bouts[ACTIVE]:
        is_guarded = frames >= low and generator.random() < GUARDED_ACTIVE
        units.append((Segment(ACTIVE, frames, "guard" if is_guarded else "plain"),))
    ordered = [units[i] for i in generator.permutation(len(units))]
    used = sum(segment.frames for unit in ordered for segment in unit)
    rests = _split(max(0, num_frames - used), len(ordered) + 1, generator)
    segments: list[Segment] = []
    for unit, rest in zip([*ordered, ()], rests, strict=True):
        segments += [Segment(REST, rest), *unit]
    return _cut([segment for segment in segments if segment.frames], num_frames)


def bout_lengths(total: int, low: int, high: int, generator: np.random.Generator) -> list[int]:
    """Bouts of `total` frames in all, of `low` to `high` frames each before they are scaled to the total."""
    count = max(1, round(2 * total / (low + high)))
    return _scaled(generator.uniform(low, high, count), total)


def labels_of(schedule: tuple[Segment, ...]) -> NDArray[np.int64]:
    """int64[N]: the class of each frame."""
    frames = [segment.frames for segment in schedule]
    return np.repeat(np.array([segment.label for segment in schedule], np.int64), frames)


def _raised(role: Role, generator: np.random.Generator) -> Segment:
    return Segment(REST, int(generator.integers(*RISE_FRAMES)), role)


def _split(total: int, parts: int, generator: np.random.Generator) -> list[int]:
    """`total` as a sum of random parts."""
    return _scaled(generator.exponential(size=parts), total)


def _scaled(weights: NDArray[np.float64], total: int) -> list[int]:
    """Whole numbers in proportion to weights, with the sum `total`."""
    edges = np.rint(np.cumsum(weights) / weights.sum() * total).astype(np.int64)
    return np.diff(edges, prepend=0).tolist()


def _cut(segments: list[Segment], num_frames: int) -> tuple[Segment, ...]:
    """The segments up to `num_frames` frames: in a very short video the raised paws do not all fit."""
    kept: list[Segment] = []
    left = num_frames
    for segment in segments:
        if left:
            kept.append(Segment(segment.label, min(left, segment.frames), segment.role))
            left -= kept[-1].frames
    return tuple(kept)
