"""The clips of each update: a pure function of the iteration, on any number of ranks, with any number of workers.

An epoch is a fixed number of clips. Its clips are strata of equal probability: item s of the epoch is a clip of stratum
s, and a stratum gives a bout and a frame within it. Bouts are in the order of their classes, so in every epoch each
class has its share of the clips, less than two away from it. Long bouts, whose frames are near duplicates, do not crowd
out short ones. Each epoch has its own order of the strata.

Workers read the pixels of clips ahead where the device does not hold the store. The rank augments them on its device,
as a part of the loss.

Legend: B clips of an update, K bouts, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ranks.data.loading.place import current_key
from ranks.data.stream import stream
from ranks.engine.distributed.world import World
from ranks.engine.sharding import rng
from ranks.engine.sharding.batch import StepBatch
from ranks.workloads.video_behavior.clips.augment import (
    augment,
    mirror_line,
    mirrored_classes,
    noise_pictures,
    shifts,
)
from ranks.workloads.video_behavior.clips.balance import ClassBalance, class_balance
from ranks.workloads.video_behavior.clips.cut import ClipCutter, ClipReader, ReadClips
from ranks.workloads.video_behavior.clips.labelled import ClipBouts, split_bouts
from ranks.workloads.video_behavior.config import AugmentConfig, Config


@dataclass(frozen=True)
class ClipBatch:
    """Clips [B, T, H, W] with grey values from 0 to 1, and labels [B, C]: 1 for each class of the centre frame."""

    clips_BTHW: Tensor
    label_BC: Tensor

    def __len__(self) -> int:
        return len(self.label_BC)


def bout_probabilities(
    bouts: ClipBouts, balance: ClassBalance, bout_power: float
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """float64[K]: how often each bout is sampled. A class gets its share; within it, bouts count as length**power."""
    size_K = bouts.length_K.astype(np.float64) ** bout_power
    of_class_C = np.bincount(bouts.class_K, size_K, len(balance.sampled_C))
    return balance.sampled_C[bouts.class_K] * size_K / of_class_C[bouts.class_K]


class EpochClips:
    """The clips of an epoch as a data set of the host: item s is a clip of stratum s, another one in each epoch."""

    on_host, cost, sha256 = True, None, ""

    def __init__(
        self,
        reader: ClipReader,
        bouts: ClipBouts,
        probability_K: np.ndarray[tuple[int], np.dtype[np.float64]],
        num_clips: int,
        augmentation: AugmentConfig,
    ) -> None:
        self.reader, self.bouts, self.num_clips, self.augmentation = reader, bouts, num_clips, augmentation
        cumulative_K = np.cumsum(probability_K)
        self._cumulative_K = cumulative_K / cumulative_K[-1]

    def __len__(self) -> int:
        return self.num_clips

    def frames_of(self, ids_B: Tensor, key: int) -> Tensor:
        """int64[B]: the labelled frame of each clip. `key`: of the random numbers of an epoch."""
        random_B2 = rng.uniform(rng.key(key, "clips/frame", 0), ids_B, 2).numpy()
        place_B = (ids_B.numpy() + random_B2[:, 0]) / self.num_clips
        bout_B = np.searchsorted(self._cumulative_K, place_B, side="right").clip(max=len(self.bouts) - 1)
        within_B = (random_B2[:, 1] * self.bouts.length_K[bout_B]).astype(np.int64)
        return torch.from_numpy(self.bouts.first_K[bout_B] + within_B)

    def gather(self, ids: Tensor) -> ReadClips:
        """The clips of some strata, int64[B], before their augmentation."""
        key = current_key()
        shift_B = shifts(self.augmentation, rng.key(key, "clips/shift", 0), ids)
        return self.reader.read(self.frames_of(ids, key), ids, shift_B, rng.key(key, "clips/augment", 0))


class ClipStream:
    """`at(iteration)`: this rank's part of the clips of that update from the training split, not yet augmented."""

    def __init__(self, cutter: ClipCutter, cfg: Config, world: World) -> None:
        """Raises UserError where a class has no training frame, or no partner in a mirror."""
        data = cutter.data
        self.cutter, self.augmentation = cutter, cfg.augment
        self.bouts = split_bouts(data, "train")
        self.balance = class_balance(self.bouts, data.classes, cfg.imbalance, cfg.imbalance_power)
        chances_K = bout_probabilities(self.bouts, self.balance, cfg.bout_power)
        num_clips = cfg.updates_per_epoch * cfg.global_batch
        self.clips = EpochClips(cutter.reader, self.bouts, chances_K, num_clips, cfg.augment)
        workers = 0 if cutter.resident else cfg.workers
        self._stream = stream(self.clips, cfg.global_batch, world, item="clips", workers=workers)
        partners = mirrored_classes(data.classes) if cfg.augment.flips else list(range(len(data.classes)))
        self.mirrors = mirror_line(data.classes, partners) if cfg.augment.flips else "clips are not mirrored"
        self._partner_C = torch.tensor(partners).to(world.device)
        self._noise_KHW = noise_pictures(cfg.clips.size).to(world.device)

    def at(self, iteration: int) -> StepBatch[ReadClips]:
        """The clips of an update, by shard."""
        return self._stream.at(iteration)

    def augmented(self, read: ReadClips) -> ClipBatch:
        """Clips of an update, cut out and augmented on the device."""
        cut = self.cutter.on_device(read)
        batch = (cut.clips_BTHW, cut.label_BC, self._partner_C, self._noise_KHW)
        return ClipBatch(*augment(*batch, self.augmentation, read.key, cut.ids_B))
