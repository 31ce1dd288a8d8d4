"""One rank of several, alone: nothing is sent.

The rank carries its own share of the items, so its passes have the size that they will have. As the result of a
collective it gets what all ranks would have sent if they had the same values as this one. The weights that come of it
are meaningless; the times are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

from ranks.engine.distributed.comm import Comm, Pending

T = TypeVar("T")


class _Echoed:
    """What `sum_async` returns."""

    def wait(self) -> None:
        return None


class EchoComm(Comm):
    """The collectives of rank 0 of `size` ranks, of which it is the only one."""

    def __init__(self, size: int) -> None:
        super().__init__(0, size, staged=False)
        self._sent: Sequence[Tensor] | None = None

    def sum_async(self, tensor: Tensor) -> Pending:
        if self.size > 1 and tensor.device.type == "cpu":  # on CUDA it would take the device's time
            tensor.mul_(self.size)
        return _Echoed()

    def exchange(self, out: Tensor, inp: Tensor, out_sizes: list[int], in_sizes: list[int]) -> None:
        self._sent = torch.split(inp.clone(), in_sizes)
        out.zero_()

    def gather_equal(self, mine: Tensor) -> list[Tensor]:
        """Every rank's tensor. After an exchange, which the exact sum makes, each rank returns the sum of what it was
        sent: the vote lies in the part of the last rank."""
        sent, self._sent = self._sent, None
        if sent is None:
            return [mine.clone() for _ in range(self.size)]
        sums = [part.view(len(sent[0]) // len(mine), -1).sum(0) * self.size for part in sent]
        return [torch.cat([part, part.new_zeros(len(mine) - len(part))]) for part in sums]

    def broadcast(self, tensor: Tensor, source: int = 0) -> None:
        pass

    def gather_objects(self, mine: T) -> list[T]:
        return [mine] * self.size

    def sum_host(self, values: list[float]) -> list[float]:
        return [value * self.size for value in values]

    def max_host(self, value: float) -> float:
        return value
