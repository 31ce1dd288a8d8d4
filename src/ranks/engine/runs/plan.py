"""The plan of a run: everything that was chosen or derived, as one event before the first
update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import torch

from ranks.engine.distributed.world import World
from ranks.engine.update.learner import Learner
from ranks.errors import UserError


@runtime_checkable
class HasPlan(Protocol):
    """A kept object that adds to the plan, such as the collector of rollouts."""

    @property
    def plan(self) -> Mapping[str, Any]:
        """Fields of the `plan` event."""
        ...


def plan(
    world: World, keep: Mapping[str, object], start_iteration: int, iterations: int, iteration_s: float | None
) -> dict[str, Any]:
    """The `plan` event. `keep`: what the run keeps; `iteration_s`: seconds of one iteration, where it
    was timed.

    Every rank calls it, since it gathers the names of their devices.
    """
    learner = next((kept for kept in keep.values() if isinstance(kept, Learner)), None)
    config = learner.config if learner is not None else None
    batch = learner.global_batch if learner is not None else None
    left = iterations - start_iteration
    return {
        "event": "plan",
        "workload": world.workload,
        "ranks": world.size,
        "devices": world.comm.gather_objects(str(world.device)),
        "staged": world.comm.staged,
        "shards": world.shards,
        "shards_per_rank": [len(world.assignment.shards_of(r)) for r in range(world.size)],
        "global_batch": batch,
        "items_per_shard": batch / world.shards if batch is not None else None,
        "items_per_rank": [len(world.assignment.items_of(r, batch)) for r in range(world.size)] if batch else None,
        "parameters": learner.num_parameters if learner is not None else None,
        "lr": config.lr if config is not None else None,
        "lr_rule": config.lr_rule if config is not None else None,
        "base_batch": config.base_batch if config is not None else None,
        "schedule": config.schedule if config is not None else None,
        "schedule_updates": config.schedule_updates if config is not None else None,
        "warmup_updates": config.warmup_updates if config is not None else None,
        "precision": world.config.precision,
        "mode": "exact" if world.exact else "fast",
        "threads": torch.get_num_threads(),
        "start_iteration": start_iteration,
        "iterations": iterations,
        "iteration_s": iteration_s,
        "expected_s": iteration_s * left if iteration_s is not None else None,
        **{name: value for kept in keep.values() if isinstance(kept, HasPlan) for name, value in kept.plan.items()},
    }


def schedule_warning(learner: Learner) -> str | None:
    """A warning where the learning rate is 0 before the run ends."""
    end, total = learner.config.schedule_updates, learner.total_updates
    if end is None or total is None or end >= total:
        return None
    return f"the learning rate is 0 from update {end:,} on, where its schedule ends; the run has {total:,} updates"


def agree_on_iterations(world: World, start_iteration: int, iterations: int) -> None:
    """Raises UserError where ranks would make other iterations than the first one: a rank that ends
    its loop earlier leaves the others waiting. Every rank calls it."""
    ranges = world.comm.gather_objects((start_iteration, iterations))
    if len(set(ranges)) > 1:
        each = ", ".join(f"{first} to {last} on rank {rank}" for rank, (first, last) in enumerate(ranges))
        do = "pass run.iterations a number that is the same on every rank"
        raise UserError("the same iterations on every rank", each, do)
