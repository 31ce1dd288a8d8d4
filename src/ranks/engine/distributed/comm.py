"""The collectives that the engine uses, for one rank or many, on the CPU, on CUDA, or several ranks
on one GPU.

Tensors go through NCCL where every rank has its own GPU. Otherwise they go through gloo; tensors of
a GPU are then copied to host memory first (staged). Small values (requests, names) always go
through gloo.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from ranks.engine.liveness.beats import Collective
from ranks.engine.liveness.heartbeat import heartbeat

T = TypeVar("T")
ALL_REDUCE = Collective.ALL_REDUCE.value


class Pending(Protocol):
    """A collective that was started. After `wait` its result may be used on the current stream."""

    def wait(self) -> None: ...


class _Done:
    def wait(self) -> None:
        return None


class _Work:
    """An asynchronous collective on a tensor; a staged result is copied back to the device."""

    def __init__(self, work: dist.Work, staged: Tensor | None = None, target: Tensor | None = None) -> None:
        self.work, self.staged, self.target = work, staged, target

    def wait(self) -> None:
        heartbeat.wait()
        self.work.wait()
        heartbeat.wait_over()
        if self.staged is not None and self.target is not None:
            self.target.copy_(self.staged, non_blocking=True)


class Comm:
    """`rank` of `size`; with size 1 nothing is sent. `staged`: device tensors are copied through
    host memory."""

    def __init__(self, rank: int, size: int, *, staged: bool) -> None:
        self.rank, self.size, self.staged = rank, size, staged

    def sum_async(self, tensor: Tensor) -> Pending:
        """All-reduce a contiguous tensor in place."""
        if self.size == 1:
            return _Done()
        heartbeat.start_collective(ALL_REDUCE)
        heartbeat.sends()
        if self.staged:
            host = tensor.cpu()
            work = _Work(_all_reduce(host), host, tensor)
        else:
            work = _Work(_all_reduce(tensor))
        heartbeat.sent()
        return work

    def exchange(self, out: Tensor, inp: Tensor, out_sizes: list[int], in_sizes: list[int]) -> None:
        """All-to-all of 1-D tensors: `in_sizes[r]` elements go to rank r, `out_sizes[r]` come from
        it."""
        with heartbeat.collective(Collective.ALL_TO_ALL):
            if self.staged:
                host_out = torch.empty(out.shape, dtype=out.dtype)
                dist.all_to_all_single(host_out, inp.cpu(), out_sizes, in_sizes)
                out.copy_(host_out)
            else:
                dist.all_to_all_single(out, inp, out_sizes, in_sizes)

    def gather_equal(self, mine: Tensor) -> list[Tensor]:
        """Every rank's tensor, in rank order; all have the same shape."""
        if self.size == 1:
            return [mine]
        source = mine.cpu() if self.staged else mine.contiguous()
        out = [torch.empty_like(source) for _ in range(self.size)]
        with heartbeat.collective(Collective.ALL_GATHER):
            dist.all_gather(out, source)
        return [t.to(mine.device) for t in out]

    def broadcast(self, tensor: Tensor, source: int = 0) -> None:
        """Overwrite the tensor on every rank with the values of rank `source`."""
        if self.size == 1:
            return
        with heartbeat.collective(Collective.BROADCAST):
            if self.staged:
                host = tensor.cpu()
                dist.broadcast(host, source)
                tensor.copy_(host)
            else:
                dist.broadcast(tensor, source)

    def gather_objects(self, mine: T) -> list[T]:
        """Every rank's small Python object, in rank order. It is pickled, and sent only between the
        ranks of this run."""
        if self.size == 1:
            return [mine]
        out: list[T] = [mine] * self.size
        with heartbeat.collective(Collective.GATHER_OBJECTS):
            dist.all_gather_object(out, mine)
        return out

    def sum_host(self, values: list[float]) -> list[float]:
        """Sums over ranks of a few float64 numbers, through the host."""
        if self.size == 1:
            return values
        tensor = torch.tensor(values, dtype=torch.float64)
        with heartbeat.collective(Collective.SUM_HOST):
            dist.all_reduce(tensor)
        return tensor.tolist()

    def max_host(self, value: float) -> float:
        """The maximum of a number over ranks."""
        if self.size == 1:
            return value
        tensor = torch.tensor([value], dtype=torch.float64)
        with heartbeat.collective(Collective.MAX_HOST):
            dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
        return float(tensor)

    def barrier(self) -> None:
        if self.size > 1:
            self.sum_host([0.0])


def _all_reduce(tensor: Tensor) -> dist.Work:
    work = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    return work
