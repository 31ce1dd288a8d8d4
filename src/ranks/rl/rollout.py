"""The rollout of one iteration, its advantages, and its minibatches of whole sequences.

Legend: T steps, B environments of this rank, E of all ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.engine.sharding.batch import Shards, StepBatch
from ranks.rl import pytree
from ranks.rl.environments import EnvironmentIds, Transition
from ranks.rl.pytree import State, Tree
from ranks.rl.returns import gae, next_values
from ranks.rl.running_mean_std import ROUNDING, sum_over_steps

BY_ENVIRONMENT = ("env_B", "start_state")
ON_CPU = ("env_B", "first_TB")


@dataclass(frozen=True)
class RolloutStep:
    """One step of B environments: what the policy observed, did and estimated, and the result."""

    obs: Tree
    first_B: Tensor
    action_B: Tensor
    logp_B: Tensor
    value_B: Tensor
    final_value_B: Tensor | None
    """The value of `transition.final_obs`."""
    transition: Transition


@dataclass(frozen=True)
class Rollout:
    """T steps of this rank's B environments, with advantages and returns."""

    env_B: Tensor
    """int64[B]: environment ids, on the CPU."""
    start_state: State
    """The recurrent state before the first step, [B, ...] each; zero where an episode starts with
    it."""
    obs: Tree
    """[T, B, ...] each."""
    first_TB: Tensor | None
    """bool, on the CPU: an episode starts with the step (episode_starts of Stable-Baselines3); None
    where that can only be so at step 0."""
    action_TB: Tensor
    """[T, B, ...]."""
    logp_TB: Tensor
    """Log-probability of the action under the policy that drew it."""
    value_TB: Tensor
    """The value that the policy estimated before the step."""
    next_value_TB: Tensor
    """The value of the state after the step, also where the episode was truncated; any number where
    it terminated."""
    reward_TB: Tensor
    """Scaled, if the collector scales rewards."""
    discount_TB: Tensor
    """0 where the episode terminated, else 1."""
    ended_TB: Tensor
    """bool: the episode terminated or was truncated."""
    weight_TB: Tensor | None
    """float: the weight of a step in means. 0 for a step that only reset; the mean weight is 1 over
    all environments of the rollout, or of the minibatch, on all ranks, so a weighted mean is the
    mean over valid steps. None: all are valid."""
    advantage_TB: Tensor
    return_TB: Tensor
    """The target of the value: advantage + value."""

    @property
    def n_steps(self) -> int:
        """T."""
        return len(self.reward_TB)

    @classmethod
    def of_steps(
        cls,
        steps: Sequence[RolloutStep],
        *,
        env_B: Tensor,
        start_state: State,
        last_value_B: Tensor,
        gamma: float,
        gae_lambda: float,
        reward_std: float | None = None,
        starts_at_step_0: bool = False,
    ) -> Self:
        """Stack the steps of one group into a rollout and compute its advantages.

        `last_value_B`: the value after the last step. `reward_std`: what rewards are divided by;
        None: not scaled. `starts_at_step_0`: episodes start with rollouts only, so `first_TB` is
        None. The weight of a step is 0 or 1 here; `normalised_weights` makes their mean 1.
        """
        transitions = [step.transition for step in steps]
        value_TB = in_default_dtype(torch.stack([step.value_B for step in steps]))
        next_value_TB = next_values(value_TB, in_default_dtype(last_value_B))
        for t, step in enumerate(steps):
            if step.final_value_B is not None:
                final_value_B = in_default_dtype(step.final_value_B)
                next_value_TB[t] = torch.where(transitions[t].ended_B, final_value_B, next_value_TB[t])
        reward_TB = torch.stack([m.reward_B for m in transitions]).to(value_TB.dtype)
        discount_TB = torch.stack([m.discount_B for m in transitions]).to(value_TB.dtype)
        ended_TB = torch.stack([m.ended_B for m in transitions])
        if reward_std is not None:
            reward_TB = reward_TB / reward_std
        advantage_TB = gae(reward_TB, value_TB, next_value_TB, gamma * discount_TB, ended_TB, gae_lambda)
        weight_TB = None
        if transitions[0].valid_B is not None:
            weight_TB = torch.stack([m.valid_B for m in transitions if m.valid_B is not None]).to(value_TB.dtype)
        return cls(
            env_B=env_B.cpu(),
            start_state=start_state,
            obs=pytree.stack([step.obs for step in steps]),
            first_TB=None if starts_at_step_0 else torch.stack([step.first_B for step in steps]).cpu(),
            action_TB=torch.stack([step.action_B for step in steps]),
            logp_TB=torch.stack([step.logp_B for step in steps]),
            value_TB=value_TB,
            next_value_TB=next_value_TB,
            reward_TB=reward_TB,
            discount_TB=discount_TB,
            ended_TB=ended_TB,
            weight_TB=weight_TB,
            advantage_TB=advantage_TB,
            return_TB=advantage_TB + value_TB,
        )

    def select(self, index_B: Tensor) -> Self:
        """Some environments of this rollout.

        `index_B`: int64 on the CPU, their columns (not their ids).
        """
        on_device_B = index_B.to(self.reward_TB.device, non_blocking=True)
        selected: dict[str, Any] = {}
        for f in fields(self):
            value, index = getattr(self, f.name), index_B if f.name in ON_CPU else on_device_B
            selected[f.name] = None if value is None else _columns(value, index, _environment_dim(f.name))
        return type(self)(**selected)

    @classmethod
    def cat(cls, parts: list[Rollout]) -> Self:
        """Concatenate the environments of several rollouts of T steps."""
        if len(parts) == 1:
            return cls(**vars(parts[0]))
        joined: dict[str, Any] = {}
        for f in fields(cls):
            values = [getattr(part, f.name) for part in parts]
            joined[f.name] = None if values[0] is None else pytree.cat(values, _environment_dim(f.name))
        return cls(**joined)


