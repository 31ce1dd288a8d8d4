"""Poses of two rats from DeepLabCut's tables: read, drawn as grey pictures, and measured by distances and speeds.

Legend: N frames, R = 2 rats, K = 5 key points (nose, body, base, middle and end of the tail), H, W pixels, F features.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.workloads.video_behavior.renderer.shapes import Ellipse, draw

Floats = npt.NDArray[np.float32]
KEY_POINTS = ("top", "body", "tail", "tail-m", "tail-e")
FPS = 30
"""The tables do not say it; the code of the data set assumes it."""
LEAST_LIKELIHOOD = 0.6
"""Points below it are missing, as in the code of the data set."""
LONGEST_GAP = 15
"""Frames over which a missing point is interpolated."""
FIELD = 560.0
"""Width and height, in pixels of the camera, that a picture shows; rats move in about 500 x 450."""
SIZE = 64
BLOCK = 32
BACKGROUND, GREYS = 40.0, (235.0, 150.0)
LIMBS = ((0, 1, 2.6), (1, 2, 2.9), (2, 3, 0.8), (3, 4, 0.7))
"""Two key points, and half of the width of what joins them, in pixels of the picture."""
HEAD = 2.0
AWAY = -1e3
SPEED_FRAMES = 5
NAMES = (
    *(f"{one} to {other}" for one, other in product(KEY_POINTS[:3], repeat=2)),
    *(f"{part} of {rat}" for rat in "12" for part in ("top to body", "body to tail", "top to tail")),
    *(f"speed of {part} of {rat}" for rat in "12" for part in KEY_POINTS[:3]),
    "change of body to body",
    "change of top to top",
    "angle of both",
    "angle of 1 to 2",
    "angle of 2 to 1",
)


def read_poses(path: Path) -> Floats:
    """float32[N, R, K, 2]: pixels of the camera, NaN where a point is missing. Raises UserError for another table."""
    asked = f"the poses {path}"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header = [row[1:] for row, _ in zip(csv.reader(file), range(4), strict=False)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(asked, str(error), "give the folder of the data set") from None
    parts = [name for _ in range(2) for name in KEY_POINTS for _ in range(3)]
    if len(header) != 4 or header[2] != parts or header[3] != ["x", "y", "likelihood"] * 10:
        raise UserError(asked, "no table of two rats with five key points each", "give the folder of the data set")
    table_N2K3 = np.genfromtxt(path, np.float32, delimiter=",", skip_header=4)[:, 1:].reshape(-1, 2, 5, 3)
    poses = table_N2K3[..., :2]
    poses[~(table_N2K3[..., 2] >= LEAST_LIKELIHOOD)] = np.nan
    return interpolated(poses)


def interpolated(poses: Floats) -> Floats:
    """The same poses, with gaps of up to LONGEST_GAP frames filled by straight lines. Longer gaps stay."""
    filled = poses.copy()
    frames_N = np.arange(len(poses))
    for rat, point in product(range(poses.shape[1]), range(poses.shape[2])):
        known = np.flatnonzero(~np.isnan(poses[:, rat, point, 0]))
        if len(known) < 2:
            continue
        for axis in range(2):
            line_N = np.interp(frames_N, known, poses[known, rat, point, axis])
            filled[known[0] : known[-1] + 1, rat, point, axis] = line_N[known[0] : known[-1] + 1]
        for before, after in pairwise(known):
            if after - before - 1 > LONGEST_GAP:
                filled[before + 1 : after, rat, point] = np.nan
    return filled


def padded(poses: Floats, num_frames: int) -> Floats:
    """The poses of so many frames: those behind the table's end are missing."""
    more = np.full((max(0, num_frames - len(poses)), *poses.shape[1:]), np.nan, np.float32)
    return np.concatenate([poses, more])


def pictures(poses: Floats) -> Iterator[npt.NDArray[np.uint8]]:
    """uint8[n, H, W]: the two rats in two greys, a block of frames at a time. What is missing is not drawn."""
    known = poses[~np.isnan(poses).any(-1)]
    low, high = np.percentile(known, (1, 99), axis=0) if len(known) else np.zeros((2, 2))
    scaled = (poses - (low + high) / 2) * (SIZE / FIELD) + (SIZE - 1) / 2
    for start in range(0, len(scaled), BLOCK):
        block = scaled[start : start + BLOCK]
        frames_NHW = np.full((len(block), SIZE, SIZE), BACKGROUND, np.float32)
        for rat, grey in enumerate(GREYS):
            for first, second, wide in reversed(LIMBS):
                _limb(frames_NHW, block[:, rat, first], block[:, rat, second], wide, grey)
            _limb(frames_NHW, block[:, rat, 0], block[:, rat, 0], HEAD, 0.6 * grey)
        yield np.clip(np.rint(frames_NHW), 0, 255).astype(np.uint8)


