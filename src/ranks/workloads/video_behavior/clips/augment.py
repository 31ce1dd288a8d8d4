"""Random changes of clips, on the device, for all clips of a batch at once.

A clip is mirrored, then rotated, then its brightness and contrast change; the same for all its frames. Then each frame
gets noise of its own. The random numbers of a clip are keyed by (seed, "augment", epoch, number of the clip). Time is
never reversed: some behaviours differ only in the order of their frames.

Legend: B clips, T frames, H height, W width, C classes, D random numbers of a clip, K pictures of noise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ranks.engine.sharding import rng
from ranks.engine.sharding.numpy_rng import numpy_generator
from ranks.errors import UserError
from ranks.workloads.video_behavior.config import AugmentConfig

NUM_RANDOM = 7
NUM_NOISE = 127
"""Pictures of noise. A clip's frames get consecutive ones: to draw new noise takes longer than all else here."""
SIDES = (
    ("l", "r"),
    ("left", "right"),
    ("cw", "ccw"),
    ("clockwise", "counterclockwise"),
    ("ipsi", "contra"),
    ("ipsilateral", "contralateral"),
)
"""Words that a mirror exchanges in the name of a class."""
OTHER_SIDE = {word: other for pair in SIDES for word, other in (pair, pair[::-1])}
SPELLINGS = re.compile(r"(counter|anti)[-_ ]?clockwise", re.IGNORECASE)
PIECE = re.compile(r"[^\W_]+|[\W_]+")
PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z]{2})(?=\d)")
"""Where a word has parts: turn|Left, L|Turn, left|1; not L1, which may be the name of a lever."""


def parts_of(name: str) -> list[str]:
    """The words of a class's name, and what is between them: 'turn_L' -> ['turn', '_', 'L']."""
    pieces = PIECE.findall(SPELLINGS.sub("counterclockwise", name))
    return [part for piece in pieces for part in PARTS.split(piece)]


def other_side(part: str) -> str:
    """'L' -> 'R', 'Left' -> 'Right'; another part stays as it is."""
    other = OTHER_SIDE.get(part.lower(), part)
    if part.isupper():
        return other.upper()
    return other.capitalize() if part[:1].isupper() else other


def mirrored_classes(classes: Sequence[str]) -> list[int]:
    """The class that each class becomes in a mirror: ["turn_L", "turn_R", "rest"] -> [1, 0, 2]. Capitals do not matter.

    Raises UserError where a class of one side has no partner: in a mirror it would have the wrong label.
    """
    place = {"\n".join(parts_of(name)).lower(): number for number, name in enumerate(classes)}
    partners: list[int] = []
    for number, name in enumerate(classes):
        parts = parts_of(name)
        mirrored = [other_side(part) for part in parts]
        if mirrored == parts:
            partners.append(number)
        elif (other := place.get("\n".join(mirrored).lower())) is not None:
            partners.append(other)
        else:
            found = f"the class '{name}' has a side, and there is no class '{''.join(mirrored)}'"
            do = "give --no-augment.flips, or a name without a side to the class"
            raise UserError("clips mirrored in training", found, do)
    return partners


def mirror_line(classes: Sequence[str], partners: Sequence[int]) -> str:
    """What a mirror does to the classes, for the person who starts a training."""
    pairs = [f"{classes[c]} and {classes[other]}" for c, other in enumerate(partners) if c < other]
    if not pairs:
        return "clips are mirrored, and no class changes: if one has a side, give --no-augment.flips"
    return f"clips are mirrored, which exchanges {', '.join(pairs)} and changes no other class"


def scaled(clips_BTHW: Tensor) -> Tensor:
    """uint8 grey values as floating-point numbers from 0 to 1."""
    return clips_BTHW.to(torch.get_default_dtype()) / 255


def shifts(cfg: AugmentConfig, key: int, ids_B: Tensor) -> Tensor:
    """int64[B]: frames by which each clip is shifted from its labelled frame."""
    most = cfg.jitter_frames
    return rng.integers(key, ids_B, 1, 2 * most + 1)[:, 0] - most


def noise_pictures(size: int) -> Tensor:
    """Floats[K, size, size], standard normal, the same in every run."""
    normal_KHW = numpy_generator(0, "augment/noise", 0, 0).standard_normal((NUM_NOISE, size, size), dtype=np.float32)
    return torch.from_numpy(normal_KHW).to(torch.get_default_dtype())


def augment(
    clips_BTHW: Tensor,
    label_BC: Tensor,
    partner_C: Tensor,
    noise_KHW: Tensor,
    cfg: AugmentConfig,
    key: int,
    ids_B: Tensor,
) -> tuple[Tensor, Tensor]:
    """(clips with grey values near 0 to 1, labels) of uint8 clips and their labels. `partner_C`: the class that each
    class becomes in a mirror. `noise_KHW`: `noise_pictures` on the device of the clips."""
    random_BD = rng.uniform(key, ids_B, NUM_RANDOM)
    if cfg.flips:
        across_B, down_B = random_BD[:, 0] < 0.5, random_BD[:, 1] < 0.5
        clips_BTHW = torch.where(across_B[:, None, None, None], clips_BTHW.flip(3), clips_BTHW)
        clips_BTHW = torch.where(down_B[:, None, None, None], clips_BTHW.flip(2), clips_BTHW)
        # mirrored both ways is rotated by 180 degrees, where left stays left
        label_BC = torch.where((across_B ^ down_B)[:, None], label_BC[:, partner_C], label_BC)
    floats_BTHW = scaled(clips_BTHW)
    symmetric_BD = (2 * random_BD[:, 2:] - 1).to(floats_BTHW.dtype)
    if cfg.rotation_degrees:
        floats_BTHW = rotated(floats_BTHW, symmetric_BD[:, 0] * math.radians(cfg.rotation_degrees))
    factor_B = 1 + cfg.contrast * symmetric_BD[:, 1]
    mean_B = floats_BTHW.mean((1, 2, 3))
    added_B = mean_B * (1 - factor_B) + cfg.brightness * symmetric_BD[:, 2]
    floats_BTHW = floats_BTHW * factor_B[:, None, None, None] + added_B[:, None, None, None]
    if cfg.noise:
        first_B = (random_BD[:, 6] * NUM_NOISE).long()
        picture_BT = (first_B[:, None] + torch.arange(floats_BTHW.shape[1], device=first_B.device)) % NUM_NOISE
        deviation_B = cfg.noise * symmetric_BD[:, 3]
        floats_BTHW = torch.addcmul(floats_BTHW, noise_KHW[picture_BT], deviation_B[:, None, None, None])
    return floats_BTHW, label_BC


def rotated(clips_BTHW: Tensor, angle_B: Tensor) -> Tensor:
    """Clips rotated about their centres by radians, bilinear; pixels from outside repeat the edge."""
    cos_B, sin_B, zero_B = angle_B.cos(), angle_B.sin(), torch.zeros_like(angle_B)
    aspect = clips_BTHW.shape[2] / clips_BTHW.shape[3]
    rows = [cos_B, -sin_B * aspect, zero_B, sin_B / aspect, cos_B, zero_B]
    grid_BHW2 = F.affine_grid(torch.stack(rows, 1).view(-1, 2, 3), list(clips_BTHW.shape), align_corners=False)
    return F.grid_sample(clips_BTHW, grid_BHW2, mode="bilinear", padding_mode="border", align_corners=False)
