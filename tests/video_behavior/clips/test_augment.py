"""Augmentation, compared with a slow one that changes one clip at a time.

Legend: B clips, T frames, H height, W width, C classes, K pictures of noise.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from ranks import UserError, rng
from ranks.workloads.video_behavior.clips.augment import (
    NUM_NOISE,
    NUM_RANDOM,
    augment,
    mirror_line,
    mirrored_classes,
    noise_pictures,
    rotated,
    scaled,
    shifts,
)
from ranks.workloads.video_behavior.config import AugmentConfig

CLASSES = ("rest", "turn_L", "turn_R")
IDS = torch.arange(40, 56)
KEY = rng.key(3, "augment", 7)
SIZE = 8
NOISE_KHW = noise_pictures(SIZE)


def example() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    clips_BTHW = torch.randint(0, 256, (len(IDS), 3, SIZE, SIZE), generator=random, dtype=torch.uint8)
    return clips_BTHW, torch.eye(3, dtype=torch.uint8)[torch.arange(len(IDS)) % 3]


def slow(clips_BTHW: Tensor, label_BC: Tensor, cfg: AugmentConfig) -> tuple[np.ndarray, np.ndarray]:
    """The same changes, one clip and one pixel at a time, in NumPy."""
    random_BD = rng.uniform(KEY, IDS, NUM_RANDOM).tolist()
    clips, labels = [], []
    for clip, label, (across, down, turn, contrast, light, noise, first) in zip(
        clips_BTHW.numpy(), label_BC.tolist(), random_BD, strict=True
    ):
        flips = 0
        if cfg.flips and across < 0.5:
            clip, flips = clip[:, :, ::-1], flips + 1
        if cfg.flips and down < 0.5:
            clip, flips = clip[:, ::-1], flips + 1
        if flips == 1:
            label = [label[0], label[2], label[1]]
        angle = (2 * turn - 1) * math.radians(cfg.rotation_degrees)
        clip = np.stack([slowly_rotated(frame / 255, angle) for frame in clip.astype(np.float64)])
        factor, mean = 1 + cfg.contrast * (2 * contrast - 1), clip.mean()
        clip = (clip - mean) * factor + mean + cfg.brightness * (2 * light - 1)
        noise_T = [NOISE_KHW[(int(first * NUM_NOISE) + at) % NUM_NOISE].numpy() for at in range(len(clip))]
        clips.append(clip + cfg.noise * (2 * noise - 1) * np.stack(noise_T))
        labels.append(label)
    return np.stack(clips), np.array(labels)


def slowly_rotated(frame_HW: np.ndarray, angle: float) -> np.ndarray:
    """Each pixel of the result looks up its place before the rotation, between four pixels."""
    height, width = frame_HW.shape
    out = np.zeros_like(frame_HW)
    for row in range(height):
        for column in range(width):
            y, x = row - (height - 1) / 2, column - (width - 1) / 2
            from_x = math.cos(angle) * x - math.sin(angle) * y + (width - 1) / 2
            from_y = math.sin(angle) * x + math.cos(angle) * y + (height - 1) / 2
            from_x, from_y = min(max(from_x, 0), width - 1), min(max(from_y, 0), height - 1)
            left, top = int(from_x), int(from_y)
            right, bottom = min(left + 1, width - 1), min(top + 1, height - 1)
            dx, dy = from_x - left, from_y - top
            above = frame_HW[top, left] * (1 - dx) + frame_HW[top, right] * dx
            below = frame_HW[bottom, left] * (1 - dx) + frame_HW[bottom, right] * dx
            out[row, column] = above * (1 - dy) + below * dy
    return out


@pytest.mark.parametrize(
    "cfg",
    [
        AugmentConfig(rotation_degrees=0, brightness=0, contrast=0, noise=0),
        AugmentConfig(flips=False, rotation_degrees=30, brightness=0, contrast=0, noise=0),
        AugmentConfig(flips=False, rotation_degrees=0, brightness=0, contrast=0, noise=0.5),
        AugmentConfig(),
    ],
)
def test_it_changes_clips_as_the_slow_one_does(cfg: AugmentConfig) -> None:
    clips_BTHW, label_BC = example()
    partner_C = torch.tensor(mirrored_classes(CLASSES))
    found, labels = augment(clips_BTHW, label_BC, partner_C, NOISE_KHW, cfg, KEY, IDS)
    expected, expected_labels = slow(clips_BTHW, label_BC, cfg)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-4)
    np.testing.assert_array_equal(labels.numpy(), expected_labels)
    assert len({tuple(row) for row in (labels - label_BC.int()).tolist()}) > 1 or not cfg.flips


def test_a_clip_is_changed_in_the_same_way_in_any_batch() -> None:
    clips_BTHW, label_BC = example()
    partner_C = torch.tensor([0, 2, 1])
    whole = augment(clips_BTHW, label_BC, partner_C, NOISE_KHW, AugmentConfig(), KEY, IDS)
    part = augment(clips_BTHW[5:9], label_BC[5:9], partner_C, NOISE_KHW, AugmentConfig(), KEY, IDS[5:9])
    assert all(torch.equal(one[5:9], other) for one, other in zip(whole, part, strict=True))


def test_time_keeps_its_direction() -> None:
    """Grey values that rise from frame to frame still rise."""
    rising_BTHW = (torch.arange(5)[:, None, None] * 50).expand(64, 5, 8, 8).to(torch.uint8)
    label_BC, partner_C = torch.ones(64, 1, dtype=torch.uint8), torch.tensor([0])
    found, _ = augment(rising_BTHW, label_BC, partner_C, NOISE_KHW, AugmentConfig(), KEY, torch.arange(64))
    assert (found.mean((2, 3)).diff(dim=1) > 0).all()


def test_without_changes_only_the_scale_is_changed() -> None:
    clips_BTHW, label_BC = example()
    off = AugmentConfig(flips=False, rotation_degrees=0, brightness=0, contrast=0, noise=0, jitter_frames=0)
    found, labels = augment(clips_BTHW, label_BC, torch.tensor([0, 1, 2]), NOISE_KHW, off, KEY, IDS)
    torch.testing.assert_close(found, scaled(clips_BTHW))
    assert torch.equal(labels, label_BC)
    assert shifts(off, KEY, IDS).tolist() == [0] * len(IDS)
    assert set(shifts(AugmentConfig(jitter_frames=2), KEY, torch.arange(100)).tolist()) == {-2, -1, 0, 1, 2}


def test_a_quarter_turn_moves_every_pixel_to_its_place() -> None:
    clip_BTHW = torch.arange(16.0).view(1, 1, 4, 4)
    found = rotated(clip_BTHW, torch.tensor([math.pi / 2]))
    torch.testing.assert_close(found, clip_BTHW.rot90(1, (2, 3)), atol=1e-4, rtol=0)


def test_mirrors_swap_the_sides_of_classes() -> None:
    names = ("rest", "turn_L", "Left paw", "turn_R", "paw-left", "Right paw", "paw-right", "leftover")
    assert mirrored_classes(names) == [0, 3, 5, 1, 6, 2, 4, 7]
    with pytest.raises(UserError, match="no class 'turn_R'"):
        mirrored_classes(("rest", "turn_L"))


def test_mirrors_swap_the_sides_in_joined_words() -> None:
    names = ("TurnLeft", "TurnRight", "turnL", "turnR", "LTurn", "RTurn", "leftPaw", "rightPaw", "left1", "right1")
    assert mirrored_classes(names) == [1, 0, 3, 2, 5, 4, 7, 6, 9, 8]
    alone = ("upright", "L1", "Rearing", "righting", "ALL", "BR")
    assert mirrored_classes(alone) == list(range(6))
    with pytest.raises(UserError, match="no class 'RightPawLick'"):
        mirrored_classes(("rest", "LeftPawLick"))


def test_mirrors_swap_rotations_and_sides_of_a_lesion() -> None:
    names = ("clockwise", "anti-clockwise", "turn CW", "turn CCW", "ipsilateral turn", "contralateral turn", "clock")
    assert mirrored_classes(names) == [1, 0, 3, 2, 5, 4, 6]
    assert mirrored_classes(("CounterClockwise", "Clockwise")) == [1, 0]
    line = mirror_line(names, mirrored_classes(names))
    assert "exchanges clockwise and anti-clockwise, turn CW and turn CCW, ipsilateral" in line
    assert "no class changes" in mirror_line(("rest", "groom"), [0, 1])
