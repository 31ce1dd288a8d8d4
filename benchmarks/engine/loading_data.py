"""The data sets of benchmarks/engine/loading.py, in a module of their own, since worker processes import it."""

# N items, D bytes of one item

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Case:
    """`cost`: none, sleep (1 ms an item), or decode (zlib, as much CPU time as the size takes)."""

    item_bytes: int
    cost: str
    batch: int

    @property
    def name(self) -> str:
        return f"{self.item_bytes // 1024} KB, {self.cost}"


KINDS = 16
"""Different items; ids beyond that repeat them, so that the data fit in memory."""


class Items:
    """A map-style data set for both loaders: an image-like tensor of bytes and a label."""

    def __init__(self, case: Case, num_items: int) -> None:
        self.case, self.num_items = case, num_items
        random = np.random.default_rng(0)
        raw_ND = random.integers(0, 16, (KINDS, case.item_bytes), dtype=np.uint8)  # of 8 bits 4 are used: zlib works
        self.items_ND = torch.from_numpy(raw_ND)
        self.packed = [zlib.compress(row.tobytes(), 1) for row in raw_ND] if case.cost == "decode" else []

    def __len__(self) -> int:
        return self.num_items

    def __getitem__(self, item: int) -> tuple[Tensor, int]:
        kind = item % KINDS
        if self.case.cost == "decode":
            raw = bytearray(zlib.decompress(self.packed[kind]))
            return torch.frombuffer(raw, dtype=torch.uint8), item
        if self.case.cost == "sleep":
            time.sleep(0.001)
        return self.items_ND[kind], item


class SlowRows:
    """A data set of `ranks` whose `gather` sleeps."""

    cost, sha256, on_host = None, "made from a fixed seed", True

    def __init__(self, num_rows: int, gather_s: float) -> None:
        self.x_NF = torch.randn(num_rows, 64, generator=torch.Generator().manual_seed(0))
        self.gather_s = gather_s

    def __len__(self) -> int:
        return len(self.x_NF)

    def gather(self, ids: Tensor) -> Tensor:
        time.sleep(self.gather_s)
        return self.x_NF[ids]
