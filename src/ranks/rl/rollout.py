"""Experience of one iteration, and how updates take it: whole sequences, one environment an item.

Legend: T steps, B environments, D draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.engine.sharding.batch import ShardItems, StepBatch
from ranks.rl import pytree
from ranks.rl.environments import EnvironmentIds
from ranks.rl.moments import sum_over_steps
from ranks.rl.pytree import State, Tree

BY_ENVIRONMENT = ("env_B", "start_state")
ON_CPU = ("env_B", "first_TB")


@dataclass(frozen=True)
class Rollout:
    """What this rank's environments brought in T steps."""

    env_B: Tensor
    """int64[B]: environment ids, on the CPU."""
    start_state: State
    """The recurrent state before the first step, [B, ...] each; zero where an episode begins with it."""
    obs: Tree
    """[T, B, ...] each."""
    first_TB: Tensor | None
    """bool, on the CPU: an episode begins with the step; None where that can only be so at step 0."""
    action_TB: Tensor
    """[T, B, ...]."""
    logp_TB: Tensor
    """Log-probability of the action when it was drawn."""
    value_TB: Tensor
    next_value_TB: Tensor
    """The value of where the step led to, also where the episode was cut off; any number where it terminated."""
    reward_TB: Tensor
    """Scaled, where the collector scales rewards."""
    discount_TB: Tensor
    """0 where the episode ended in a terminal state, else 1."""
    ended_TB: Tensor
    """bool: the episode ended, in either way."""
    valid_TB: Tensor | None
    """float: what a step weighs. 0 where it was none; 1 on average over all environments of the rollout, or of the
    minibatch, on all ranks, so that a mean over steps is one over those that were some. None where all were."""
    advantage_TB: Tensor
    return_TB: Tensor
    """What the value should have been: advantage + value."""

    @property
    def horizon(self) -> int:
        return len(self.reward_TB)

    def of(self, index_B: Tensor) -> Self:
        """These environments' columns; `index_B`: int64 on the CPU, places in this rollout."""
        there_B = index_B.to(self.reward_TB.device, non_blocking=True)
        taken: dict[str, Any] = {}
        for f in fields(self):
            value, index = getattr(self, f.name), index_B if f.name in ON_CPU else there_B
            taken[f.name] = None if value is None else columns(value, index, dimension(f.name))
        return type(self)(**taken)

    @classmethod
    def cat(cls, parts: list[Rollout]) -> Self:
        """Side by side."""
        if len(parts) == 1:
            return cls(**vars(parts[0]))
        joined: dict[str, Any] = {}
        for f in fields(cls):
            values = [getattr(part, f.name) for part in parts]
            joined[f.name] = None if values[0] is None else pytree.cat(values, dimension(f.name))
        return cls(**joined)


def dimension(name: str) -> int:
    """Along which a field has one column for each environment."""
    return 0 if name in BY_ENVIRONMENT else 1


def columns(tree: Tree, index_B: Tensor, dim: int) -> Tree:
    """Some of each tensor's."""
    return pytree.map_tree(lambda leaf: leaf.index_select(dim, index_B), tree)


@dataclass(frozen=True)
class Scaling:
    """(advantage - mean) / std."""

    mean: float
    std: float


RAW = Scaling(0.0, 1.0)


def weighed(valid_TB: Tensor, ids: EnvironmentIds) -> Tensor:
    """What each step of this rank weighs (`Rollout.valid_TB`), from 0 where it was none and 1 where it was. Every rank
    calls it."""
    return valid_TB / mean_weight(ids.gather(sum_over_steps(valid_TB.double())).cpu(), len(valid_TB))


def mean_weight(weight_B: Tensor, horizon: int) -> float:
    """Of a step, from the sums of some environments; 1 where they have none."""
    return float(weight_B.mean()) / horizon or 1.0


def advantage_moments(rollout: Rollout, ids: EnvironmentIds) -> Tensor:
    """float64[all environments, 3] on the CPU: weight, sum and sum of squares of the advantages of each."""
    advantage_TB = rollout.advantage_TB.double()
    weight_TB = torch.ones_like(advantage_TB) if rollout.valid_TB is None else rollout.valid_TB.double()
    moments_TB3 = torch.stack([weight_TB, weight_TB * advantage_TB, weight_TB * advantage_TB.square()], 2)
    return ids.gather(sum_over_steps(moments_TB3)).cpu()


def scaling_of(moments_B3: Tensor) -> Scaling:
    """Of some environments' advantages taken together, merged in float64 in the order of their ids."""
    count, total, square = moments_B3.sum(0).tolist()
    mean = total / max(count, 1.0)
    return Scaling(mean, (max(square / max(count, 1.0) - mean * mean, 0.0) + 1e-16) ** 0.5)


def minibatches(
    rollout: Rollout,
    ids: EnvironmentIds,
    step: int,
    scaling: Callable[[Tensor], Scaling],
    weight_B: Tensor,
) -> Iterator[StepBatch[Rollout]]:
    """One pass over the rollout in `ids.block` minibatches: each takes one environment of every block, so it is local
    to its rank and holds the same environments on any deal. `step`: keys the order. `scaling`: int64 ids of the
    environments of a minibatch, of all ranks -> how its advantages are scaled. `weight_B`: float64, what the steps of
    each environment of all ranks weigh.
    """
    world = ids.world
    key = rng.key(world.seed, "minibatch", step)
    order_KM = rng.bits(key, torch.arange(ids.num_blocks), ids.block).argsort(1)
    first = ids.mine.start
    for m in range(ids.block):
        env_K = torch.arange(ids.num_blocks) * ids.block + order_KM[:, m]
        scale, weight = scaling(env_K), mean_weight(weight_B[env_K], rollout.horizon)
        shards = tuple(ShardItems(s, env_K[k.start : k.stop]) for s, k in world.shard_items(ids.num_blocks))

        def gather(env_B: Tensor, scale: Scaling = scale, weight: float = weight) -> Rollout:
            part = rollout.of(env_B - first)
            valid_TB = None if part.valid_TB is None else part.valid_TB / weight
            return replace(part, advantage_TB=(part.advantage_TB - scale.mean) / scale.std, valid_TB=valid_TB)

        yield StepBatch(shards, gather, item=None)
