"""The time of a collective by its size, and the same for another number of ranks.

A ring all-reduce of S bytes over n ranks makes 2(n-1) steps, and each sends S/n bytes to the next rank. So the time of
one step by its size is what two ranks measure, and it holds for any n (Patarasuk and Yuan 2009, "Bandwidth optimal
all-reduce algorithms for clusters of workstations").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class AllReduceCurve:
    """Seconds of an all-reduce of `num_ranks` ranks by the bytes of its tensor."""

    num_ranks: int
    num_bytes: tuple[int, ...]
    """Increasing."""
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        sizes, seconds = self.num_bytes, self.seconds
        if self.num_ranks < 2 or not sizes or len(sizes) != len(seconds):
            raise ValueError("a curve has two ranks or more, and a time for each size")
        if any(b <= a for a, b in pairwise((0, *sizes))) or not all(0 < s < math.inf for s in seconds):
            raise ValueError("the sizes of a curve increase, and its times are above zero")

    def at(self, num_bytes: float) -> float:
        """Interpolated between the measured sizes; larger ones in proportion, smaller ones like the smallest."""
        if num_bytes <= self.num_bytes[0]:
            return self.seconds[0]
        if num_bytes >= self.num_bytes[-1]:
            return self.seconds[-1] * num_bytes / self.num_bytes[-1]
        at = np.interp(math.log(num_bytes), np.log(self.num_bytes), np.log(self.seconds))
        return math.exp(float(at))

    def step_s(self, num_bytes: float) -> float:
        """Seconds of one step of the ring, in which each rank sends so many bytes to the next one."""
        return self.at(num_bytes * self.num_ranks) / (2 * (self.num_ranks - 1))


@dataclass(frozen=True)
class Link:
    """What connects the ranks."""

    name: str
    device: tuple[AllReduceCurve, ...]
    """Of tensors on the device, one for each number of ranks that was measured."""
    host: AllReduceCurve
    """Of small values, which always go through host memory and gloo."""
    source: str
    """measured, or catalogue: with what."""
    uncertainty: float
    """The times are right within this share, in nine cases of ten."""

    @property
    def is_one_channel(self) -> bool:
        """Whether tensors of the device and values of the host take the same way."""
        return self.device == (self.host,)

    def slower(self, factor: float) -> Link:
        """The same link with all times multiplied."""
        device = tuple(_slower(curve, factor) for curve in self.device)
        return replace(self, device=device, host=_slower(self.host, factor))

    def all_reduce_s(self, num_ranks: int, num_bytes: float, *, on_host: bool = False) -> float:
        """Seconds of an all-reduce; 0 with one rank."""
        return 2 * self.all_to_all_s(num_ranks, num_bytes, on_host=on_host)

    def all_gather_s(self, num_ranks: int, num_bytes: float, *, on_host: bool = False) -> float:
        """Seconds until every rank has the `num_bytes` of every other rank: a ring of n-1 steps."""
        return 0.0 if num_ranks == 1 else (num_ranks - 1) * self._curve(num_ranks, on_host).step_s(num_bytes)

    def all_to_all_s(self, num_ranks: int, num_bytes: float, *, on_host: bool = False) -> float:
        """Seconds of an exchange in which each rank sends `num_bytes` in all, in equal parts to every rank."""
        return self.all_gather_s(num_ranks, num_bytes / num_ranks, on_host=on_host)

    def _curve(self, num_ranks: int, on_host: bool) -> AllReduceCurve:
        """The one that was measured with the nearest number of ranks."""
        curves = (self.host,) if on_host else self.device
        return min(curves, key=lambda curve: abs(math.log(curve.num_ranks / num_ranks)))


def _slower(curve: AllReduceCurve, factor: float) -> AllReduceCurve:
    return replace(curve, seconds=tuple(factor * seconds for seconds in curve.seconds))