def _environment_dim(name: str) -> int:
    """The dimension of a field that counts environments."""
    return 0 if name in BY_ENVIRONMENT else 1


def _columns(tree: Tree, index_B: Tensor, dim: int) -> Tree:
    """`index_select` of each tensor."""
    return pytree.tree_map(lambda leaf: leaf.index_select(dim, index_B), tree)


def in_default_dtype(value: Tensor) -> Tensor:
    """Convert values to the dtype of the weights."""
    return value.to(torch.get_default_dtype())


# Weights of steps, and statistics over all environments ---------------------------------------------------------------


def normalised_weights(weight_TB: Tensor, ids: EnvironmentIds) -> Tensor:
    """Scale the weights of this rank's steps (0 or 1) so that their mean over all ranks is 1.

    Every rank calls it.
    """
    return weight_TB / mean_weight(ids.gather(sum_over_steps(weight_TB.double())).cpu(), len(weight_TB))


def mean_weight(weight_B: Tensor, n_steps: int) -> float:
    """The mean weight of a step, from the sums of some environments; 1 if all are 0."""
    return float(weight_B.mean()) / n_steps or 1.0


@dataclass(frozen=True)
class Scaling:
    """The map (advantage - mean) / std."""

    mean: float
    std: float


UNSCALED = Scaling(0.0, 1.0)


@dataclass(frozen=True)
class RolloutMoments:
    """Weighted sums over the steps of each environment of all ranks.

    float64 on the CPU, in the order of the environment ids.
    """

    advantage_E3: Tensor
    """Weight, advantage, advantage squared."""
    return_E2: Tensor
    """Return, return squared."""
    error_E2: Tensor
    """Error of the value (return - value), error squared."""

    @classmethod
    def of(cls, rollout: Rollout, ids: EnvironmentIds) -> RolloutMoments:
        """Those of all ranks' rollouts. Every rank calls it and gets the same."""
        advantage_TB, return_TB = rollout.advantage_TB.double(), rollout.return_TB.double()
        weight_TB = torch.ones_like(advantage_TB) if rollout.weight_TB is None else rollout.weight_TB.double()
        error_TB = return_TB - rollout.value_TB.double()
        sums = [weight_TB]
        for term_TB in (advantage_TB, return_TB, error_TB):
            sums += [weight_TB * term_TB, weight_TB * term_TB.square()]
        sums_E7 = ids.gather(sum_over_steps(torch.stack(sums, 2))).cpu()
        return cls(sums_E7[:, :3].contiguous(), sums_E7[:, 3:5].contiguous(), sums_E7[:, 5:].contiguous())

    @property
    def weight_E(self) -> Tensor:
        """The sum of the weights of each environment's steps."""
        return self.advantage_E3[:, 0]

    def advantage_scaling(self, env_K: Tensor | None = None) -> Scaling:
        """How to normalise the advantages of all environments, or of the int64 ids `env_K`."""
        moments_E3 = self.advantage_E3 if env_K is None else self.advantage_E3[env_K]
        count, total, square = moments_E3.sum(0).tolist()
        mean, variance = _mean_variance(count, total, square)
        return Scaling(mean, (variance + 1e-16) ** 0.5)

    def explained_variance(self) -> float:
        """1 - Var[return - value] / Var[return] over all steps of all ranks.

        Stable-Baselines3 has the same definition.

        1: the value predicts the return exactly; 0: it is no better than a constant; below 0: it is
        worse. NaN where the returns do not vary.
        """
        count = float(self.weight_E.sum())
        mean, variance = _mean_variance(count, *self.return_E2.sum(0).tolist())
        _, error_variance = _mean_variance(count, *self.error_E2.sum(0).tolist())
        return 1.0 - error_variance / variance if variance > (ROUNDING * mean) ** 2 else float("nan")


def _mean_variance(count: float, total: float, square: float) -> tuple[float, float]:
    """Mean and variance from a count, a sum and a sum of squares; 0 and 0 without a count."""
    mean = total / max(count, 1.0)
    return mean, max(square / max(count, 1.0) - mean * mean, 0.0)


# Minibatches ----------------------------------------------------------------------------------------------------------


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
