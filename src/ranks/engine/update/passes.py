"""One rank's forward and backward passes of an update."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from ranks.engine.distributed.device_errors import is_out_of_memory
from ranks.engine.distributed.precision import autocast
from ranks.engine.distributed.requests import NOTHING, Requests
from ranks.engine.distributed.world import World
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.sharding.batch import MicroBatch
from ranks.engine.sharding.torch_rng import TorchGenerators
from ranks.engine.update.buffers import Buffers
from ranks.engine.update.gradients import Reduction
from ranks.engine.update.loss import returned
from ranks.engine.update.step import PendingUpdate
from ranks.engine.update.vote import PassTotals, VoteSlots
from ranks.errors import UserError


class Passes:
    """Runs the passes and sends gradients and vote off. `max_cost`: what a micro-batch may cost,
    None while any fits."""

    def __init__(self, model: nn.Module, reduction: Reduction, slots: VoteSlots, world: World) -> None:
        self.model, self.reduction, self.slots, self.world = model, reduction, slots, world
        self.buffers, self.generators = Buffers(model, world), TorchGenerators(world.device)
        self.max_cost: float | None = None
        self.metric_names: dict[str, list[str]] = {}
        """Loss function -> names of its metrics, once all ranks have agreed on them."""

    def queue(self, update: PendingUpdate) -> None:
        """Queue all passes of this rank, then its vote with the last gradient bucket. Nothing waits
        for the device, except at the first update with a loss function."""
        if not self.model.training:
            self.model.train()
        self.reduction.begin()
        self.buffers.begin(first=self._is_new(update))
        totals, requests = PassTotals(), self.world.requests()
        update.too_large = None
        try:
            if self.world.exact:
                totals = self._by_shard(update, requests)
            else:
                self._fused(update, totals)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if self.world.exact:
                raise no_memory_under_exact() from None
            requests = replace(requests, retry=True)
        update.clock.mark("compute")
        if not self.world.exact:
            self.slots.fill(totals, requests, update.number)
        self._check_metric_names(update, totals.names)
        self.reduction.launch()

    def micro_batches(self, update: PendingUpdate) -> list[MicroBatch]:
        """This rank's items in pieces that fit: by shard under --exact, else fused over shards."""
        max_items = self.world.config.micro_batch
        return update.batch.by_shard(max_items) if self.world.exact else update.batch.split(self.max_cost, max_items)

    def run(self, update: PendingUpdate, piece: MicroBatch, totals: PassTotals) -> None:
        """One forward and backward pass; its loss and metrics are added to `totals`, its gradient
        to the buffer. Where the memory does not suffice, the update keeps the micro-batch."""
        if piece.ids.numel() == 0:
            return
        try:
            self._run(update, piece, totals)
        except (RuntimeError, MemoryError) as error:
            if is_out_of_memory(error):
                update.too_large = piece
            raise

    def _run(self, update: PendingUpdate, piece: MicroBatch, totals: PassTotals) -> None:
        self.generators.seed(self.world.seed, update.number, piece)
        update.clock.mark("compute")
        heartbeat.micro_batch(piece.shard, piece.offset)
        heartbeat.loads()
        batch = update.batch.gather(piece.ids)
        heartbeat.loaded()
        update.clock.mark("data")
        # The first passes with a loss function show whether it draws random numbers and whether it
        # changes buffers. To look costs time and, for the generators, waits for the device; --exact
        # looks at the buffers in every pass.
        first = self._is_new(update)
        generator_states = self.generators.states() if first else None
        buffer_versions = self.buffers.versions() if first or self.world.exact else None
        with autocast(self.world.config, self.world.device):
            loss = returned(update.loss_fn(self.model, batch))
        if buffer_versions is not None and buffer_versions != self.buffers.versions():
            self.buffers.changed()
        if generator_states is not None and generator_states != self.generators.states():
            self.generators.used = True
        loss.sum.backward()  # type: ignore[no-untyped-call]
        totals.add(loss)

    def _fused(self, update: PendingUpdate, totals: PassTotals) -> None:
        """Fast mode: the micro-batches cross shards. Buckets are sent while the last backward pass
        still runs."""
        pieces = self.micro_batches(update)
        for piece in pieces:
            self.reduction.before_pass(may_send=piece is pieces[-1] and not self._is_new(update))
            self.run(update, piece, totals)

    def _by_shard(self, update: PendingUpdate, requests: Requests) -> PassTotals:
        """--exact: each shard has a separate gradient and vote, which are summed along the tree.
        The requests go with the first shard only. Returns the totals of a shard with items, for the
        metrics' names."""
        totals = shard_totals = PassTotals()
        for piece in self.micro_batches(update):
            self.run(update, piece, shard_totals)
            if piece.last:
                self.slots.fill(shard_totals, requests, update.number)
                self.reduction.end_shard(piece.shard)
                totals = shard_totals if shard_totals.names else totals
                shard_totals, requests = PassTotals(), NOTHING
        return totals

    def _is_new(self, update: PendingUpdate) -> bool:
        return update.loss_name not in self.metric_names

    def _check_metric_names(self, update: PendingUpdate, names: list[str]) -> None:
        if self._is_new(update):
            self._agree(update.loss_name, names)
        known = self.metric_names.get(update.loss_name, [])
        if names and names != known:
            raise ValueError(f"{update.loss_name} gave the metrics {names}, at first {known}: keep them the same")

    def _agree(self, loss_name: str, names: list[str]) -> None:
        """At the first update with a loss function: its metrics' names, which a rank without items
        does not know, and what its passes were seen to do."""
        seen = self.world.comm.gather_objects((names, self.buffers.moving, self.generators.used))
        self.buffers.moving = any(moving for _, moving, _ in seen)
        if not self.world.exact and any(used for _, _, used in seen):
            self.world.session.warn(
                "the forward pass draws random numbers (dropout): without --exact the number of ranks changes them"
            )
        every = [n for n, _, _ in seen if n]
        if any(n != every[0] for n in every):
            raise ValueError(f"ranks disagree on the metrics of {loss_name}: {every}")
        if every:  # no rank knows them where all ran out of memory; the retry agrees on them
            self.metric_names[loss_name] = every[0]


def no_memory_under_exact() -> UserError:
    return UserError("--exact", "a rank ran out of memory", "give --micro-batch N: under --exact it is part of the run")
