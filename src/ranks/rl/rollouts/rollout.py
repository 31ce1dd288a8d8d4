"""The rollout of one iteration, with its advantages.

Legend: T steps, B environments of this rank, C columns of a minibatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch import Tensor

from ranks.rl import pytree
from ranks.rl.environments import Transition
from ranks.rl.pytree import State, Tree
from ranks.rl.returns import gae, next_values

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

    def take(self, place_TC: Tensor, env_C: Tensor) -> Self:
        """Any steps of any environments, in C columns. For a policy without recurrent state.

        `place_TC`: int64[T, C] on the device, t * B + b for step t of column b. `env_C`: the ids that name the new
        columns. `first_TB` is true everywhere: no step continues the one before.
        """

        def taken(leaf: Tensor) -> Tensor:
            return leaf.flatten(0, 1).index_select(0, place_TC.flatten()).unflatten(0, place_TC.shape)

        steps: dict[str, Any] = {}
        for f in fields(self):
            if f.name not in (*BY_ENVIRONMENT, "first_TB"):
                value = getattr(self, f.name)
                steps[f.name] = None if value is None else pytree.tree_map(taken, value)
        return type(self)(env_B=env_C, start_state={}, first_TB=torch.ones(place_TC.shape, dtype=torch.bool), **steps)

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
