"""The clips of each update: a pure function of the iteration, on any number of ranks.

Clip number i of the training is clip b of update i // B. An epoch is a fixed number of clips. Its clips are strata of
equal probability: a permutation, keyed by the epoch, says which clip is which stratum. A stratum gives a bout and a
frame within it. So in every epoch each class has its share of the clips to within one, and long bouts, whose frames are
near duplicates, do not crowd out short ones.

Legend: B clips of an update, K bouts, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ranks.engine.distributed.world import World
from ranks.engine.sharding import rng
from ranks.engine.sharding.batch import Shards, StepBatch
from ranks.workloads.video_behavior.clips.augment import augment, mirrored_classes, shifts
from ranks.workloads.video_behavior.clips.balance import ClassBalance, class_balance
from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.clips.labelled import ClipBouts, split_bouts
from ranks.workloads.video_behavior.config import Config


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


class ClipStream:
    """`at(iteration)`: this rank's part of the clips of that update, augmented, from the training split."""

    def __init__(self, cutter: ClipCutter, cfg: Config, world: World) -> None:
        """Raises UserError where a class has no training frame, or no partner in a mirror."""
        data = cutter.data
        self.cutter, self.cfg, self.world = cutter, cfg, world
        self.bouts = split_bouts(data, "train")
        self.balance = class_balance(self.bouts, data.classes, cfg.imbalance, cfg.imbalance_power)
        cumulative_K = np.cumsum(bout_probabilities(self.bouts, self.balance, cfg.bout_power))
        self._cumulative_K = cumulative_K / cumulative_K[-1]
        self._clips_per_epoch = cfg.updates_per_epoch * cfg.global_batch
        partners = mirrored_classes(data.classes) if cfg.augment.flips else list(range(len(data.classes)))
        self._partner_C = torch.tensor(partners).to(world.device)
        self._epoch, self._stratum = -1, torch.empty(0, dtype=torch.int64)

    def at(self, iteration: int) -> StepBatch[ClipBatch]:
        """The clips of an update, by shard."""
        first = iteration * self.cfg.global_batch
        ids = torch.arange(first, first + self.cfg.global_batch)
        return StepBatch(
            Shards.assigned(ids, self.world.assignment, self.world.rank), partial(self.gather, iteration), "clips"
        )

    def frames_of(self, ids_B: Tensor) -> Tensor:
        """int64[B]: the labelled frame of each clip, for numbers of clips of one epoch."""
        if not len(ids_B):
            return ids_B
        epoch = int(ids_B[0]) // self._clips_per_epoch
        if epoch != self._epoch:
            order = rng.permutation(rng.key(self.world.seed, "clips/order", epoch), self._clips_per_epoch)
            self._epoch, self._stratum = epoch, order
        stratum_B = self._stratum[ids_B - epoch * self._clips_per_epoch]
        random_B2 = rng.uniform(rng.key(self.world.seed, "clips/frame", epoch), stratum_B, 2).numpy()
        place_B = (stratum_B.numpy() + random_B2[:, 0]) / self._clips_per_epoch
        bout_B = np.searchsorted(self._cumulative_K, place_B, side="right").clip(max=len(self.bouts) - 1)
        within_B = (random_B2[:, 1] * self.bouts.length_K[bout_B]).astype(np.int64)
        return torch.from_numpy(self.bouts.first_K[bout_B] + within_B)

    def gather(self, iteration: int, ids_B: Tensor) -> ClipBatch:
        """The clips with these numbers, of one iteration, augmented on the device."""
        key = rng.key(self.world.seed, "augment", iteration)
        shift_B = shifts(self.cfg.augment, rng.key(self.world.seed, "augment/shift", iteration), ids_B)
        cut = self.cutter.cut(self.frames_of(ids_B), ids_B, shift_B)
        changed = augment(cut.clips_BTHW, cut.label_BC, self._partner_C, self.cfg.augment, key, cut.ids_B)
        return ClipBatch(*changed)
