"""All gradients of a model in one flat buffer, and the two ways to sum it over ranks.

Layout, fixed for a run: the parameters from last to first, each starting at a multiple of 16
elements, then the vote (vote.py). The buffer is cut into buckets of about 25 MiB; the last one
contains the vote. Buckets are sent strictly in order. `parameter.grad` is a view into the buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from ranks.engine.distributed.comm import Comm, Pending
from ranks.engine.sharding.assignment import ShardAssignment
from ranks.engine.update.sum_tree import PartialSums, aligned_nodes, finish
from ranks.errors import UserError

ALIGN = 16
BUCKET_BYTES = 25 * 2**20


@dataclass(frozen=True)
class Bucket:
    """The range `start..stop-1` of the flat buffer, a view of it, and the number of parameters in
    it."""

    start: int
    stop: int
    num_parameters: int
    view: Tensor


class FlatGradients:
    """`flat`: gradients (`grads`), then the vote (`tail`). `names`: of the trainable parameters, in
    layout order."""

    def __init__(self, model: nn.Module, tail: int, bucket_bytes: int = BUCKET_BYTES) -> None:
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad][::-1]
        kinds = {(p.dtype, p.device) for _, p in named}
        if not named or len(kinds) > 1 or next(iter(kinds))[0] not in (torch.float32, torch.float64):
            raise UserError(
                "to train this model",
                f"trainable parameters of {sorted(str(k) for k in kinds) or 'no kind'}",
                "make them all float32 (or all float64) on one device; --precision chooses the arithmetic",
            )
        self.parameters = [p for _, p in named]
        self.names = [name for name, _ in named]
        offsets, end = [0], 0
        for p in self.parameters:
            end += -(-p.numel() // ALIGN) * ALIGN
            offsets.append(end)
        self.flat = torch.zeros(end + tail, dtype=self.parameters[0].dtype, device=self.parameters[0].device)
        self.grads, self.tail = self.flat[:end], self.flat[end:]
        self.offsets = offsets
        self.buckets, self.bucket_of = self._cut(bucket_bytes)
        self.views = [self._view(name, p, start) for (name, p), start in zip(named, offsets, strict=False)]
        self.bind()

    def _view(self, name: str, parameter: nn.Parameter, start: int) -> Tensor:
        """The parameter's part of the buffer, with its strides: the fused optimizer kernel needs
        both to match."""
        span = 1 + sum((n - 1) * stride for n, stride in zip(parameter.shape, parameter.stride(), strict=True))
        if parameter.numel() and span != parameter.numel():
            raise UserError(
                "to train this model",
                f"{name} has gaps or overlaps in memory",
                "make it contiguous: p.data.contiguous()",
            )
        return self.flat.as_strided(parameter.shape, parameter.stride(), start)

    def bind(self) -> None:
        """Make every `parameter.grad` a view into the buffer, also after a `zero_grad` has set it
        to None."""
        for p, view in zip(self.parameters, self.views, strict=True):
            if p.grad is not view:
                p.grad = view

    def _cut(self, bucket_bytes: int) -> tuple[list[Bucket], list[int]]:
        limit = max(1, bucket_bytes // self.flat.element_size())
        buckets: list[Bucket] = []
        bucket_of: list[int] = []
        start, count = 0, 0

        def bucket(stop: int) -> Bucket:
            return Bucket(start, stop, count, self.flat[start:stop])

        for i in range(len(self.parameters)):
            bucket_of.append(len(buckets))
            count += 1
            if self.offsets[i + 1] - start >= limit and i + 1 < len(self.parameters):
                buckets.append(bucket(self.offsets[i + 1]))
                start, count = self.offsets[i + 1], 0
        buckets.append(bucket(len(self.flat)))
        return buckets, bucket_of

    def zero(self) -> None:
        self.bind()
        self.flat.zero_()

    def non_finite(self) -> str | None:
        """The name of the first parameter whose gradient is not finite (waits for the device; for a
        diagnosis only)."""
        for name, view in zip(self.names, self.views, strict=True):
            if not bool(torch.isfinite(view).all()):
                return name
        return None


class Reduction(Protocol):
    """Sums the flat buffer over shards and ranks: `begin`, the passes, `launch`, `wait`.

    `before_pass` allows buckets to be sent during that pass; `end_shard` takes a shard's gradient.
    """

    def begin(self) -> None: ...
    def before_pass(self, *, may_send: bool) -> None: ...
    def end_shard(self, shard: int) -> None: ...
    def launch(self) -> None: ...
    def wait(self) -> None: ...


class FastReduction:
    """All-reduce bucket by bucket while the last backward pass still runs.

    A bucket is sent when all its gradients are computed and all buckets before it are sent.
    `launch` sends the rest, at least the last bucket, which contains the vote. Unused parameters
    and ranks without items send zeros.

    Where autograd adds to a parameter several times in a pass (reentrant checkpointing, a loss
    function that calls `backward` itself), nothing tells when its gradient is computed. The passes
    of the first update show that; all buckets are sent by `launch` then.
    """

    def __init__(self, gradients: FlatGradients, comm: Comm) -> None:
        self.gradients, self.comm = gradients, comm
        self._armed = False
        self._works: list[Pending] = []
        self._missing: list[int] = []
        self._computed: list[bool] | None = None
        """Of each parameter: whether this pass has added to its gradient. None outside of the passes of an update."""
        self._adds_again = False
        """Whether a pass has added to a gradient twice."""
        if comm.size > 1:
            for index, parameter in enumerate(gradients.parameters):
                parameter.register_post_accumulate_grad_hook(self._hook(index, gradients.bucket_of[index]))

    def _hook(self, index: int, bucket: int) -> Callable[[Tensor], None]:
        def ready(_: Tensor) -> None:
            if self._computed is None:
                return
            if self._computed[index]:
                self._is_computed_again(index, bucket)
            self._computed[index] = True
            if self._armed:
                self._missing[bucket] -= 1
                while len(self._works) < len(self._missing) - 1 and self._missing[len(self._works)] <= 0:
                    self._send()

        return ready

    def _is_computed_again(self, index: int, bucket: int) -> None:
        """Send nothing more in this pass, or in later ones. Raises UserError where the bucket is on its way."""
        if bucket < len(self._works):
            found = f"{self.gradients.names[index]} got gradients twice in a backward pass, in the first update once"
            do = "use checkpointing with use_reentrant=False, and let only ranks call backward"
            raise UserError("to sum the gradients of all ranks", found, do)
        self._armed, self._adds_again = False, True

    def _send(self) -> None:
        self._works.append(self.comm.sum_async(self.gradients.buckets[len(self._works)].view))

    def begin(self) -> None:
        self._works, self._armed = [], False
        self.gradients.zero()

    def before_pass(self, *, may_send: bool) -> None:
        if self.comm.size > 1:
            self._missing = [b.num_parameters for b in self.gradients.buckets]
            self._computed = [False] * len(self.gradients.parameters)
            self._armed = may_send and not self._adds_again

    def end_shard(self, shard: int) -> None:
        pass

    def launch(self) -> None:
        self._armed, self._computed = False, None
        while len(self._works) < len(self.gradients.buckets):
            self._send()

    def wait(self) -> None:
        for work in self._works:
            work.wait()


class ExactReduction:
    """One gradient per shard, summed along the tree of sum_tree.py: the same bits on any
    assignment.

    Each rank owns a slice of every bucket. All ranks send the slices of their partial sums to the
    owners (all-to-all). The owners finish the tree, and all ranks collect the finished slices
    (all-gather). This sends about the bytes of a ring all-reduce, times the tree nodes per rank.
    """

    def __init__(self, gradients: FlatGradients, comm: Comm, assignment: ShardAssignment) -> None:
        self.gradients, self.comm, self.assignment = gradients, comm, assignment
        self.partial = PartialSums()
        self.nodes_by_rank = [aligned_nodes(assignment.shards_of(r)) for r in range(assignment.num_ranks)]

    def begin(self) -> None:
        self.partial.clear()
        self.gradients.zero()

    def before_pass(self, *, may_send: bool) -> None:
        pass

    def end_shard(self, shard: int) -> None:
        self.partial.push(shard, self.gradients.flat)
        self.gradients.zero()

    def launch(self) -> None:
        if self.comm.size == 1:
            values = {node: value for node, value in self.partial.nodes}
            self.gradients.flat.copy_(finish(values, self.assignment.num_shards, torch.add))
            return
        for bucket in self.gradients.buckets:
            self._reduce(bucket)

    def _reduce(self, bucket: Bucket) -> None:
        size = bucket.stop - bucket.start
        chunk = -(-size // self.comm.size)
        slices = [(min(o * chunk, size), min((o + 1) * chunk, size)) for o in range(self.comm.size)]
        first, last = slices[self.comm.rank]
        # To the owners: rank r gets its slice of each of our nodes.
        mine = torch.stack([value[bucket.start : bucket.stop] for _, value in self.partial.nodes])
        sent = torch.cat([mine[:, a:b].reshape(-1) for a, b in slices])
        in_sizes = [len(mine) * (b - a) for a, b in slices]
        out_sizes = [len(nodes) * (last - first) for nodes in self.nodes_by_rank]
        received = sent.new_empty(sum(out_sizes))
        self.comm.exchange(received, sent, out_sizes, in_sizes)
        # As an owner: all nodes of all ranks for our slice. Finish the tree.
        every_node = [node for nodes in self.nodes_by_rank for node in nodes]
        values = dict(zip(every_node, received.view(len(every_node), last - first), strict=True))
        # The last slices may be shorter; the all-gather needs equal ones.
        padded = sent.new_zeros(chunk)
        padded[: last - first] = finish(values, self.assignment.num_shards, torch.add)
        whole = torch.cat(self.comm.gather_equal(padded))
        bucket.view.copy_(whole[:size])

    def wait(self) -> None:
        pass
