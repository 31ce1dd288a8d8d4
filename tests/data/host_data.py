"""Data sets of the host for the tests of loading. Worker processes import this module."""

# N items, F = 6 numbers each

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ranks.data import collate

NUM_ITEMS = 50


class Extra(NamedTuple):
    twice_N: Tensor
    names: list[str]


@dataclass(frozen=True)
class Batch:
    x_NF: Tensor
    ragged: list[Tensor]
    extra: Extra
    empty: Tensor


class Points:
    """Batches with all containers; `ragged` has tensors of other shapes in each batch."""

    cost, sha256, on_host = None, "points", True

    def __init__(self, broken: bool = False) -> None:
        self.x_NF = torch.linspace(-1, 1, NUM_ITEMS * 6, dtype=torch.float64).reshape(NUM_ITEMS, 6)
        self.broken = broken
        """The batch depends on the thread that gathers it."""
        self.calls = 0
        """Of `gather`, in this process."""

    def __len__(self) -> int:
        return NUM_ITEMS

    def gather(self, ids: Tensor) -> Batch:
        self.calls += 1
        x_NF = self.x_NF[ids] + (threading.get_ident() if self.broken else 0)
        ragged = [torch.arange(int(item) % 4) for item in ids]
        return Batch(x_NF, ragged, Extra(2 * ids, [f"item {int(item)}" for item in ids]), torch.empty(0, 3))


class Faulty:
    """One row for each item; items above `first` raise, hang or kill their worker, as `do` says."""

    cost, sha256, on_host = None, "faulty", True

    def __init__(self, bad_items: dict[int, str], folder: Path) -> None:
        self.bad_items, self.folder = bad_items, folder

    def __len__(self) -> int:
        return NUM_ITEMS

    def describe(self, item: int) -> str:
        return f"clips/{item}.mp4"

    def gather(self, ids: Tensor) -> Tensor:
        (self.folder / str(os.getpid())).touch()
        for item in ids.tolist():
            do = self.bad_items.get(item)
            if do == "raise":
                raise ValueError("cannot decode")
            if do == "hang":
                time.sleep(600)
            if do == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
        return ids.double()


class Noisy:
    """A map-style data set as users have them: items are augmented with torch's own generator."""

    def __len__(self) -> int:
        return NUM_ITEMS

    def __getitem__(self, item: int) -> dict[str, object]:
        return {"x": torch.full((3,), item, dtype=torch.float32) + torch.rand(3), "label": item % 3, "name": str(item)}


@functools.cache
def decoded(clip: int) -> Tensor:
    """The frames of a clip, which the process decodes once and keeps."""
    return collate([torch.full((4000,), clip) for _ in range(3)])


class KeptClips:
    """A map-style data set that keeps what `collate` made: in a worker, memory of a block."""

    def __len__(self) -> int:
        return NUM_ITEMS

    def __getitem__(self, item: int) -> Tensor:
        return decoded(item)
