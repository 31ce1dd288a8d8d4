"""The model, its optimiser, and the one way to update them: `Learner.step`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import nn

from ranks.engine.config import OptimConfig, identity_of
from ranks.engine.distributed.precision import autocast
from ranks.engine.distributed.world import World
from ranks.engine.sharding.batch import MicroBatch, StepBatch
from ranks.engine.sharding.torch_rng import Generators
from ranks.engine.update import optimizer
from ranks.engine.update.buffers import Buffers
from ranks.engine.update.dry_run import Alone
from ranks.engine.update.gradients import ExactReduction, FastReduction, FlatGradients, Reduction
from ranks.engine.update.load_weights import load_weights
from ranks.engine.update.loss import Loss, returned
from ranks.engine.update.step import Job, StepStats
from ranks.engine.update.step_clock import StepClock
from ranks.engine.update.vote import NONE, Ballot, Flags, Found, VoteLayout
from ranks.errors import GaveUp, UserError

B = TypeVar("B")
LossFunction = Callable[[Any, B], Loss]
MAX_NON_FINITE_LOSSES = 3


class Learner:
    """`model`: on this rank's device, the same weights on every rank. `updates`: optimiser steps, skipped ones too."""

    def __init__(self, model: nn.Module, config: OptimConfig, world: World) -> None:
        """`config`: resolved (`OptimConfig.resolve`). Raises UserError where the model cannot be trained."""
        self.world, self.config = world, config
        self.model = model.to(world.device, torch.get_default_dtype())
        for tensor in [*self.model.parameters(), *self.model.buffers()]:
            world.comm.broadcast(tensor.data)
        self.updates = 0
        self.max_cost: float | None = None
        """What a micro-batch may cost, found by running out of memory; none while nothing was found."""
        self.layout = VoteLayout(world.size)
        self.gradients = FlatGradients(self.model, self.layout.length)
        self.ballot = Ballot(self.layout, self.gradients.tail, world.rank)
        self.reduction: Reduction = (
            ExactReduction(self.gradients, world.comm, world.assignment)
            if world.exact
            else FastReduction(self.gradients, world.comm)
        )
        self.optimizer = optimizer.AdamW(self.gradients.parameters, config)
        self._names: dict[str, list[str]] = {}
        self._pending: Job | None = None
        self._non_finite_losses = 0
        self.buffers, self.generators = Buffers(self.model, world), Generators(world.device)
        self.alone = Alone(self.gradients, self.buffers, self._pieces, self._pass)
        world.drains.append(self.drain)

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    @property
    def identity(self) -> dict[str, Any]:
        """What of the learner makes a run what it is."""
        return {"optim": identity_of(self.config), "parameters": self.num_parameters}

    @property
    def measured(self) -> dict[str, Any]:
        """What was found by measuring: reused on resume by the same deal, measured afresh by another."""
        return {"max_cost": self.max_cost}

    @measured.setter
    def measured(self, found: Mapping[str, Any]) -> None:
        self.max_cost = found["max_cost"]

    def step(self, loss_fn: LossFunction[B], batch: StepBatch[B]) -> StepStats:
        """One update from one global batch, of which this rank carries `batch`.

        Every rank calls it, also one without items. Nothing waits for the device: the vote of the update before is read
        once this one's passes are enqueued. Raises GaveUp after three non-finite losses in a row.
        """
        job = Job(loss_fn, batch, self.updates, StepClock(self.world.device), self.world.spent)
        self._passes(job)
        self._settle(job)
        self._update(job)
        self.updates += 1
        self._pending = job
        return job.stats

    def drain(self) -> None:
        """Read the last vote; the model is then what all ranks agreed on."""
        self._settle(None)

    def rehearse(self, loss_fn: LossFunction[B], batch: StepBatch[B]) -> float:
        """Seconds that one update takes on the slowest rank, from two rehearsals of the passes; nothing is updated.

        Micro-batches that do not fit the memory are split smaller by all ranks. Raises GaveUp where an item does not.
        """
        job = Job(loss_fn, batch, self.updates, StepClock(self.world.device), self.world.spent)
        self.alone.passes(job)
        outcome = self.alone.passes(job)
        while self.world.comm.max_host(float(not outcome.fits)):
            self._split_smaller(job)
            outcome = self.alone.passes(job)
        return self.world.comm.max_host(outcome.seconds)

    # One step -------------------------------------------------------------------------------------------------------

    def _passes(self, job: Job) -> None:
        """All forward and backward passes of this rank, then its facts and the last bucket on their way."""
        if not self.model.training:
            self.model.train()
        self.reduction.begin()
        key = _name_of(job.loss_fn)
        self.buffers.begin(first=key not in self._names)
        found, requests, retry = Found(), self.world.requests(), False
        try:
            if self.world.exact:
                found = self._passes_by_shard(job, requests)
            else:
                pieces = self._pieces(job)
                for piece in pieces:
                    if piece is pieces[-1] and key in self._names:
                        self.reduction.before_last_backward()
                    self._pass(job, piece, found)
        except torch.OutOfMemoryError:
            retry = job.out_of_memory = True
            if self.world.exact:
                raise _no_memory_under_exact() from None
        job.clock.mark("compute")
        if not self.world.exact:
            self.ballot.fill(found, replace(requests, retry=True) if retry else requests)
        if key not in self._names:
            self._agree_on_names(key, found.names)
        job.stats.names = self._names.get(key, [])
        if found.names and found.names != job.stats.names:
            raise ValueError(f"{key} gave the metrics {found.names}, at first {job.stats.names}: keep them the same")
        self.reduction.launch()

    def _pieces(self, job: Job) -> list[MicroBatch]:
        max_items = self.world.config.micro_batch
        return job.batch.by_shard(max_items) if self.world.exact else job.batch.split(self.max_cost, max_items)

    def _passes_by_shard(self, job: Job, requests: Flags) -> Found:
        found = shard_found = Found()
        flags = requests
        for piece in self._pieces(job):
            self._pass(job, piece, shard_found)
            if piece.last:
                self.ballot.fill(shard_found, flags)
                self.reduction.end_shard(piece.shard)
                found = shard_found if shard_found.names else found
                shard_found, flags = Found(), NONE
        return found

    def _pass(self, job: Job, piece: MicroBatch, found: Found) -> None:
        if len(piece.ids) == 0:
            return
        self.generators.seed(self.world.seed, job.update, piece)
        job.clock.mark("compute")
        batch = job.batch.gather(piece.ids)
        job.clock.mark("data")
        job.largest_cost = max(job.largest_cost, piece.cost)
        first = _name_of(job.loss_fn) not in self._names
        luck = self.generators.states() if first else None
        versions = self.buffers.versions() if first or self.world.exact else None
        with autocast(self.world.config, self.world.device):
            loss = returned(job.loss_fn(self.model, batch))
        if versions is not None and versions != self.buffers.versions():
            self.buffers.changed()
        if luck is not None and luck != self.generators.states():
            self.generators.used = True
        loss.sum.backward()  # type: ignore[no-untyped-call]
        found.add(loss)

    def _agree_on_names(self, key: str, names: list[str]) -> None:
        """Once for each loss function: its metrics' names, which a rank without items does not know, and what its
        passes were seen to do.
        """
        told = self.world.comm.gather_objects((names, self.buffers.moving, self.generators.used))
        self.buffers.moving = any(moving for _, moving, _ in told)
        if not self.world.exact and any(used for _, _, used in told):
            text = "the forward pass draws random numbers (dropout): without --exact the number of ranks changes them"
            self.world.emit({"event": "warning", "text": text})
        every = [n for n, _, _ in told if n]
        if any(n != every[0] for n in every):
            raise ValueError(f"ranks disagree on the metrics of {key}: {every}")
        if every:  # nobody knows where every rank ran out of memory: the retry will tell
            self._names[key] = every[0]

    def _update(self, job: Job) -> None:
        """Divide by the global count, clip by the global norm, update unless something was not finite."""
        self.reduction.wait()
        job.clock.mark("communication")
        grads, ballot = self.gradients.grads, self.ballot
        total_norm, divisor = torch.linalg.vector_norm(grads), ballot.items
        norm = torch.div(total_norm, ballot.items, out=ballot.norm)
        if self.config.clip_norm is not None:
            divisor = torch.maximum(divisor, torch.add(total_norm, divisor, alpha=1e-6) / self.config.clip_norm)
        grads.div_(divisor)
        fault = torch.add(ballot.guard.sum(), norm, alpha=0)  # 0 times a norm that is not finite is NaN
        lr = optimizer.learning_rate(self.config, job.update)
        skip = fault.ne(0).to(torch.float32)
        self.optimizer.update(self.gradients.views, lr, skip)
        self.buffers.settle(len(job.batch.shards.ids) > 0, skip)
        job.clock.mark("compute")
        job.stats.post(ballot.tail.clone(), self.layout)

    # The vote of the update before ------------------------------------------------------------------------------------

    def _settle(self, current: Job | None) -> None:
        """Act on the vote of the update before; `current` has its passes done but is not yet an update."""
        job, self._pending = self._pending, None
        if job is None:
            return
        vote = job.stats.read()
        redo = False
        while vote.flags.retry:
            self.reduction.wait()
            self._split_smaller(job)
            self.buffers.rewind()
            self._passes(job)
            self._update(job)
            vote, redo = job.stats.read(), True
        if redo and current is not None:
            self._passes(current)
        self.world.decide(vote.flags)
        if vote.skipped:
            self._diagnose(job)
        self._non_finite_losses = self._non_finite_losses + 1 if vote.non_finite_ranks else 0
        if self._non_finite_losses >= MAX_NON_FINITE_LOSSES:
            raise GaveUp(
                f"{MAX_NON_FINITE_LOSSES} losses in a row were not finite, the last at update {job.update} "
                f"on rank {vote.non_finite_ranks}; the newest checkpoint holds finite weights"
            )

    def _split_smaller(self, job: Job) -> None:
        if self.world.exact:
            raise _no_memory_under_exact()
        largest = self.world.comm.max_host(job.largest_cost)
        single = self.world.comm.max_host(float(job.out_of_memory and job.single_item))
        if single:
            raise GaveUp(f"update {job.update}: a single item does not fit into the memory of its device")
        self.max_cost = largest / 2
        job.largest_cost, job.out_of_memory = 0.0, False
        if self.world.device.type == "cuda":
            torch.cuda.empty_cache()
        self.world.emit(
            {"event": "warning", "text": f"out of memory: micro-batches now cost at most {self.max_cost:g}"}
        )

    def _diagnose(self, job: Job) -> None:
        """Find rank and tensor by computing the skipped step again, each rank its own part."""
        self.reduction.wait()
        outcome = self.alone.passes(job)
        for rank, (finite, name) in enumerate(self.world.comm.gather_objects((outcome.loss_finite, outcome.tensor))):
            if not finite or name is not None:
                facts = {"update": job.update, "rank": rank, "tensor": name, "loss_finite": finite}
                self.world.emit({"event": "skipped_update", **facts})

    # State ------------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Weights and optimiser moments by parameter name, and the counters."""
        optimizer = self.optimizer.state_dict(self.gradients.names)
        return {"model": self.model.state_dict(), "optimizer": optimizer, "updates": self.updates}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises UserError naming the differences; nothing is half loaded."""
        load_weights(self.model, state["model"])
        self.optimizer.load_state_dict(state["optimizer"], self.gradients.names)
        self.updates = int(state["updates"])


def _no_memory_under_exact() -> UserError:
    return UserError("--exact", "a rank ran out of memory", "give --micro-batch N: under --exact it is part of the run")


def _name_of(loss_fn: Callable[..., Any]) -> str:
    inner = loss_fn.func if isinstance(loss_fn, partial) else loss_fn
    return f"{inner.__module__}.{getattr(inner, '__qualname__', type(inner).__name__)}"