def _limb(frames_NHW: Floats, first_N2: Floats, second_N2: Floats, wide: float, grey: float) -> None:
    """Draw an ellipse from one point to the other, in the frames that have both."""
    shown = np.flatnonzero(~np.isnan(first_N2 + second_N2).any(1))
    if not len(shown):
        return
    first_n2, second_n2 = first_N2[shown], second_N2[shown]
    length_n = np.hypot(*(second_n2 - first_n2).T)
    axis_n2 = (
        np.where(length_n[:, None] > 0, second_n2 - first_n2, [1.0, 0.0]) / np.where(length_n > 0, length_n, 1)[:, None]
    )
    middle_n2 = (first_n2 + second_n2) / 2
    some = frames_NHW[shown]
    fixed = np.ones(len(shown), np.float32)
    shape = Ellipse(
        middle_n2[:, 0], middle_n2[:, 1], axis_n2[:, 0], axis_n2[:, 1], length_n / 2 + wide, wide * fixed, grey * fixed
    )
    draw(some, shape, 0.7)
    frames_NHW[shown] = some


def features(poses: Floats) -> Floats:
    """float32[N, F]: distances within and between the rats, speeds and angles; NaN where a point is missing."""
    one, other = poses[:, 0], poses[:, 1]
    between = [_distance(one[:, a], other[:, b]) for a, b in product(range(3), repeat=2)]
    within = [_distance(poses[:, rat, a], poses[:, rat, b]) for rat in range(2) for a, b in ((0, 1), (1, 2), (0, 2))]
    speeds = [np.hypot(*_change(poses[:, rat, part]).T) for rat in range(2) for part in range(3)]
    closing = [_change(between[at][:, None])[:, 0] for at in (4, 0)]
    ahead, across = [poses[:, rat, 0] - poses[:, rat, 2] for rat in range(2)], other[:, 1] - one[:, 1]
    angles = [_cosine(ahead[0], ahead[1]), _cosine(ahead[0], across), _cosine(ahead[1], -across)]
    return np.stack([*between, *within, *speeds, *closing, *angles], 1).astype(np.float32)


def over_time(features_NF: Floats, frames: int) -> Floats:
    """float32[N, 3F]: the features of each frame, then their means and deviations over the frames around it. `frames`:
    an odd number; fewer at the ends of the video."""
    half = frames // 2
    known_NF = ~np.isnan(features_NF)
    values_NF = np.where(known_NF, features_NF, 0.0).astype(np.float64)
    at = np.arange(len(features_NF))
    first, stop = np.maximum(at - half, 0), np.minimum(at + half + 1, len(at))

    def total(part_NF: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        sums = np.concatenate([np.zeros((1, part_NF.shape[1])), part_NF.cumsum(0)])
        return sums[stop] - sums[first]

    count_NF = total(known_NF.astype(np.float64))
    count_NF[count_NF == 0] = np.nan
    mean_NF = total(values_NF) / count_NF
    deviation_NF = np.sqrt(np.maximum(total(values_NF**2) / count_NF - mean_NF**2, 0))
    return np.concatenate([features_NF, mean_NF, deviation_NF], 1).astype(np.float32)


def _distance(first_N2: Floats, second_N2: Floats) -> Floats:
    return np.hypot(*(first_N2 - second_N2).T)


def _change(values_NA: Floats) -> Floats:
    """How values change in the SPEED_FRAMES frames around each frame, a frame; at the ends in fewer."""
    at = np.arange(len(values_NA))
    half = SPEED_FRAMES // 2
    first, last = np.maximum(at - half, 0), np.minimum(at + half, len(at) - 1)
    return (values_NA[last] - values_NA[first]) / np.maximum(last - first, 1)[:, None]


def _cosine(first_N2: Floats, second_N2: Floats) -> Floats:
    lengths = np.hypot(*first_N2.T) * np.hypot(*second_N2.T)
    return np.where(lengths > 0, (first_N2 * second_N2).sum(1) / np.where(lengths > 0, lengths, 1), np.nan)
