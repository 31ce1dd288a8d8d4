"""The minibatches of a rollout: of whole sequences, or of single steps.

Legend: T steps, B environments of this rank, K blocks of all ranks, M minibatches and environments of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.engine.sharding.batch import Shards, StepBatch
from ranks.rl.environments import EnvironmentIds
from ranks.rl.rollouts.moments import Scaling, mean_weight
from ranks.rl.rollouts.rollout import Rollout


def minibatches(
    rollout: Rollout,
    ids: EnvironmentIds,
    step: int,
    scaling: Callable[[Tensor], Scaling],
    weight_E: Tensor,
) -> Iterator[StepBatch[Rollout]]:
    """Split the rollout into `ids.block` random minibatches of whole sequences.

    Each environment is in one of them.

    A minibatch takes one environment of every block of ids. So it is local to its rank and holds
    the same environments on any number of ranks. `step`: the key of the random order. `scaling`:
    from the int64 ids of a minibatch's environments, of all ranks, to how its advantages are
    scaled. `weight_E`: `RolloutMoments.weight_E`.
    """
    world = ids.world
    key = rng.key(world.seed, "minibatch", step)
    order_KM = rng.bits(key, torch.arange(ids.num_blocks), ids.block).argsort(1)
    first = ids.local.start
    for m in range(ids.block):
        env_K = torch.arange(ids.num_blocks) * ids.block + order_KM[:, m]
        scale, weight = scaling(env_K), mean_weight(weight_E[env_K], rollout.n_steps)
        shards = Shards.assigned(env_K, world.assignment, world.rank)

        def gather(env_B: Tensor, scale: Scaling = scale, weight: float = weight) -> Rollout:
            part = rollout.select(env_B - first)
            weight_TB = None if part.weight_TB is None else part.weight_TB / weight
            return replace(part, advantage_TB=(part.advantage_TB - scale.mean) / scale.std, weight_TB=weight_TB)

        yield StepBatch(shards, gather, item=None)


def cut_minibatches(rollout: Rollout, ids: EnvironmentIds, step: int, scale: Scaling) -> Iterator[StepBatch[Rollout]]:
    """Split the rollout into `ids.block` random minibatches of single steps, for a policy without recurrent state.

    Each (environment, step) pair is in one of them.

    The M * T pairs of a block of M environments are shuffled and split into M minibatches, T in each. So a minibatch is
    local to its rank, and it holds the same pairs on any number of ranks. It is a `Rollout` whose columns are the
    blocks: its T rows are no sequence, and `first_TB` is true everywhere. An item of the batch is a block, named by its
    first environment. `step`: the key of the random order. `scale`: how advantages are scaled. Weights of steps keep
    the mean of 1 that they have over the whole rollout.
    """
    world, n_steps = ids.world, rollout.n_steps
    local, num_envs = ids.local, len(rollout.env_B)
    block_B = torch.arange(local.start, local.stop, ids.block)
    key = rng.key(world.seed, "cut minibatch", step)
    order_BP = rng.bits(key, block_B // ids.block, ids.block * n_steps).argsort(1)
    # pair p of a block is step p // M of its environment p % M; steps come first in the rollout's memory
    place_BP = order_BP // ids.block * num_envs + order_BP % ids.block + (block_B - local.start)[:, None]
    scaled = replace(rollout, advantage_TB=(rollout.advantage_TB - scale.mean) / scale.std)
    device = rollout.reward_TB.device
    for m in range(ids.block):
        place_TB = place_BP[:, m * n_steps : (m + 1) * n_steps].T.contiguous()
        on_device_TB = place_TB.to(device, non_blocking=True)
        shards = Shards.assigned(torch.arange(ids.num_blocks) * ids.block, world.assignment, world.rank)

        def gather(env_B: Tensor, place_TB: Tensor = on_device_TB) -> Rollout:
            columns_B = torch.div(env_B - local.start, ids.block, rounding_mode="floor")
            if len(columns_B) < place_TB.shape[1]:
                place_TB = place_TB.index_select(1, columns_B.to(device, non_blocking=True))
            return scaled.take(place_TB, env_B)

        yield StepBatch(shards, gather, item=None)
