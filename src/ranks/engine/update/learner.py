"""The model, its optimizer, and the one way to update them: `Learner.step`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import nn

from ranks.engine.config import OptimConfig, identity_of
from ranks.engine.distributed.world import World
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.sharding.batch import StepBatch
from ranks.engine.update import optimizer
from ranks.engine.update.dry_run import DryRun, DryRunResult
from ranks.engine.update.gradients import ExactReduction, FastReduction, FlatGradients, Reduction
from ranks.engine.update.load_weights import load_weights
from ranks.engine.update.loss import Loss, check_total_count
from ranks.engine.update.passes import Passes, no_memory_under_exact
from ranks.engine.update.step import PendingUpdate, StepStats, VoteCopy
from ranks.engine.update.step_clock import StepClock
from ranks.engine.update.vote import VoteLayout, VoteSlots
from ranks.errors import GaveUp, UserError

B = TypeVar("B")
LossFunction = Callable[[Any, B], Loss]
MAX_NON_FINITE_LOSSES = 3
"""A run ends after so many losses in a row that are not finite."""
MAX_SKIPPED_UPDATES = 10
"""A run ends after so many skipped updates in a row, also where only the gradients are not finite."""
SPLIT_WARNING = "out of memory: micro-batches now cost at most"
"""Begins the warning of a run that goes on with smaller passes."""


class Learner:
    """`model`: on this rank's device, the same weights on every rank. `updates`: optimizer steps,
    skipped ones too."""

    def __init__(
        self,
        model: nn.Module,
        config: OptimConfig,
        world: World,
        *,
        global_batch: int | None = None,
        updates: int | None = None,
    ) -> None:
        """`global_batch`: items of one update on all ranks, for `config.lr_rule`. `updates`: of the
        whole run, at which the schedule ends.

        Raises UserError where the model cannot be trained, or where the config needs one of the two
        and it is missing.
        """
        self.world, self.global_batch, self.total_updates = world, global_batch, updates
        self.config = config.resolve(global_batch=global_batch, updates=updates)
        self.model = model.to(world.device, torch.get_default_dtype())
        self.share_weights()
        self.updates = 0
        self.layout = VoteLayout(world.size)
        self.gradients = FlatGradients(self.model, self.layout.length)
        self.slots = VoteSlots(self.layout, self.gradients.tail, world.rank)
        self.reduction: Reduction = (
            ExactReduction(self.gradients, world.comm, world.assignment)
            if world.exact
            else FastReduction(self.gradients, world.comm)
        )
        clip_norm = self.config.clip_norm
        self._clip_norm = None if clip_norm is None else self.gradients.flat.new_full((), clip_norm)
        self.optimizer = optimizer.AdamW(self.gradients.parameters, self.config)
        self.passes = Passes(self.model, self.reduction, self.slots, world)
        self.dry_run = DryRun(self.passes, self.gradients)
        self._pending: tuple[PendingUpdate, StepStats] | None = None
        self._non_finite_losses = self._skipped_updates = 0

    def share_weights(self) -> None:
        """Give every rank the weights and buffers of the first one."""
        for tensor in [*self.model.parameters(), *self.model.buffers()]:
            self.world.comm.broadcast(tensor.data)

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    @property
    def max_cost(self) -> float | None:
        """What a micro-batch may cost, found by running out of memory; None while that did not
        happen."""
        return self.passes.max_cost

    @property
    def identity(self) -> dict[str, Any]:
        """The part of a run's identity that the learner decides."""
        return {"optim": identity_of(self.config), "parameters": self.num_parameters}

    @property
    def measured(self) -> dict[str, Any]:
        """What was found by measuring. A resume on the same assignment reuses it; another one
        measures again."""
        return {"max_cost": self.passes.max_cost}

    @measured.setter
    def measured(self, found: Mapping[str, Any]) -> None:
        self.passes.max_cost = found["max_cost"]

    # One update -------------------------------------------------------------------------------------------------------
    #
    #   host    | queue passes k | read vote k-1 | queue update k | queue passes k+1 | read vote k | queue update k+1 |
    #   device  | ... update k-1 | passes k ............ | update k | passes k+1 .......... | update k+1 ...
    #
    # The vote of update k-1 was computed before passes k started, so reading it does not wait for
    # passes k: the device always has work queued. A bad vote is acted on before update k is queued:
    # passes k-1 that ran out of memory are repeated in smaller micro-batches, then update k-1 is
    # made, then passes k are repeated with its weights.

    def step(self, loss_fn: LossFunction[B], batch: StepBatch[B]) -> StepStats:
        """One update from one global batch, of which this rank carries `batch`.

        Every rank calls it, also a rank without items. The host waits only for the vote of the
        previous update. In the first step of a session the passes are timed first. Raises GaveUp
        after three non-finite losses or ten skipped updates in a row, and where a single item does not fit
        into memory. Raises UserError for a wrong `Loss.count`. Warns where an open run does not keep this learner.
        """
        heartbeat.step()
        session = self.world.session
        session.warn_unless_kept(self, "a Learner of this loop")
        session.register(self.drain)
        if session.before_first_update is not None:
            planned, session.before_first_update = session.before_first_update, None
            planned(self.time_step(loss_fn, batch))
        update = self._update_of(loss_fn, batch)
        on_device = update.clock.on_device
        if on_device:
            heartbeat.host_counts(False)  # `StepStats.read` adds the device's times
        self.passes.queue(update)
        self._resolve_previous(update)
        stats = StepStats(self._queue_update(update), update.clock, update.times, update.batch.item)
        if on_device:
            heartbeat.host_counts(True)
        self._pending = update, stats
        self.updates += 1
        return stats

    def drain(self) -> None:
        """Read the last vote; the model is then what all ranks agreed on."""
        self._resolve_previous(None)

    def time_step(self, loss_fn: LossFunction[B], batch: StepBatch[B]) -> float:
        """Seconds that one update takes on the slowest rank, from two dry runs of the passes;
        nothing is updated.

        All ranks split micro-batches that do not fit into memory. Raises GaveUp where a single item
        does not fit. Warns where the loss is clearly a mean.
        """
        update = self._update_of(loss_fn, batch)
        self.dry_run.run(update)
        result = self.dry_run.run(update)
        while self.world.comm.max_host(float(not result.fits)):
            self._split_smaller(update)
            result = self.dry_run.run(update)
        if self.dry_run.loss_is_a_mean(update):
            self.world.session.warn(
                f"{update.loss_name.rpartition('.')[2]} returns a mean, and the learner divides it by the count once "
                "more: half of the items give about the same loss as all. Return a sum: Loss(loss_B.sum(), len(loss_B))"
            )
        return self.world.comm.max_host(result.seconds)

    def _update_of(self, loss_fn: LossFunction[B], batch: StepBatch[B]) -> PendingUpdate:
        return PendingUpdate(loss_fn, batch, self.updates, StepClock(self.world.device), self.world.session.times)

    def _queue_update(self, update: PendingUpdate) -> VoteCopy:
        """Divide by the global count, clip by the global norm, and update, unless something was not
        finite."""
        self.reduction.wait()
        update.clock.mark("communication")
        grads, slots = self.gradients.grads, self.slots
        # `grads` is the sum over the items of all ranks, so norm / items is the norm of the mean
        # gradient.
        total_norm, divisor = torch.linalg.vector_norm(grads), slots.items
        torch.div(total_norm, slots.items, out=slots.norm)
        # Mean and clipping in one division: g / max(n, |g| / clip) is g / n scaled down to the norm
        # `clip_norm`.
        if self._clip_norm is not None:
            divisor = torch.maximum(divisor, torch.add(total_norm, divisor, alpha=1e-6).div_(self._clip_norm))
        grads.div_(divisor)
        # The flag stays on the device: the optimizer's kernel reads it there and leaves weights and
        # moments unchanged where it is 1.
        skip = slots.skip()
        self.optimizer.update(self.gradients.views, optimizer.learning_rate(self.config, update.number), skip)
        self.passes.buffers.average(update.batch.num_items > 0, skip)
        update.clock.mark("compute")
        # The next passes overwrite the tail, so the vote is read from a copy.
        return VoteCopy(slots.tail.clone(), self.layout, self.passes.metric_names.get(update.loss_name, []))

    # The vote of the previous update ----------------------------------------------------------------------------------

    def _resolve_previous(self, current: PendingUpdate | None) -> None:
        """Read the previous update's vote and act on it; the passes of `current` are queued, its
        update is not."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        previous, stats = pending
        vote, repeated = stats.read(), False
        while vote.requests.retry:
            self.reduction.wait()
            self._split_smaller(previous)
            self.passes.buffers.rewind()
            self.passes.queue(previous)
            stats.repeated(self._queue_update(previous))
            vote, repeated = stats.read(), True
        if repeated and current is not None:
            self.passes.queue(current)
        check_total_count(vote.count, self.slots.max_count, previous.number)
        self.world.decide(vote.requests)
        problems = self._diagnose(previous) if vote.skipped else []
        self._non_finite_losses = self._non_finite_losses + 1 if vote.non_finite_ranks else 0
        self._skipped_updates = self._skipped_updates + 1 if vote.skipped else 0
        if self._non_finite_losses >= MAX_NON_FINITE_LOSSES:
            raise GaveUp(
                self._not_finite(f"{MAX_NON_FINITE_LOSSES} losses in a row were not finite", previous, problems)
            )
        if self._skipped_updates >= MAX_SKIPPED_UPDATES:
            raise GaveUp(self._not_finite(f"{MAX_SKIPPED_UPDATES} updates in a row were skipped", previous, problems))

    def _split_smaller(self, update: PendingUpdate) -> None:
        """Limit micro-batches, on all ranks, to half the cost of the largest one that did not fit.
        Raises GaveUp where that was a single item, and UserError where its items cost nothing.

        The limit always falls: a micro-batch of several items never costs more than the limit
        before.
        """
        if self.world.exact:
            raise no_memory_under_exact()
        failed = update.too_large
        largest = self.world.comm.max_host(failed.cost if failed is not None else 0.0)
        if self.world.comm.max_host(float(failed is not None and len(failed.ids) == 1)):
            raise GaveUp(f"update {update.number}: a single item does not fit into the memory of its device")
        if not largest > 0:  # or it is not a number
            found = f"several items that together cost {largest:g} do not fit into memory; no limit splits them"
            raise UserError(
                f"update {update.number} in smaller micro-batches", found, "give each item a cost above zero"
            )
        self.passes.max_cost = largest / 2
        if self.world.device.type == "cuda":
            torch.cuda.empty_cache()
        self.world.session.warn(f"{SPLIT_WARNING} {self.passes.max_cost:g}")

    def _diagnose(self, update: PendingUpdate) -> list[tuple[int, DryRunResult]]:
        """The ranks with non-finite numbers: each rank repeats its own passes of the skipped
        update."""
        self.reduction.wait()
        results = self.world.comm.gather_objects(self.dry_run.run(update))
        problems = [(rank, result) for rank, result in enumerate(results) if not result.finite]
        for rank, result in problems:
            self.world.session.emit(
                {
                    "event": "skipped_update",
                    "update": update.number,
                    "rank": rank,
                    "tensor": result.tensor,
                    "loss_finite": result.loss_finite,
                    "problem": result.problem,
                }
            )
        return problems

    def _not_finite(self, what: str, update: PendingUpdate, problems: list[tuple[int, DryRunResult]]) -> str:
        """Why the run gives up, and what to do."""
        found = "; ".join(f"{result.problem} on rank {rank}" for rank, result in problems)
        found = found or "the sum of the gradients of all ranks is not finite"
        do = "check the loss function and the data of these items"
        if self._skipped_updates > update.number:
            do += ": no update was made before, so the learning rate is not the cause"
        else:
            do = f"lower the learning rate (--optim.lr, now {self.config.lr:g}), or {do}"
        kept = self.world.session.finite_checkpoint()
        if kept is not None:
            do += f"; {kept} holds the finite weights of iteration {int(kept.name)}"
        return f"{what}, the last at update {update.number}\nasked: update {update.number}\nfound: {found}\n   do: {do}"

    # State ------------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Weights and optimizer moments by parameter name, the number of updates, and how many of the last ones in a
        row had losses that were not finite, or were skipped, where that is not 0."""
        self.world.session.kept.add(id(self))
        optimizer = self.optimizer.state_dict(self.gradients.names)
        in_a_row = {"non_finite_losses": self._non_finite_losses, "skipped_updates": self._skipped_updates}
        in_a_row = {name: count for name, count in in_a_row.items() if count}
        return {"model": self.model.state_dict(), "optimizer": optimizer, "updates": self.updates, **in_a_row}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises UserError naming the differences; the weights are loaded all or not at all."""
        self.world.session.kept.add(id(self))
        load_weights(self.model, state["model"])
        self.optimizer.load_state_dict(state["optimizer"], self.gradients.names)
        self.updates = int(state["updates"])
        self._non_finite_losses = int(state.get("non_finite_losses", 0))
        self._skipped_updates = int(state.get("skipped_updates", 0))
